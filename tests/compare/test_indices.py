"""Indices of how a model decides, on oracles that are known to decide so."""

import math

import numpy as np
import pyarrow as pa
import pytest
import torch

from suffice import find_evidence
from suffice.compare import Index, explained_by, how_it_decides
from suffice.errors import OptionError
from suffice.testing import AnyOf, WeightedSum


def evidence(oracle, images=4):
    pixels = oracle.image(24).repeat(images, 1, 1, 1)
    return find_evidence(oracle.classifier(24), pixels, targets=1, grid=3, baseline="black", max_mses=None).to_arrow()


def test_a_disjunctive_model_has_many_ways_and_nothing_below_them():
    either = how_it_decides(evidence(AnyOf([(0,), (4,), (8,)], grid=3)))
    assert either.disjunctivism.value == pytest.approx(3)
    assert either.independent.value == pytest.approx(3)
    assert either.compositionality.value == pytest.approx(0)
    assert either.size.value == pytest.approx(1)


def test_a_compositional_model_has_one_way_and_much_below_it():
    weights = dict.fromkeys((0, 1, 3, 4), 1.0)
    together = how_it_decides(evidence(WeightedSum(weights, threshold=2.0, grid=3, link="smooth", sharpness=1.0)))
    strict = how_it_decides(evidence(AnyOf([(0, 1, 3, 4)], grid=3)))
    assert together.disjunctivism.value < 2
    assert together.compositionality.value > 1 > strict.compositionality.value
    assert together.gentleness.value > strict.gentleness.value + 0.3
    assert strict.gentleness.value == pytest.approx(0, abs=0.1)


def test_images_without_evidence_are_counted_and_left_out():
    table = evidence(AnyOf([(0, 1)], grid=3), 3)
    net, blank = AnyOf([(0, 1)], grid=3).classifier(24), torch.zeros(2, 3, 24, 24)
    none = find_evidence(net, blank, targets=1, grid=3, baseline="black", min_confidence=0.9).to_arrow()
    found = how_it_decides(pa.concat_tables([table, none]))
    assert (found.images, found.without) == (3, 2)
    assert found.disjunctivism.value == pytest.approx(1)
    with pytest.raises(OptionError, match="two or more are needed"):
        how_it_decides(none)


def test_an_interval_narrows_with_more_images():
    random = np.random.default_rng(0)

    def table(images):
        sizes = random.integers(1, 40, images)
        plain = dict.fromkeys(("mses", "distinct_50", "diverse_0", "mean_size"), sizes)
        return pa.table(plain | {"depth_ratio_sums": [[0.9, 0.5]] * images, "depth_counts": [[1, 1]] * images})

    few, many = how_it_decides(table(20)).disjunctivism, how_it_decides(table(2000)).disjunctivism
    assert few.low < few.value < few.high
    assert many.high - many.low < (few.high - few.low) / 3


def test_intervals_cover():
    random = np.random.default_rng(1)

    def numbers(images):
        ways = random.negative_binomial(2, 0.4, images) + 1
        return {
            "mses": ways,
            "distinct_50": random.lognormal(3, 1.5, images).round(),
            "diverse_0": random.binomial(ways, 0.5).clip(1),
            "mean_size": random.gamma(3, 2, images),
            "gentleness": random.beta(2, 3, images),
        }

    def true(values, geometric=False):
        return np.expm1(np.log1p(values).mean()) if geometric else values.mean()

    all_of_them = numbers(500_000)
    known = {
        "compositionality": true(all_of_them["distinct_50"], geometric=True),
        "disjunctivism": true(all_of_them["mses"], geometric=True),
        "independent": true(all_of_them["diverse_0"]),
        "gentleness": true(all_of_them["gentleness"]),
        "size": true(all_of_them["mean_size"]),
    }
    covered = dict.fromkeys(known, 0)
    for _ in range(300):
        drawn = numbers(60)
        depths = [[1.0, share] for share in drawn.pop("gentleness")]
        found = how_it_decides(pa.table(drawn | {"depth_ratio_sums": depths, "depth_counts": [[1, 1]] * 60}), draws=499)
        for name, value in known.items():
            one = getattr(found, name)
            covered[name] += one.low < value < one.high
    assert min(covered.values()) / 300 > 0.88
    assert max(covered.values()) / 300 < 0.99


def test_what_there_is_of_a_number_is_said():
    assert str(Index(0.5, 0.25, 1.0)) == "0.5 [0.25, 1]"
    assert [str(Index(value, math.nan, math.nan)) for value in (0.5, math.nan)] == ["0.5", "–"]


def test_images_that_few_cells_explain():
    assert explained_by({"a": [[2], [5]], "b": [[], []]}, 3) == {"a": [0, 0, 0.5, 0.5], "b": [0, 0, 0, 0]}
