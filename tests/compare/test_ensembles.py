"""Averages of models that are known to complement each other, or not."""

import numpy as np
import pytest
import torch
from scipy import stats

from suffice.compare.ensembles import (
    average_models,
    calibration_error,
    gain_over_best,
    no_better_no_worse,
    suggest_members,
)
from suffice.errors import OptionError


def scores(random, truth, knows, sure=0.9):
    """A model that is right on some images and guesses on the others."""
    found = torch.full((len(truth), 4), (1 - sure) / 3)
    guess = torch.from_numpy(random.integers(0, 4, len(truth)))
    found[torch.arange(len(truth)), torch.where(knows, truth, guess)] = sure
    guessed = ~knows
    found[guessed] = 0.25 + 0.01 * torch.nn.functional.one_hot(guess[guessed], 4)
    return found / found.sum(dim=1, keepdim=True)


@pytest.fixture(scope="module")
def world():
    random = np.random.default_rng(0)
    truth = torch.from_numpy(random.integers(0, 4, 400))
    half = torch.arange(400) % 2 == 0
    models = {
        "even": scores(random, truth, half),
        "also even": scores(random, truth, half),
        "odd": scores(random, truth, ~half),
    }
    return models, truth


def test_models_that_know_different_things_gain(world):
    models, truth = world
    found = average_models(models, truth, ["even", "odd"])
    assert found.accuracy > 0.97
    assert found.gain == pytest.approx(found.accuracy - max(0.6, 0.6), abs=0.08)
    assert 0.2 < found.low < found.gain < found.high
    assert found.p < 1e-6


def test_models_that_know_the_same_do_not(world):
    models, truth = world
    found = average_models(models, truth, ["even", "also even"])
    assert found.low < 0.03
    assert found.p > 0.001


@pytest.mark.parametrize("count", [2, 4, 8])
def test_false_positives_come_no_more_often_than_stated_and_intervals_cover(count):
    """All members are equally accurate, and for each image the mean follows one of them: it gains and loses nothing."""
    random = np.random.default_rng(3)
    members, images, wrong, covered = np.arange(count)[:, None], 80, 0, 0
    for _ in range(1000):
        answers = (random.random((count, images)) < 0.3).astype(int)  # the right one is 0
        sure = members == random.integers(0, count, images)
        high = np.where(sure, 0.95, 0.51)
        score = np.stack([np.where(answers == label, high, 1 - high) for label in (0, 1)], axis=2)
        truth = torch.zeros(images, dtype=torch.long)
        found = average_models(dict(zip("abcdefgh", torch.from_numpy(score), strict=False)), truth)
        assert found.accuracy == pytest.approx(1 - answers[sure].mean())
        wrong += found.p < 0.05
        covered += found.low <= 0 <= found.high
    assert stats.binomtest(wrong, 1000, 0.05, "greater").pvalue > 0.001
    assert stats.binomtest(covered, 1000, 0.95, "less").pvalue > 0.001


def test_intervals_cover_a_gain_and_are_not_wide():
    """Three members are right independently of each other, and the mean follows two of them."""
    random = np.random.default_rng(5)
    shares = np.array([0.8, 0.75, 0.7])
    both = [np.prod(np.delete(shares, left_out)) for left_out in range(3)]
    gain, covered, widths = sum(both) - 2 * shares.prod() - 0.8, 0, []
    for _ in range(500):
        right = random.random((3, 200)) < shares[:, None]
        low, high = gain_over_best(right.sum(axis=0) > 1, right, 0.95)
        covered += low <= gain <= high
        widths.append(high - low)
    assert 0.93 < covered / 500 < 0.995
    error = (0.25 / 200) ** 0.5  # the mean and a member differ on about a quarter of the images
    assert np.mean(widths) < 1.5 * 2 * 1.96 * error


def test_the_test_against_the_best_member_is_mcnemars():
    """With one member it is that of the textbook; with several, gains are as clear as against the best of them."""
    random = np.random.default_rng(4)
    hits, best = random.random(300) < 0.9, random.random(300) < 0.8
    better, worse = int((hits & ~best).sum()), int((best & ~hits).sum())
    known = stats.binomtest(better, better + worse).pvalue
    assert no_better_no_worse(hits, [best]) == pytest.approx(known)
    poor = random.random(300) < 0.5
    assert no_better_no_worse(hits, [poor, best]) == pytest.approx(known)
    assert no_better_no_worse(best, [hits, hits]) == pytest.approx(2 * known)
    assert no_better_no_worse(hits, [hits]) == 1


def test_a_model_alone_is_itself(world):
    models, truth = world
    found = average_models(models, truth, ["odd"])
    assert (found.gain, found.p, found.best) == (0, 1, "odd")
    assert found.log_loss == pytest.approx(float(torch.nn.functional.nll_loss(models["odd"].log(), truth)), abs=1e-5)


def test_those_far_apart_are_suggested_and_verified_on_other_images(world):
    models, truth = world
    apart = np.array([[0.0, 0.1, 1.0], [0.1, 0.0, 0.9], [1.0, 0.9, 0.0]])
    found = suggest_members(models, truth, apart)
    assert found.members == ("even", "odd")
    assert found.images == 200
    assert found.low > 0.1
    assert suggest_members(models, truth, apart, slack=0.0, seed=1).images == 200


def test_distances_are_measured_on_the_images_that_are_not_held_back(world):
    models, truth = world
    asked = []

    def apart(images):
        asked.extend(images)
        return np.array([[0.0, 0.1, 1.0], [0.1, 0.0, 0.9], [1.0, 0.9, 0.0]])

    found = suggest_members(models, truth, apart, held_back=0.25)
    assert len(set(asked)) == 300
    others = [image for image in range(400) if image not in set(asked)]
    known = average_models({name: models[name][others] for name in found.members}, truth[others])
    assert (found.accuracy, found.images) == (pytest.approx(known.accuracy), 100)
    with pytest.raises(OptionError, match="distances between all models"):
        suggest_members(models, truth, lambda images: np.full((3, 3), np.nan))
    with pytest.raises(OptionError, match="distances between all models"):
        suggest_members(models, truth, np.zeros((2, 2)))


def test_calibration_is_zero_where_confidence_is_right():
    random = np.random.default_rng(1)
    confidence = random.uniform(0.3, 1, 20_000)
    right = random.random(20_000) < confidence
    assert calibration_error(confidence, right) < 0.02
    assert calibration_error(np.full(100, 0.99), np.zeros(100, bool)) == pytest.approx(0.99)


def test_what_cannot_be_averaged(world):
    models, truth = world
    with pytest.raises(OptionError, match="no scores of 'evne'"):
        average_models(models, truth, ["evne"])
    with pytest.raises(OptionError, match="same images and classes"):
        average_models(models, truth[:-1])
    with pytest.raises(OptionError, match="a size from 2 to 3"):
        suggest_members(models, truth, np.zeros((3, 3)), size=4)
    with pytest.raises(OptionError, match="too few on one side"):
        suggest_members(models, truth, np.zeros((3, 3)), held_back=1.0)
