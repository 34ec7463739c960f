"""Differences between architectures at equal accuracy."""

import numpy as np
import pytest
from scipy import stats

from suffice.compare import adjusted_difference, compare_trainings
from suffice.errors import OptionError


def drawn(rng, effect, slope=8.0, apart=0.02, trainings=10):
    """Trainings of two architectures, the first of which is more accurate: outcomes and accuracies."""
    accuracy = [rng.normal(0.85 + shift, 0.02, trainings) for shift in (apart, 0)]
    outcome = [
        slope * own + rng.normal(shift, 0.1, trainings) for own, shift in zip(accuracy, (effect, 0), strict=True)
    ]
    return outcome, accuracy


@pytest.mark.parametrize("effect", [0.0, 0.3])
def test_intervals_cover_and_false_positives_are_as_stated(effect):
    rng = np.random.default_rng(1)
    covered, positive, times = 0, 0, 1000
    for _ in range(times):
        outcome, accuracy = drawn(rng, effect)
        found = adjusted_difference(*outcome, {"accuracy": accuracy, "noise": tuple(rng.normal(size=(2, 10)))})
        covered += found.low <= effect <= found.high
        positive += found.p < 0.05
    low, high = stats.binom.interval(0.999, times, 0.95)
    assert low <= covered <= high
    assert positive <= times - low if effect == 0 else positive > times // 2


def test_what_accuracy_explains_is_not_taken_for_the_architecture():
    outcome, accuracy = drawn(np.random.default_rng(2), 0.0, slope=20.0, apart=0.04)
    images = np.random.default_rng(3).normal(0, 0.1, 50)
    plain = compare_trainings(*([[value + images for value in own] for own in outcome]))
    assert plain.p < 0.001
    found = adjusted_difference(*outcome, {"accuracy": accuracy})
    assert found.low < 0 < found.high
    assert found.slopes["accuracy"] == pytest.approx(20, abs=5)


def test_nothing_else_known_is_students_test():
    first, second = np.random.default_rng(4).normal(size=(2, 7))
    found, wanted = adjusted_difference(first, second, {}), stats.ttest_ind(first, second)
    assert found.difference == pytest.approx(first.mean() - second.mean())
    assert found.p == pytest.approx(wanted.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(wanted.confidence_interval()))


def test_what_is_the_same_in_all_trainings_does_not_differ():
    found = adjusted_difference([0.1] * 3, [0.1] * 4, {"accuracy": ([0.8, 0.81, 0.82], [0.83, 0.8, 0.84, 0.9])})
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("first", "beside", "words"),
    [
        ([1.0], {}, "too few"),
        ([1.0, 2.0, 3.0], {"a": ([0, 0, 0], [1, 1, 1])}, "tells the architectures apart"),
        ([1.0, 2.0, 3.0], {"a": ([1, 2, 3], [3, 1, 1]), "b": ([2, 4, 6], [6, 2, 2])}, "follows from the others"),
        ([1.0, 2.0, 3.0], {"a": ([1, 2], [3, 1, 1])}, "a number for each training"),
        ([1.0, 2.0, np.nan], {}, "finite"),
    ],
)
def test_what_cannot_be_adjusted_is_said(first, beside, words):
    with pytest.raises(OptionError, match=words):
        adjusted_difference(first, [1.0, 2.0, 4.0], beside)
