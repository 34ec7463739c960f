"""Pairs of models over the same images: tests that hold their level, intervals that cover."""

import numpy as np
import pytest
from scipy import stats

from suffice.compare.pairwise import (
    bootstrap_mean,
    compare_pairs,
    holm,
    rank_biserial,
    sign_flips,
    wilcoxon,
    wilcoxon_each,
)
from suffice.errors import OptionError


def test_every_pair_is_compared_by_the_images_both_have():
    values = {"a": [1.0, 2, 3, 4, 5], "b": [0.0, 0, 0, np.nan, 0], "c": [5.0, 4, 3, 2, 1]}
    found = {(d.first, d.second): d for d in compare_pairs(values)}
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found["a", "b"].images == 4
    assert found["a", "b"].difference == pytest.approx(11 / 4)
    assert found["a", "b"].effect == pytest.approx(1)
    assert found["a", "c"].effect == pytest.approx(0)
    assert found["a", "c"].low < 0 < found["a", "c"].high


def test_a_wilcoxon_test_is_that_of_scipy_and_says_nothing_of_no_difference():
    difference = np.random.default_rng(0).normal(0.3, 1, 50)
    assert wilcoxon(difference) == pytest.approx(stats.wilcoxon(difference).pvalue)
    assert wilcoxon(np.zeros(5)) == 1
    assert rank_biserial(np.zeros(5)) == 0


def test_many_wilcoxon_tests_at_once_are_each_of_them():
    random = np.random.default_rng(5)
    several = [random.normal(0.1, 1, count).round(1) for count in (5, 60, 200, 200, 60, 51, 30) for _ in range(3)]
    several[6][:] = 0
    several[7][9:] = 0  # many images, few that differ
    assert wilcoxon_each(several) == pytest.approx([wilcoxon(one) for one in several])
    assert wilcoxon_each([]) == []


def test_of_few_images_a_wilcoxon_test_tries_all_signs():
    random = np.random.default_rng(0)
    for count in (1, 3, 6, 8):
        ties, plain = random.integers(-3, 4, count).astype(float), random.normal(size=count)
        for difference in (ties[ties != 0], plain):
            if len(difference):
                assert wilcoxon(difference) == pytest.approx(stats.wilcoxon(difference).pvalue)


def test_a_permutation_test_counts_as_brute_force_does():
    difference = np.array([1.0, 2, -0.5, 3, 1.5, 2.5, -1, 0.5])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    exact = (np.abs(signs @ difference) >= abs(difference.sum()) - 1e-9).mean()
    assert sign_flips(difference, 20_000, np.random.default_rng(0)) == pytest.approx(exact, abs=0.01)


def test_holm_is_that_of_the_textbook():
    # Step down: 0.005·4, 0.01·3, 0.03·2, 0.04·1, each no less than the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1, 1]


@pytest.mark.parametrize("test", ["wilcoxon", "permutation"])
def test_false_positives_come_as_often_as_stated(test):
    random = np.random.default_rng(1)
    wrong = 0
    for _ in range(1000):
        difference = random.standard_t(4, 40)  # heavier tails than the normal's
        p = wilcoxon(difference) if test == "wilcoxon" else sign_flips(difference, 199, random)
        wrong += p < 0.05
    assert stats.binomtest(wrong, 1000, 0.05).pvalue > 0.001


def test_several_pairs_together_hold_the_level():
    random = np.random.default_rng(2)
    wrong = 0
    for _ in range(1000):
        pairs = compare_pairs({name: random.normal(size=30) for name in "abcd"}, draws=1)  # the intervals do not matter
        assert len(pairs) == 6
        wrong += any(pair.clear(0.05) for pair in pairs)
    assert stats.binomtest(wrong, 1000, 0.05, "greater").pvalue > 0.001


def test_power_is_as_predicted():
    random = np.random.default_rng(3)
    seen = sum(sign_flips(random.normal(0.5, 1, 40), 199, random) < 0.05 for _ in range(500))
    free, shift = 39, 0.5 * 40**0.5
    predicted = stats.nct.sf(stats.t.ppf(0.975, free), free, shift)
    assert seen / 500 == pytest.approx(predicted, abs=0.06)


def seen_by_default(draw, images, shift):
    """How often the test that is made unless another is asked for sees a shift."""
    found = [compare_pairs({"a": draw(size=images) + shift, "b": np.zeros(images)}, draws=1)[0] for _ in range(500)]
    return sum(one.p < 0.05 for one in found) / len(found)


@pytest.mark.parametrize(("images", "shift"), [(12, 0.9), (40, 0.5), (80, 0.35)])
def test_power_of_the_default_test_is_as_predicted(images, shift):
    """Of normal differences, Wilcoxon's test makes as much as a t test makes of 3 / π as many images."""
    worth = images * 3 / np.pi
    predicted = stats.nct.sf(stats.t.ppf(0.975, worth - 1), worth - 1, shift * worth**0.5)
    seen = seen_by_default(np.random.default_rng(6).normal, images, shift)
    assert seen == pytest.approx(predicted, abs=0.06)


def test_heavy_tails_cost_the_default_test_no_power():
    """It is the default for that: a t test of the same images would see 0.87."""
    assert seen_by_default(np.random.default_rng(7).laplace, 40, 0.5 * 2**0.5) > 0.89  # the deviation is 2 ** 0.5


@pytest.mark.parametrize("count", [3, 40, 700])
def test_intervals_are_those_of_scipy(count):
    values = np.random.default_rng(count).lognormal(size=count)
    known = stats.bootstrap(
        (values,), np.mean, n_resamples=499, confidence_level=0.9, random_state=np.random.default_rng(1)
    ).confidence_interval
    assert bootstrap_mean(values, 0.9, 499, np.random.default_rng(1)) == pytest.approx([known.low, known.high])


def test_a_single_draw_makes_an_interval_too():
    low, high = bootstrap_mean(np.array([1.0, 2.0, 4.0]), 0.95, 1, np.random.default_rng(0))
    assert 1 <= low <= high <= 4


def test_intervals_cover():
    random = np.random.default_rng(4)
    truth, covered = np.exp(0.5), 0
    for _ in range(400):
        low, high = bootstrap_mean(random.lognormal(size=100), 0.95, 999, random)
        covered += low < truth < high
    assert covered / 400 > 0.88  # skewed as counts are; a normal interval covers no better


def test_results_hang_on_the_seed_and_not_on_the_order_of_the_images():
    random = np.random.default_rng(5)
    values = {"a": random.normal(size=30), "b": random.normal(0.3, 1, 30)}
    once, again = compare_pairs(values, draws=999), compare_pairs(values, draws=999)
    assert once == again
    turned = compare_pairs({name: column[::-1] for name, column in values.items()}, draws=999)
    assert turned[0].difference == pytest.approx(once[0].difference)
    assert turned[0].p == pytest.approx(once[0].p)
    assert turned[0].low == pytest.approx(once[0].low, abs=0.1)


@pytest.mark.parametrize("values", [{"a": [1, 2]}, {"a": [1, 2], "b": [1]}, {"a": [[1, 2]], "b": [[1, 2]]}])
def test_what_cannot_be_compared(values):
    with pytest.raises(OptionError, match="two or more models"):
        compare_pairs(values)


def test_too_few_images_in_common():
    with pytest.raises(OptionError, match="a and b have 1 images in common"):
        compare_pairs({"a": [1, np.nan, 2], "b": [1, 2, np.nan]})
