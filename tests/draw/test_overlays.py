"""Maps in colors."""

import numpy as np
import torch

from suffice.draw import map_colors, overlay
from suffice.draw.overlays import levels
from suffice.draw.palettes import WARM


def test_levels():
    assert not levels(torch.full((4, 4), 3.0)).any()
    unsigned = levels(torch.tensor([[2.0, 4.0], [3.0, 2.0]]))
    assert (unsigned.min(), unsigned.max()) == (0, 1)  # the ends are clamped to
    signed = levels(torch.tensor([[-4.0, 2.0], [0.0, 0.0]]))
    assert signed[0, 0] == -1
    assert 0.4 < signed[0, 1] < 0.6
    assert not signed[1].any()


def test_colors_of_the_ends_are_those_of_the_ramp():
    drawn = map_colors(torch.tensor([[-1.0, 0.0, 1.0, 2.0]]))[0]
    assert (drawn == WARM[[0, 0, -1, -1]]).all()


def test_colors_of_for_and_against_differ_and_nothing_shows_the_image():
    picture = np.asarray(overlay(torch.tensor([[1.0, -1.0, 0.0]]), torch.full((3, 1, 3), 0.5)), dtype=int)[0]
    warm, cool, nothing = picture
    assert warm[0] > warm[2]
    assert cool[2] > cool[0]
    assert abs(nothing[0] - nothing[2]) < 12
