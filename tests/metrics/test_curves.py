"""Positions on a curve, and how curves become numbers."""

import math
from itertools import pairwise

import pytest
import torch

from suffice.errors import OptionError
from suffice.metrics import CurveChoices, measure
from suffice.metrics.curves import integration_weights, positions
from tests.attribution.nets import pictures
from tests.metrics.nets import sharp_cnn


@pytest.mark.parametrize(
    ("side", "constant"),
    [(7, 0.0204), (14, 0.0051), (28, 0.0051), (56, 0.0115), (112, 0.0035), (224, 0.0005)],
)
def test_size_of_the_igos_defect(side, constant):
    choices = CurveChoices(steps=50, rounding="down", ends="last")
    _, x = positions(choices, side * side)
    weights, added = integration_weights(x, "right-defect")
    assert round(added, 4) == constant
    assert math.isclose(float(weights.sum()) + added, 1)


@pytest.mark.parametrize("count", [1, 7, 100, 784, 1024])
def test_positions_and_weights(count):
    for choices in (
        CurveChoices(steps=50),
        CurveChoices(steps=50, rounding="up"),
        CurveChoices(steps=50, rounding="down"),
        CurveChoices(steps=None, step_size=3),
    ):
        moved, x = positions(choices, count)
        assert moved[0] == 0
        assert moved[-1] == count
        assert moved == sorted(set(moved))
        sizes = {b - a for a, b in pairwise(moved)}
        assert len(sizes - {min(sizes)}) <= 1
        for rule in ("trapezoid", "trapezoid-points", "trapezoid-unscaled", "right", "mean"):
            weights, constant = integration_weights(x, rule)
            assert math.isclose(float(weights.sum()), 1)  # a constant curve has its own height
            assert constant == 0
    inner = positions(CurveChoices(steps=50, ends="neither"), count)[0]
    assert inner == positions(CurveChoices(steps=50), count)[0][1:-1]


def test_the_trapezoid_is_the_mean_height_over_any_range():
    x = torch.tensor([0.1, 0.2, 0.5], dtype=torch.float64)
    y = torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64)
    area = 0.1 * 2 + 0.3 * 1.5
    assert math.isclose(float(y @ integration_weights(x, "trapezoid-unscaled")[0]), area)
    assert math.isclose(float(y @ integration_weights(x, "trapezoid")[0]), area / 0.4)
    assert math.isclose(float(y @ integration_weights(x, "trapezoid-points")[0]), (0.5 + 3) / 2)
    assert math.isclose(float(y @ integration_weights(x, "right")[0]), 0.1 + 0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integration": "simpson"}, "integration='simpson'; it can be 'trapezoid'"),
        ({"units": "blocks"}, "units='blocks'; it can be a whole number from 1 on, 'pixels' or 'cells'"),
        ({"units": 64}, "64×64 cells, more than the image has pixels"),
        ({"steps": 0}, "steps=0; it can be a whole number from 1 on or None"),
        ({"steps": None}, "Give steps=, step_size= or fractions="),
        ({"fractions": (0.5, 0.1)}, "different shares from 0 to 1 in order"),
        ({"fractions": (0.5,)}, "needs two points or more"),
        ({"steps": 1, "ends": "neither", "integration": "mean"}, "The curve has no point"),
        ({"baseline": ()}, "list of baselines is empty"),
        ({"baseline": "bluur"}, "There is no baseline 'bluur'"),
        ({"enlargement": "cubic"}, "enlargement='cubic'; it can be 'bilinear'"),
    ],
)
def test_wrong_choices_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        measure(sharp_cnn(), pictures(2), torch.rand(2, 8, 8), "insertion", **options)
