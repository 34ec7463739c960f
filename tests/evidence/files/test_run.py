"""A search in Python that is kept in a folder, and goes on where an earlier one ended."""

from contextlib import closing

import pytest
import torch

import suffice
from suffice.errors import OptionError
from suffice.evidence import EvidenceRun, EvidenceSet, Settings
from suffice.testing import AnyOf

CHOICES = {"grid": 3, "baseline": "black"}


@pytest.fixture
def net():
    return AnyOf([(0, 1), (4,)], grid=3).classifier(12)


@pytest.fixture
def images():
    """Three images that differ where the oracle does not look."""
    every = AnyOf([(0, 1), (4,)], grid=3).image(12).repeat(3, 1, 1, 1)
    every[:, :, -1, -1] = torch.tensor([0.2, 0.4, 0.6])[:, None]
    return every


def cells(found):
    return [[mse.cells for mse in one.mses] for one in found]


def test_what_is_there_is_not_searched_again(net, images, tmp_path):
    first = suffice.find_evidence(net, images[:2], 1, out=tmp_path / "out", **CHOICES)
    assert len(first) == 2
    again = suffice.find_evidence(net, images, 1, out=tmp_path / "out", **CHOICES)
    assert [one.index for one in again] == [0, 1, 2]
    assert again.counters.forwards < 2 * first.counters.forwards  # one image, not three
    assert cells(again) == cells(suffice.find_evidence(net, images, 1, **CHOICES))
    assert cells(EvidenceSet.load(tmp_path / "out")) == cells(again)
    with pytest.raises(OptionError, match=r"threshold is 0.8, was 0.9.*overwrite=True"):
        suffice.find_evidence(net, images, 1, out=tmp_path / "out", threshold=0.8, **CHOICES)
    other = suffice.find_evidence(net, images[:1], 1, out=tmp_path / "out", overwrite=True, threshold=0.8, **CHOICES)
    assert other[0].settings.threshold == pytest.approx(0.8)


def test_what_was_finished_is_kept_when_it_ends_early(net, images, tmp_path):
    settings = Settings(**CHOICES)
    run = EvidenceRun(net, images, 1, settings, out=tmp_path / "out", images_at_once=1)
    with closing(run.search()) as search:
        next(search)
    assert len(EvidenceSet.load(tmp_path / "out")) == run.kept == 1
    rest = EvidenceRun(net, images, 1, settings, out=tmp_path / "out")
    assert (rest.waiting, rest.earlier) == ([1, 2], 1)
    assert [one.index for one in rest.search(earlier=False)] == [1, 2]
    assert rest.to_arrow().num_rows == 3


def test_classes_of_each_image_must_be_those_of_before(net, images, tmp_path):
    suffice.find_evidence(net, images[:2], [1, 1], out=tmp_path / "out", **CHOICES)
    found = suffice.find_evidence(net, images, [1, 1, 1], out=tmp_path / "out", **CHOICES)
    assert [one.target for one in found] == [1, 1, 1]
    with pytest.raises(OptionError, match="about other classes"):
        suffice.find_evidence(net, images, [1, 0, 1], out=tmp_path / "out", **CHOICES)
    assert len(EvidenceSet.load(tmp_path / "out")) == 3  # a refusal takes nothing away
