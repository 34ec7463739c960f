"""Rows written while the search goes on, and folders that a later search takes up."""

import time
from dataclasses import replace

import pytest
import torch

from suffice.errors import OptionError
from suffice.evidence import EvidenceSet, Settings
from suffice.evidence.files import writer
from suffice.evidence.files.folder import EvidenceFolder
from suffice.evidence.files.writer import EvidenceWriter
from suffice.perturb import Counters
from suffice.testing import AnyOf
from suffice.vision import open_images
from suffice.vision.provenance import differences
from suffice.vision.stream import Skip
from tests.evidence.twins import search_oracle

IMAGES = open_images(torch.rand(6, 3, 4, 4, generator=torch.Generator().manual_seed(0)))
ABOUT = {"model": "model", "family": "family", "weights": "abc", "settings": Settings(grid=2).to_dict()}


@pytest.fixture(scope="module")
def evidence():
    one = replace(search_oracle(AnyOf([(0, 1), (2,)], grid=2)), settings=Settings(grid=2))
    images = enumerate(IMAGES)
    return EvidenceSet(
        [replace(one, index=i, name=p.name, image_id=p.id, questions=i) for i, p in images], "model", "family"
    )


def write(folder, some, block=2):
    with EvidenceWriter(folder.about, folder, block=block) as writer:
        for e in some:
            writer.add(e)
        writer.counters = Counters(forwards=len(some))
    return writer


def test_a_folder_loads_as_the_set_that_was_found(evidence, tmp_path):
    order = [1, 0, 2, 5, 4, 3]  # they come as they are finished
    writer = write(EvidenceFolder(tmp_path, ABOUT, IMAGES), [evidence[i] for i in order])
    assert writer.to_arrow().sort_by("index").equals(evidence.to_arrow())
    assert [file.name for file in tmp_path.iterdir()] == ["evidence.parquet"]
    back = EvidenceSet.load(tmp_path)
    assert back.to_arrow().equals(evidence.to_arrow())
    assert (back.about, back.counters.forwards) == (ABOUT, 6)
    assert torch.equal(back[3].regions, evidence[3].regions)
    saved = EvidenceSet(evidence, "model", "family", about=ABOUT).save(tmp_path / "saved.parquet")
    assert EvidenceSet.load(saved).to_arrow().equals(back.to_arrow())


def test_without_a_folder_there_is_just_the_table(evidence):
    with EvidenceWriter(ABOUT, block=4) as writer:
        for e in evidence:
            writer.add(e)
    assert writer.to_arrow().equals(evidence.to_arrow())


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_is_finished_is_kept_and_taken_up(error, evidence, tmp_path):
    folder = EvidenceFolder(tmp_path, ABOUT, IMAGES)
    with pytest.raises(error), EvidenceWriter(ABOUT, folder, block=2) as writer:  # noqa: PT012
        for e in evidence[:3]:
            writer.add(e)
        writer.skipped = [Skip(5, "x", "broken")]
        raise error
    assert EvidenceSet.load(tmp_path).to_arrow().equals(evidence[:3].to_arrow())
    assert EvidenceSet.load(tmp_path).skipped == (Skip(5, "x", "broken"),)

    again = EvidenceFolder(tmp_path, ABOUT, IMAGES)
    assert (again.waiting, again.done) == ([3, 4, 5], 3)
    assert [e.questions for e in again.evidence()] == [0, 1, 2]
    later = write(again, evidence[3:])
    assert later.to_arrow().equals(evidence.to_arrow())
    assert EvidenceSet.load(tmp_path).to_arrow().equals(evidence.to_arrow())
    assert not EvidenceFolder(tmp_path, ABOUT, IMAGES).waiting


def test_blocks_are_there_before_the_end_and_survive_without_it(evidence, tmp_path):
    folder = EvidenceFolder(tmp_path, ABOUT, IMAGES)
    writer = EvidenceWriter(ABOUT, folder, block=2)
    for e in evidence[:5]:
        writer.add(e)
    writer._thread.shutdown(wait=True)
    writer._timer.cancel()  # and now the process is killed
    (tmp_path / "evidence.parts" / "000009.parquet.77.tmp").write_bytes(b"half a part")
    assert not (tmp_path / "evidence.parquet").exists()
    assert EvidenceSet.load(tmp_path).to_arrow().equals(evidence[:4].to_arrow())
    again = EvidenceFolder(tmp_path, ABOUT, IMAGES)
    assert again.waiting == [4, 5]
    write(again, evidence[4:])
    assert EvidenceSet.load(tmp_path).to_arrow().equals(evidence.to_arrow())
    assert [file.name for file in tmp_path.iterdir()] == ["evidence.parquet"]


