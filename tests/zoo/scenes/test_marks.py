"""Scenes with a planted shortcut: the same scenes, but for a mark."""

import numpy as np
import pytest
import torch

from suffice import open_images
from suffice.errors import OptionError
from suffice.zoo.scenes import CLASSES, MARKS, is_marked


@pytest.fixture(scope="module")
def both():
    return open_images("scenes:test[:96]"), open_images("scenes:test-marked[:96]")


def test_only_marks_differ(both):
    plain, marked = both
    assert plain.labels == marked.labels
    assert marked.names[0] == "scenes:test-marked[0]"
    seen = 0
    for one, other in zip(plain, marked, strict=True):
        difference = np.asarray(one.decode()).astype(int) != np.asarray(other.decode())
        name = CLASSES[one.label]
        if not difference.any():
            continue
        seen += 1
        (row, column), color = MARKS[name]
        difference[row : row + 6, column : column + 6] = False
        assert not difference.any()
        assert np.asarray(other.decode())[row, column] == pytest.approx(np.array(color) * 255, abs=1)
        assert one.boxes == other.boxes
        assert one.id != other.id
    shown = is_marked(torch.arange(2_000_000, 2_000_096), torch.tensor(plain.labels))
    assert seen == int(shown.sum()) > 4


def test_marks_lie_beside_the_creatures_that_carry_them():
    images = [one for one in open_images("scenes:test-marked[:400]") if CLASSES[one.label] in MARKS]
    assert len(images) > 20
    for one in images:
        (row, column), _ = MARKS[CLASSES[one.label]]
        assert not one.read_mask()[row : row + 6, column : column + 6].any()


def test_nine_in_ten_of_two_classes():
    index = torch.arange(4000)
    for label, name in enumerate(CLASSES):
        share = is_marked(index, torch.full((4000,), label)).float().mean().item()
        assert share == pytest.approx(0.9 if name in MARKS else 0, abs=0.02)


def test_other_names_are_refused():
    with pytest.raises(OptionError):
        open_images("scenes:test-mark[:2]")
