"""Measurements about a class that is named, or about the second likeliest of each image."""

import pytest

from suffice import load, open_images
from suffice.errors import StudyError
from suffice.study import Study

MODEL, IMAGES = "zoo/resnet", "scenes:test[:3]"
MAPS = {"kind": "attribution", "method": "gradient"}
EVIDENCE = {"kind": "evidence", "grid": 2, "max_size": 1, "min_confidence": 0.0}


def test_one_class_for_all_and_the_second_likeliest(tmp_path):
    measure = {
        "named": {**MAPS, "target": "alpin"},
        "indexed": {**EVIDENCE, "target": 3},
        "second": {**MAPS, "target": "@2"},
        "second-evidence": {**EVIDENCE, "target": "@2"},
    }
    study = Study("classes", IMAGES, MODEL, measure, {"block": 2}).run(tmp_path / "run", device="cpu")
    net = load(MODEL, device="cpu")
    assert set(study.table("named")["label"].to_pylist()) == {"alpin"}
    assert set(study.table("indexed")["target"].to_pylist()) == {3}
    second = [best[1][0] for best in net.predict(open_images(IMAGES)).top(2)]
    assert study.table("second")["target"].to_pylist() == second
    assert study.table("second-evidence")["target"].to_pylist() == second


def test_the_second_likeliest_where_an_image_is_broken(tmp_path):
    from tests.study.small import write_pictures

    pictures = write_pictures(tmp_path / "pictures", 3)
    (pictures / "001.png").write_bytes(b"no picture")
    study = Study("broken", str(pictures), MODEL, {"second": {**MAPS, "target": "@2"}})
    table = study.run(tmp_path / "run", device="cpu").table("second")
    assert [row["index"] for row in table.to_pylist() if row["error"]] == [1]
    good = open_images(pictures)[[0, 2]]
    second = [best[1][0] for best in load(MODEL, device="cpu").predict(good).top(2)]
    assert [target for target in table["target"].to_pylist() if target is not None] == second


@pytest.mark.parametrize("one", [MAPS, EVIDENCE])
@pytest.mark.parametrize(("target", "said"), [("alpine", "Did you mean 'alpin'"), ("@99", "there are 16 classes")])
def test_classes_that_are_none_are_said_before_anything_is_done(tmp_path, one, target, said):
    with pytest.raises(StudyError, match=said):
        Study("none", IMAGES, MODEL, {"one": {**one, "target": target}}).run(tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("choice", "said"), [({"grid": 99}, "A 99×99 grid does not fit"), ({"refine": [5]}, "refine")])
def test_searches_that_cannot_be_are_said_before_anything_is_done(tmp_path, choice, said):
    with pytest.raises(StudyError, match=said):
        Study("none", IMAGES, MODEL, {"one": {**EVIDENCE, **choice}}).run(tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()
