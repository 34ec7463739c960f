"""Images of studies: which they are, and what becomes of those that are broken, gone, or others than before."""

import pytest

from suffice.errors import StudyError
from suffice.study import Study
from tests.study.small import MEASURE, MODELS, write_pictures
from tests.study.small import small_study as made


@pytest.fixture
def pictures(tmp_path):
    return write_pictures(tmp_path / "pictures", 10)


def rows(study, name):
    return study.table(name).to_pylist()


def test_images_are_looked_for_beside_the_file_and_nowhere_else(tmp_path, pictures, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where there are pictures, too
    study = Study("s", "pictures", MODELS[:1], {"said": MEASURE["said"]}, base=tmp_path / "elsewhere")
    with pytest.raises(StudyError, match=r"There is no file or folder '.*/elsewhere/pictures'"):
        study.run(tmp_path / "run", device="cpu")


def test_images_that_join_are_refused(tmp_path, pictures):
    made(pictures).run(tmp_path / "run", device="cpu", only="said")
    write_pictures(pictures, 12)
    with pytest.raises(StudyError, match=r"2 added, 0 gone\)\. Take another folder\.$"):
        made(pictures).run(tmp_path / "run", device="cpu")
    with pytest.raises(StudyError, match=r"2 images that the study did not begin with, such as 010\.png"):
        Study.open(tmp_path / "run").run(device="cpu")


def test_broken_images_are_rows_with_an_error(tmp_path, pictures):
    (pictures / "001.png").write_bytes(b"no picture")
    for lost in range(4, 8):
        (pictures / f"{lost:03d}.png").write_bytes(b"")  # a whole block
    study = made(pictures).run(tmp_path / "run", device="cpu")
    for name in MEASURE:
        found = rows(study, name)
        assert [row["index"] for row in found] == [*range(10)] * 2
        assert [row["index"] for row in found if row["error"]] == [1, 4, 5, 6, 7] * 2
        assert all(row["target"] is not None for row in found if not row["error"])
    assert not [e for e in study.store.events() if e["event"] == "failed"]


def test_images_that_are_gone_are_rows_with_an_error(tmp_path, pictures):
    made(pictures).run(tmp_path / "run", device="cpu", only="said")
    (pictures / "002.png").unlink()
    with pytest.raises(StudyError) as error:
        made(pictures).run(tmp_path / "run", device="cpu")
    instead = f"Or go on without those that are gone: suffice study run {tmp_path / 'run'}"
    assert str(error.value).endswith(f"(0 added, 1 gone). Take another folder. {instead}")
    with pytest.raises(StudyError, match=r"Take another folder\.$"):  # where going on would not change the seed
        made(pictures, run={"block": 4, "seed": 1}).run(tmp_path / "run", device="cpu")
    study = Study.open(tmp_path / "run").run(device="cpu")
    assert [r["image"] for r in rows(study, "evidence") if r["error"]] == ["002.png"] * 2
    assert "no longer there" in rows(study, "evidence")[2]["error"]


def test_others_do_not_take_the_place_of_images_that_are_gone(tmp_path, pictures):
    chosen = {"source": str(pictures), "every": 2, "take": 4}
    made(pictures, images=chosen).run(tmp_path / "run", device="cpu", only="said")
    (pictures / "002.png").unlink()
    maps = rows(Study.open(tmp_path / "run").run(device="cpu", only="maps"), "maps")[:4]
    assert [(row["image"], row["error"] is None) for row in maps] == [
        ("000.png", True), ("002.png", False), ("004.png", True), ("006.png", True),
    ]  # fmt: skip


def test_of_images_of_one_name_it_has_to_be_known_which_is_which(tmp_path, pictures):
    other = write_pictures(tmp_path / "others", 3)
    study = made(pictures, images=[str(pictures), str(other)], models=MODELS[:1])
    study.run(tmp_path / "run", device="cpu", only="said")
    (pictures / "009.png").unlink()
    before = rows(Study.open(tmp_path / "run"), "said")
    maps = rows(Study.open(tmp_path / "run").run(device="cpu", only="maps"), "maps")
    assert [row["image_id"] for row in maps if not row["error"]] == [
        row["image_id"] for row in before if row["image"] != "009.png"
    ]
    (other / "001.png").unlink()
    with pytest.raises(StudyError, match=r"began with 2 images called 001\.png, and now there are 1"):
        Study.open(tmp_path / "run").run(device="cpu")


def test_images_that_are_gone_or_others_since_their_maps_were_made_are_rows_with_an_error(tmp_path, pictures):
    made(pictures).run(tmp_path / "run", device="cpu", only="maps")
    (pictures / "002.png").unlink()
    (pictures / "003.png").write_bytes((pictures / "000.png").read_bytes())
    for lost in (8, 9):  # all of a block
        (pictures / f"{lost:03d}.png").unlink()
    study = Study.open(tmp_path / "run").run(device="cpu")
    found = rows(study, "scores")
    assert [row["index"] for row in found] == [*range(10)] * 2
    said = {row["image"]: row["error"] for row in found if row["error"]}
    assert list(said) == ["002.png", "003.png", "008.png", "009.png"]
    assert "002.png is no longer there" in said["002.png"]
    assert "another image than when its map was made" in said["003.png"]
    assert not study.status().failed


def test_the_label_of_an_image_that_is_gone_is_not_missed(tmp_path):
    write_pictures(tmp_path / "pictures/1", 2)
    measure = {"maps": {**MEASURE["maps"], "target_class": "label"}, "said": MEASURE["said"]}
    study = made(tmp_path / "pictures", models=MODELS[:1], measure=measure)
    study.run(tmp_path / "run", device="cpu", only="said")
    (tmp_path / "pictures/1/001.png").unlink()
    found = rows(Study.open(tmp_path / "run").run(device="cpu"), "maps")
    assert [(row["target"], row["error"]) for row in found] == [(1, None), (None, "1/001.png is no longer there.")]
