"""What is best, and what chance gives, for classifiers whose decision is a known formula."""

import math
from itertools import permutations

import pytest
import torch

from suffice.metrics import measure
from suffice.metrics.metric import all_metrics
from suffice.testing import AnyOf, WeightedSum

CURVES = ["insertion", "deletion", "lerf", "morf", "ins-del"]
CELLS = {"baseline": "black", "units": "cells", "steps": None, "step_size": 1}


def area(heights):
    """By the trapezoid rule over equal steps."""
    return (sum(heights) - heights[0] / 2 - heights[-1] / 2) / (len(heights) - 1)


def measured(oracle, maps, metrics, size, **options):
    net, image = oracle.classifier(size), oracle.image(size)
    return measure(net, image.expand(len(maps), -1, -1, -1), maps, metrics, targets=1, **{**CELLS, **options})


@pytest.mark.parametrize("size", [12, 24])
def test_a_map_of_the_one_sufficient_set_has_the_best_values_in_closed_form(size):
    oracle = AnyOf([(1, 5, 10)], grid=4, high=0.95, low=0.05)
    maps = torch.zeros(1, 16)
    maps[0, [1, 5, 10]] = torch.tensor([1.0, 3.0, 2.0])
    found = measured(oracle, maps.view(1, 4, 4), CURVES, size)
    # Insertion: two steps low, the third half, thirteen high. Deletion: lost with the first cell.
    insertion = (2 * 0.05 + 0.5 + 13 * 0.95) / 16
    deletion = (0.5 + 15 * 0.05) / 16
    assert found["insertion"].mean == pytest.approx(insertion, abs=1e-5)
    assert found["deletion"].mean == pytest.approx(deletion, abs=1e-5)
    assert found["morf"].mean == pytest.approx(deletion, abs=1e-5)
    assert found["lerf"].mean == pytest.approx(insertion, abs=1e-5)
    assert found["ins-del"].mean == pytest.approx(insertion - deletion, abs=1e-5)


def test_no_ranking_of_four_cells_beats_the_weights():
    weights = {0: 0.2, 1: 1.5, 2: -0.4, 3: 0.7}
    oracle = WeightedSum(weights, threshold=1.0, grid=2, link="smooth", sharpness=3.0)
    orders = list(permutations(range(4)))
    maps = torch.zeros(len(orders), 4)
    for row, order in enumerate(orders):
        maps[row, list(order)] = torch.tensor([4.0, 3.0, 2.0, 1.0])
    found = measured(oracle, maps.view(-1, 2, 2), CURVES, 8)

    def strength(cells):
        return 1 / (1 + math.exp(-3.0 * (sum(weights[c] for c in cells) - 1.0)))

    for row, order in enumerate(orders):
        expected = area([strength(order[:k]) for k in range(5)])
        assert float(found["insertion"].values[row]) == pytest.approx(expected, abs=1e-5)
        expected = area([strength(order[k:]) for k in range(5)])
        assert float(found["deletion"].values[row]) == pytest.approx(expected, abs=1e-5)
    best = orders.index((1, 3, 0, 2))
    assert int(found["insertion"].values.argmax()) == best
    assert int(found["deletion"].values.argmin()) == best
    assert int(found["lerf"].values.argmax()) == best
    assert int(found["morf"].values.argmin()) == best


def test_no_random_ranking_beats_the_weights_at_pixels():
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(16, generator=generator)
    oracle = WeightedSum(dict(enumerate(weights.tolist())), threshold=4.0, grid=4, link="smooth", sharpness=1.5)
    ideal = weights.view(1, 4, 4).repeat_interleave(3, dim=1).repeat_interleave(3, dim=2)
    others = torch.rand(200, 12, 12, generator=generator)
    found = measured(oracle, torch.cat([ideal, others]), CURVES[:2], 12, units="pixels", step_size=9)
    assert (found["insertion"].values[0] > found["insertion"].values[1:]).all()
    assert (found["deletion"].values[0] < found["deletion"].values[1:]).all()


def test_random_maps_get_what_chance_gives():
    oracle = AnyOf([(6,)], grid=4, high=0.9, low=0.1)
    maps = torch.rand(600, 4, 4, generator=torch.Generator().manual_seed(5))
    found = measured(oracle, maps, ["insertion", "deletion", "pos"], 8, fractions=None, integration="trapezoid")
    # The cell that matters is the k-th of 16 with equal chance: k - 1 steps low, one half, the others high.
    expected = sum((k - 1) * 0.1 + 0.5 + (16 - k) * 0.9 for k in range(1, 17)) / 16**2
    assert expected == pytest.approx(0.5)
    for name in ("insertion", "deletion"):
        assert found[name].standard_error == pytest.approx(float(found[name].values.std()) / math.sqrt(600))
        assert 0.005 < found[name].standard_error < 0.02
        assert abs(found[name].mean - expected) < 4 * found[name].standard_error
    assert abs(found["pos"].mean - 0.5) < 4 * found["pos"].standard_error


def test_accuracy_counts_where_the_class_wins():
    oracle = AnyOf([(5,)], grid=4, high=0.7, low=0.4)
    maps = torch.zeros(2, 4, 4)
    maps[0, 1, 1] = 1.0
    maps[1] = -maps[0]
    found = measured(oracle, maps, ["pos", "neg"], 16, step_size=None, fractions=(0.25, 0.5, 0.75))
    assert found["pos"].values.tolist() == pytest.approx([0, 1])  # hidden at once; hidden last
    assert found["neg"].values.tolist() == pytest.approx([1, 0])
    assert found["pos"].curves.y.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_a_worse_map_is_worse_by_every_direction():
    """What each metric says is better is what the better map gets."""
    oracle = AnyOf([(5,)], grid=4, high=0.97, low=0.03)
    maps = torch.zeros(2, 4, 4)
    maps[0, 1, 1], maps[1, 3, 3] = 1.0, 1.0
    image = oracle.image(16, shade=1).expand(2, -1, -1, -1)
    box = [(4, 4, 8, 8)] * 2
    left_out = ("pic", "sparseness", "aic", "sic")  # both maps alike, or nothing to interpolate
    names = [n for n, m in all_metrics().items() if "method" not in m.needs and n not in left_out]
    found = measure(
        oracle.classifier(16), image, maps, names, targets=1, boxes=box, baseline="black", enlargement="nearest"
    )
    for name in found.metrics:
        good, bad = found[name].values.tolist()
        assert (good > bad) if all_metrics()[name].higher_is_better else (good < bad), name
        low, high = all_metrics()[name].bounds
        assert low <= min(good, bad) <= max(good, bad) <= high + 1e-6
