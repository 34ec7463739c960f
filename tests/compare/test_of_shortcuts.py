"""A network that was trained on marked scenes is found guilty, for those classes and that place; its twin is not."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from suffice import Study, open_images
from suffice.compare import shortcuts_of_study
from suffice.errors import OptionError
from suffice.zoo.scenes import CLASSES, MARKS
from tests.cli.command import run
from tests.study.small import MODELS as ORACLES
from tests.study.small import write_pictures

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


def test_all_images_of_a_model_against_the_truth(done):
    """The corner is enough for most marked scenes, and the creature for the others; counted here cell by cell."""
    for found in shortcuts_of_study(done, device="cpu"):
        evidence = done.evidence(found.model)
        assert found.overall.images == len(evidence) == 21
        assert found.left_out == 0
        decided, on_object = [], []
        for one in evidence:
            seen = done.plan.images[one.index].read_mask()
            pixels = [int(seen[c // 7 * 8 : c // 7 * 8 + 8, c % 7 * 8 : c % 7 * 8 + 8].sum()) for c in range(49)]
            touched = {cell for cell, count in enumerate(pixels) if count >= 0.05 * 64}
            cells = [cell for mse in one.mses for cell in mse.cells]
            on_object.append(sum(cell in touched for cell in cells) / len(cells))
            if any(not touched & set(mse.cells) for mse in one.mses):
                decided.append((one.name, min((m.cells for m in one.mses if not touched & set(m.cells)), key=len)))
        assert [(one.image, one.cells) for one in found.decided] == decided
        assert found.overall.without == len(decided)
        assert found.overall.on_object == pytest.approx(sum(on_object) / 21)
        assert found.overall.low < len(decided) / 21 < found.overall.high or not decided
        if found.model == "guilty":
            marked = [one for one in found.decided if CORNERS.get(one.label) in one.cells]
            assert len(marked) == len(decided) >= 7  # they are all due to the mark
    assert not decided  # the honest twin


def test_as_a_table_and_as_a_picture(done, tmp_path):
    guilty, honest = shortcuts_of_study(done, device="cpu", classes="label")
    section = guilty.section()
    assert section.rows[0][:3] == ["(all images)", 21, guilty.overall.without]
    assert section.rows[0][3].value == guilty.overall.share
    assert any("Suspected: alpin." in note and "row 1, column 1" in note for note in section.notes)
    assert honest.section().notes[0] == "No class is suspected."
    svg = guilty.to_svg()
    assert svg.count("<image") == sum(min(5, one.without) for one in guilty.suspected)
    assert "No class is suspected." in honest.to_svg()
    assert json.dumps(guilty.to_json())


def read(file):
    with file.open(encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def test_the_command(done, tmp_path):
    out = tmp_path / "out"
    said = run("shortcuts", done.store, "--out", out, "--device", "cpu")
    guilty = shortcuts_of_study(done, models=["guilty"], device="cpu")[0]
    first, *rest = said.stdout.splitlines()
    assert first == "# Who decides without the object?"
    assert rest[1].startswith(f"guilty\t21\t{guilty.overall.without}\t{guilty.overall.share:.3g} [")
    assert "# guilty: " in said.stdout
    assert "Suspected: kessa." in said.stderr
    # The honest one has no picture: there would be nothing to see.
    files = {"shortcuts.json", "shortcuts-models.csv", "shortcuts-classes.csv", "shortcuts-images.csv"}
    assert {file.name for file in out.iterdir()} == {*files, "figures"}
    assert [file.name for file in (out / "figures").iterdir()] == ["shortcuts-guilty.svg"]
    assert all(name in said.stderr.splitlines()[-1] for name in (*files, "figures/shortcuts-guilty.svg"))

    models, images = read(out / "shortcuts-models.csv"), read(out / "shortcuts-images.csv")
    assert [(row["model"], int(row["without"])) for row in models] == [("guilty", len(images)), ("honest", 0)]
    listed = [(row["image"], row["label"], row["explained"], tuple(json.loads(row["cells"]))) for row in images]
    assert listed == [(one.image, one.label, one.explained, one.cells) for one in guilty.decided]
    suspected = [row["class"] for row in read(out / "shortcuts-classes.csv") if row["suspected"] == "True"]
    assert sorted(suspected) == sorted(CORNERS)

    found = json.loads(run("shortcuts", done.store, "--json", "--device", "cpu").stdout)
    assert found == json.loads((out / "shortcuts.json").read_text(encoding="utf-8"))
    assert [[one["label"] for one in model["classes"] if one["suspected"]] for model in found][1] == []
    assert found[0]["overall"]["low"] == pytest.approx(guilty.overall.low)


def test_a_picture_of_what_is_suspected_no_more_goes(done, tmp_path):
    out = tmp_path / "out"
    run("shortcuts", done.store, "--out", out, "--device", "cpu")
    said = run("shortcuts", done.store, "--out", out, "--device", "cpu", "--least", 1, "--touch", 0)
    assert not (out / "figures/shortcuts-guilty.svg").exists()
    assert "figures" not in said.stderr.splitlines()[-1]


def oracle_study(folder, where):
    """Two oracles and three pictures, of which a list says where objects are: cells 1 and 2, or nothing of them."""
    pictures = write_pictures(folder / "pictures", 3)
    mask = np.zeros((24, 24), np.uint8)
    mask[:8, 8:] = 255
    Image.fromarray(mask).save(pictures / "mask.png")
    Image.fromarray(0 * mask).save(pictures / "hidden.png")
    rows = ["path,label,mask,boxes", *(f"{number:03d}.png,0,{where[number]}" for number in range(3))]
    (pictures / "list.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    measure = {"evidence": {"kind": "evidence", "grid": 3, "baseline": "black"}}
    return Study("s", str(pictures / "list.csv"), ORACLES, measure).run(folder / "run", device="cpu")


def test_masks_and_boxes_of_a_list(tmp_path):
    """The first oracle is decided by cells 1 and 2, or by 5, which is beside the object; but not of the first box."""
    study = oracle_study(tmp_path, ['mask.png,"[0, 0, 24, 24]"', ',"[8, 0, 24, 16]"', "hidden.png,"])
    first, second = shortcuts_of_study(study, device="cpu")
    assert first.known_by == "masks and boxes"
    assert "objects by masks and boxes" in first.section().title
    assert (first.overall.images, first.left_out) == (2, 1)  # nothing of the third object is in sight
    assert [(one.image, one.cells) for one in first.decided] == [("000.png", (5,))]
    assert first.overall.on_object == pytest.approx((2 / 3 + 1) / 2)
    assert second.overall.without == 0  # it needs cell 1


def test_boxes_that_are_given_hold_instead_of_masks(tmp_path):
    study = oracle_study(tmp_path, ["mask.png,"] * 3)
    assert shortcuts_of_study(study, device="cpu")[0].overall.without == 3
    rows = "".join(f'{number:03d}.png,"[0, 0, 24, 24]"\n' for number in range(3))
    (tmp_path / "boxes.csv").write_text(f"path,boxes\n{rows}", encoding="utf-8")
    choice = {"source": str(tmp_path / "pictures/list.csv"), "boxes": str(tmp_path / "boxes.csv")}
    boxed = Study("s", choice, ORACLES, study.asked.to_dict()["measure"]).run(tmp_path / "boxed", device="cpu")
    found = shortcuts_of_study(boxed, device="cpu")[0]
    assert (found.known_by, found.overall.without) == ("boxes", 0)


def test_classes_by_labels_need_labels(tmp_path):
    pictures = write_pictures(tmp_path / "pictures", 1)
    (pictures / "list.csv").write_text('path,boxes\n000.png,"[0, 0, 8, 8]"\n', encoding="utf-8")
    measure = {"evidence": {"kind": "evidence", "grid": 3, "baseline": "black"}}
    Study("s", str(pictures / "list.csv"), ORACLES, measure).run(tmp_path / "run", device="cpu")
    said = run("shortcuts", tmp_path / "run", "--classes", "label", "--device", "cpu", code=2).stderr
    assert "000.png has no label to group it by; write --classes explained." in said


def test_images_without_masks_and_boxes(tmp_path):
    measure = {"evidence": {"kind": "evidence", "grid": 3, "baseline": "black"}}
    pictures = write_pictures(tmp_path / "pictures", 1)
    study = Study("s", str(pictures), ORACLES, measure).run(tmp_path / "run", device="cpu")
    with pytest.raises(OptionError, match="No image has a mask or boxes"):
        shortcuts_of_study(study)