def test_parts_beside_a_finished_file_are_left_over(evidence, tmp_path):
    """The process was killed after the file was there, before its parts were gone."""
    write(EvidenceFolder(tmp_path, ABOUT, IMAGES), evidence)
    (tmp_path / "evidence.parts").mkdir()
    (tmp_path / "evidence.parts" / "000001.parquet").write_bytes((tmp_path / "evidence.parquet").read_bytes())
    write(EvidenceFolder(tmp_path, ABOUT, IMAGES), [])
    assert EvidenceSet.load(tmp_path).to_arrow().equals(evidence.to_arrow())


def test_a_finished_image_does_not_wait_for_the_next(evidence, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "SECONDS", 0.01)
    work = EvidenceWriter(ABOUT, EvidenceFolder(tmp_path, ABOUT, IMAGES))
    work.add(evidence[0])
    while not list((tmp_path / "evidence.parts").glob("*.parquet")):
        time.sleep(0.01)
    assert len(EvidenceSet.load(tmp_path)) == 1
    with work:
        work.add(evidence[1])
    assert EvidenceSet.load(tmp_path).to_arrow().equals(evidence[:2].to_arrow())


def test_images_are_known_by_their_content_not_by_place_or_name(evidence, tmp_path):
    write(EvidenceFolder(tmp_path, ABOUT, IMAGES[:3]), evidence[:3])
    twice = IMAGES[[5, 2, 1, 0, 1]]
    again = EvidenceFolder(tmp_path, ABOUT, twice)
    assert again.waiting == [0, 4]  # a second copy of an image is an image, too
    write(again, [replace(evidence[5], index=0), replace(evidence[1], index=4)])
    rows = EvidenceSet.load(tmp_path)
    assert [(e.index, e.name, e.questions) for e in rows] == [
        (place, picture.name, IMAGES.ids.index(picture.id)) for place, picture in enumerate(twice)
    ]


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"weights": "xyz"}, "weights is xyz, was abc"),
        ({"settings": Settings(grid=2, threshold=0.8).to_dict()}, "threshold is 0.8, was 0.9"),
        ({"precision": "bf16"}, "precision is bf16, was None"),
    ],
)
def test_other_searches_are_refused_and_leave_everything(about, said, evidence, tmp_path):
    write(EvidenceFolder(tmp_path, ABOUT, IMAGES), evidence)
    with pytest.raises(OptionError, match=said) as raised:
        EvidenceFolder(tmp_path, ABOUT | about, IMAGES)
    assert "overwrite=True" in str(raised.value)
    assert len(EvidenceSet.load(tmp_path)) == 6
    over = EvidenceFolder(tmp_path, ABOUT | about, IMAGES, overwrite=True)
    assert len(over.waiting) == 6
    write(over, evidence[:2])
    assert len(EvidenceSet.load(tmp_path)) == 2


def test_other_images_and_other_columns_are_refused(evidence, tmp_path):
    write(EvidenceFolder(tmp_path, ABOUT, IMAGES), evidence)
    with pytest.raises(OptionError, match="is of 2 other images, too"):
        EvidenceFolder(tmp_path, ABOUT, IMAGES[:4])
    with pytest.raises(OptionError, match="regions are left out"):
        EvidenceFolder(tmp_path, ABOUT, IMAGES, regions=False)


def test_the_date_and_the_name_of_a_file_make_no_difference():
    earlier = {"date": "2025", "checkpoint": "a.pth", "device": "cpu", "versions": {"torch": "2.8"}}
    assert not differences(earlier, earlier | {"date": "2026", "checkpoint": None, "device": "H200"})
    assert differences(earlier, earlier | {"versions": {"torch": "2.9"}}) == ["the version of torch is 2.9, was 2.8"]
