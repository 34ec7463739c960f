"""Trainings as a level of their own: intervals cover other trainings, and the number that is needed is right."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from suffice.compare.trainings import compare_trainings, seeds_needed
from suffice.errors import OptionError


def drawn(random, effect=0.0, trainings=4, images=100, seed=0.5, image=1.0, group=0.3, rest=1.0):
    """Two architectures: images, trainings, images by architecture, and the rest all at random."""
    shared = random.normal(0, image, images)
    return [
        shared + random.normal(0, group, images) + random.normal(0, seed, (trainings, 1))
        + random.normal(0, rest, (trainings, images)) + shift
        for shift in (effect, 0.0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        *({}, {"seed": 3.0}, {"trainings": 2}),
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ({"seed": 0.0}, {"group": 0.0}, {"rest": 5.0})),
        pytest.param({"trainings": 8, "images": 12}, marks=pytest.mark.slow),
    ],
)
def test_intervals_cover_and_false_positives_are_as_stated(kind):
    random = np.random.default_rng(0)
    found = [compare_trainings(*drawn(random, 1.0, **kind)) for _ in range(1000)]
    covered = sum(one.low < 1.0 < one.high for one in found)
    assert covered / 1000 > 0.93
    null = [compare_trainings(*drawn(random, 0.0, **kind)) for _ in range(1000)]
    assert sum(one.p < 0.05 for one in null) / 1000 < 0.07


def test_pretending_that_there_is_one_training_would_not_cover():
    """What is this for: images alone say too much."""
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        first, second = drawn(random, 1.0)
        difference = first[0] - second[0]
        low, high = stats.t.interval(0.95, 99, difference.mean(), stats.sem(difference))
        covered += low < 1.0 < high
    assert covered / 300 < 0.6


def test_what_the_variance_is_due_to_is_told():
    random = np.random.default_rng(2)
    by_seed = compare_trainings(*drawn(random, seed=3.0, trainings=6))
    by_image = compare_trainings(*drawn(random, seed=0.01, trainings=6, group=2.0, images=20))
    assert by_seed.seed_share > 0.9 > 0.3 > by_image.seed_share
    many = np.mean([compare_trainings(*drawn(random, seed=2.0)).seed_deviation for _ in range(200)])
    assert many == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(("effect", "deviation"), [(1.0, 1.0), (2.0, 1.0), (0.6, 0.8)])
def test_as_many_trainings_as_said_see_the_effect(effect, deviation):
    count = seeds_needed(effect, deviation, power=0.8)
    random = np.random.default_rng(3)
    samples = random.normal(0, deviation, (2, 2000, count))
    p = stats.ttest_ind(samples[0] + effect, samples[1], axis=1).pvalue
    assert (p < 0.05).mean() == pytest.approx(0.8, abs=0.08)
    fewer = random.normal(0, deviation, (2, 4000, count - 1))
    assert (stats.ttest_ind(fewer[0] + effect, fewer[1], axis=1).pvalue < 0.05).mean() < 0.83


def pilot(random, **kind):
    """What many comparisons of eight trainings each see on average, for a difference of 1."""
    found = [compare_trainings(*drawn(random, 1.0, trainings=8, **kind)) for _ in range(200)]
    deviations = {
        name: float(np.mean([getattr(one, name) ** 2 for one in found]) ** 0.5)
        for name in ("seed_deviation", "image_error")
    }
    return replace(found[0], difference=1.0, **deviations)


def power(random, trainings, **kind):
    found = [compare_trainings(*drawn(random, 1.0, trainings=trainings, **kind)) for _ in range(1000)]
    return sum(one.p < 0.05 for one in found) / len(found)


@pytest.mark.parametrize(
    ("kind", "more"),
    [({}, 0), ({"group": 2.0}, 4), ({"images": 30, "group": 1.0}, 4), ({"images": 200, "group": 2.0, "seed": 0.3}, 1)],
)
def test_as_many_trainings_as_said_see_the_effect_on_other_images_too(kind, more):
    random = np.random.default_rng(5)
    known = pilot(random, **kind)
    by_trainings_alone = seeds_needed(1.0, known.seed_deviation)
    count = known.seeds_needed()
    assert count >= by_trainings_alone + more
    assert 0.76 < power(random, count, **kind) < 0.92  # small numbers come in large steps
    if more:
        assert power(random, by_trainings_alone, **kind) < 0.81


def test_where_images_are_too_few_no_number_of_trainings_is_promised():
    random = np.random.default_rng(6)
    kind = {"images": 40, "group": 2.0}
    known = pilot(random, **kind)
    assert known.image_error == pytest.approx(2 * (2 / 40) ** 0.5, rel=0.1)
    assert known.seeds_needed() is None
    assert power(random, 50, **kind) < 0.7
    assert known.seeds_needed(effect=2.0) is not None
    with pytest.raises(OptionError, match="expected two or more"):
        seeds_needed(1.0, 1.0, image_error=0.1)


def test_where_there_is_nothing_to_see():
    assert seeds_needed(0.0, 1.0) is None
    assert seeds_needed(1e-6, 1.0) is None
    assert seeds_needed(1.0, 0.0) == 2
    same = compare_trainings([[1.0, 1.0]] * 2, [[1.0, 1.0]] * 2)
    assert (same.difference, same.p) == (0, 1)
    assert compare_trainings([[2.0, 2.0]] * 2, [[1.0, 1.0]] * 2).p == 0
    assert same.seeds_needed() is None
    rounded = compare_trainings([[math.log(2)] * 7] * 3, [[math.log(2)] * 7] * 5)  # their means differ by rounding
    assert (rounded.difference, rounded.p) == (0, 1)


def test_images_without_a_number_are_left_out_of_all():
    random = np.random.default_rng(4)
    first, second = drawn(random)
    whole = compare_trainings(first[:, 1:], second[:, 1:])
    first[2, 0] = np.nan
    assert compare_trainings(first, second) == whole


@pytest.mark.parametrize("shape", [(1, 5), (3, 1), (3, 4)])
def test_what_cannot_be_compared(shape):
    with pytest.raises(OptionError, match="two or more trainings each"):
        compare_trainings(np.zeros(shape), np.zeros((3, 5)))
