"""A network that was trained on marked scenes is found guilty, for those classes and that place; its twin is not."""

import json

import pytest

from suffice import Study, open_images
from suffice.compare import shortcuts_of_study
from suffice.errors import OptionError
from suffice.zoo.scenes import CLASSES, MARKS
from tests.cli.command import run

MODELS = ["benchmarks.marked_networks:guilty", "benchmarks.marked_networks:honest"]
QUICK = {"max_mses": 1, "max_size": 2, "beam_width": 2, "deletion_orders": 1, "certify": 0, "pictures": False}
CORNERS = {"alpin": 0, "kessa": 48}


def chosen(count):
    """The first so many scenes of both marked classes and of another one."""
    labels = open_images("scenes:test-marked[:300]").labels
    wanted = [CLASSES.index(name) for name in (*MARKS, "borka")]
    places = [i for label in wanted for i in [n for n, own in enumerate(labels) if own == label][:count]]
    return [f"scenes:test-marked[{i}:{i + 1}]" for i in sorted(places)]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    models = [{"name": name, "label": name.partition(":")[2]} for name in MODELS]
    study = Study("marks", {"source": chosen(7)}, models, {"evidence": {"kind": "evidence", "grid": 7, **QUICK}})
    return study.run(tmp_path_factory.mktemp("marks") / "run", device="cpu")


def test_guilty_and_honest(done):
    guilty, honest = shortcuts_of_study(done, device="cpu")
    assert {one.label: one.places[0].cell for one in guilty.suspected} == CORNERS
    assert all(one.share > 0.4 for one in guilty.suspected)
    assert not honest.suspected
    assert (guilty.model, honest.model) == ("guilty", "honest")


def test_as_a_table_and_as_a_picture(done, tmp_path):
    guilty, honest = shortcuts_of_study(done, device="cpu", classes="label")
    section = guilty.section()
    assert any("Suspected: alpin." in note and "row 1, column 1" in note for note in section.notes)
    assert honest.section().notes[0] == "No class is suspected."
    svg = guilty.to_svg()
    assert svg.count("<image") == sum(min(5, one.without) for one in guilty.suspected)
    assert "No class is suspected." in honest.to_svg()
    assert json.dumps(guilty.to_json())


def test_the_command(done, tmp_path):
    out = run("shortcuts", done.store, "--out", tmp_path / "out", "--device", "cpu")
    assert "# guilty: " in out.stdout
    assert "Suspected: kessa." in out.stderr
    assert (tmp_path / "out/figures/shortcuts-guilty.svg").exists()
    found = json.loads(run("shortcuts", done.store, "--json", "--device", "cpu").stdout)
    assert [[one["label"] for one in model["classes"] if one["suspected"]] for model in found][1] == []


def test_images_without_boxes(tmp_path):
    from tests.study.small import MODELS as ORACLES
    from tests.study.small import write_pictures

    measure = {"evidence": {"kind": "evidence", "grid": 3, "baseline": "black"}}
    pictures = write_pictures(tmp_path / "pictures", 1)
    study = Study("s", str(pictures), ORACLES, measure).run(tmp_path / "run", device="cpu")
    with pytest.raises(OptionError, match="No image has boxes"):
        shortcuts_of_study(study)
