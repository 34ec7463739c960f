"""The built-in study: whole, smaller, and run by several processes."""

import pytest

from suffice.errors import StudyError
from suffice.report.demo import demo_study, run_on_all_cores
from suffice.study import Study
from suffice.vision import list_models


def test_the_study_is_about_all_networks_and_names_its_questions():
    asked = demo_study().asked
    assert [model.name for model in asked.models] == ["zoo/*"]
    known = list_models("zoo/*")
    assert all({one.of, one.against} <= set(known) and one.question for one in asked.contrasts)
    assert len(asked.contrasts) >= 8


def test_a_smaller_one_has_what_is_about_its_networks():
    asked = demo_study(images=3, networks=["convnext-3", "zoo/convnext-3-bn"]).asked
    assert asked.images.source == "scenes:test[:3]"
    assert [(one.of, one.against) for one in asked.contrasts] == [("zoo/convnext-3-bn", "zoo/convnext-3")]
    assert set(asked.tables) == {"predictions", "evidence", "maps", "scores", "cross-test", "activations"}


def test_processes_share_the_work(tmp_path):
    study = Study("two", "scenes:test[:4]", ["zoo/resnet"], {"said": {"kind": "predictions"}}, {"block": 1})
    seen = []
    done = run_on_all_cores(study, tmp_path, processes=2, on_progress=lambda *some: seen.append(some))
    assert done.table("said").num_rows == 4
    assert all(total == 4 and 0 <= count <= 4 for count, total in seen)


def test_a_study_that_cannot_be_run_says_why(tmp_path):
    study = Study("none", "scenes:test[:4]", ["zoo/nothing"], {"said": {"kind": "predictions"}})
    with pytest.raises(StudyError, match="zoo/nothing"):
        run_on_all_cores(study, tmp_path, processes=1)
