"""Files that measurements read are known by their content."""

import shutil
from pathlib import Path

import pytest

from suffice.attribution import find_method
from suffice.errors import StudyError
from suffice.study import Study
from suffice.study.files import files_of, hashes

EXPLAINERS = Path("suffice/zoo/weights/explainers").resolve()


def test_files_among_options_are_those_that_may_be_paths():
    assert files_of(find_method("eea"), {"explainer": "trained", "steps": 3}) == ("trained",)
    assert files_of(find_method("rise"), {"masks": 8}) == ()


def test_a_name_that_could_be_a_path_is_no_file():
    assert files_of(find_method("rise"), {"baseline": "black"}) == ("black",)
    assert hashes(["black"]) == {}


def test_a_folder_stands_for_the_weights_in_it(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"one")
    (tmp_path / "notes.txt").write_text("not read")
    (name,) = hashes([str(tmp_path)])
    assert name == str(tmp_path / "a.safetensors")
    (tmp_path / "a.safetensors").write_bytes(b"other")
    assert hashes([str(tmp_path)]) != hashes([]) == {}


def test_paths_may_have_variables_of_the_environment(tmp_path, monkeypatch):
    shutil.copy(EXPLAINERS / "zoo-resnet.safetensors", tmp_path / "zoo-resnet.safetensors")
    options = {"explainer": "$LEARNED", "steps": 0}
    measure = {
        "maps": {"kind": "attribution", "method": "eea", **options},
        "sane": {"kind": "sanity", "method": "eea", **options},
    }
    made = Study("learned", "scenes:test[:2]", "zoo/resnet", measure)
    with pytest.raises(StudyError, match="no variable LEARNED"):
        made.run(tmp_path / "run", device="cpu")
    monkeypatch.setenv("LEARNED", str(tmp_path))
    done = made.run(tmp_path / "run", device="cpu")
    assert done.plan.files.keys() == {str(tmp_path / "zoo-resnet.safetensors")}
    assert {*done.table("maps")["error"].to_pylist(), *done.table("sane")["error"].to_pylist()} == {None}


def test_a_study_does_not_go_on_with_another_explainer(tmp_path):
    file = tmp_path / "explainer.safetensors"
    shutil.copy(EXPLAINERS / "zoo-resnet.safetensors", file)
    measure = {"maps": {"kind": "attribution", "method": "eea", "explainer": str(file), "steps": 0}}
    made = Study("learned", "scenes:test[:2]", "zoo/resnet", measure, {"block": 1})
    first = made.run(tmp_path / "run", device="cpu")
    assert first.plan.files.keys() == {str(file)}
    assert made.run(tmp_path / "run", device="cpu").table("maps").equals(first.table("maps"))
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(StudyError, match=r"the file .*explainer\.safetensors is another"):
        made.run(tmp_path / "run", device="cpu")


def test_a_folder_with_several_explainers_of_a_model_is_no_misfit_but_an_error_with_its_place(tmp_path):
    for name in ("mine", "other"):
        shutil.copy(EXPLAINERS / "zoo-deit.safetensors", tmp_path / f"{name}.safetensors")
    shutil.copy(EXPLAINERS / "zoo-resnet.safetensors", tmp_path)
    text = f"""
        name = "learned"
        images = "scenes:test[:1]"
        models = ["zoo/resnet", "zoo/deit"]
        run.misfits = "skip"
        [measure.maps]
        kind = "attribution"
        method = "eea"
        explainer = '{tmp_path}'
        mode = "pretrained"
    """
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(
        StudyError, match=r"study\.toml, line 9: .* has 2 explainers of zoo/deit, mine\.safetensors, other"
    ):
        Study.open(tmp_path / "study.toml").run(tmp_path / "run", device="cpu")
    (tmp_path / "study.toml").write_text(text.replace("method =", 'models = ["zoo/resnet"]\n        method ='))
    run = Study.open(tmp_path / "study.toml").run(tmp_path / "run", device="cpu")  # which does not ask about zoo/deit
    assert run.table("maps")["model"].to_pylist() == ["zoo/resnet"]
