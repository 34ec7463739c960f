"""Scores by family, and the test of whether families matter."""

import numpy as np
import pytest
from scipy import stats

from suffice.compare.families import family_matrix
from suffice.errors import OptionError

FAMILIES = ["cnn"] * 4 + ["vit"] * 4


def drawn(random, gap, images=30):
    same = np.array([[a == b for a in FAMILIES] for b in FAMILIES])
    return 0.4 + gap * same[:, :, None] + random.normal(0, 0.1, (8, 8, 1)) + random.normal(0, 0.3, (8, 8, images))


def test_means_are_over_pairs_of_different_models():
    scores = np.arange(64.0).reshape(8, 8)
    found = family_matrix(scores, FAMILIES)
    assert found.families == ("cnn", "vit")
    inner = scores[:4, :4]
    assert found.means[0, 0] == pytest.approx((inner.sum() - np.trace(inner)) / 12)
    assert found.means[0, 1] == pytest.approx(scores[:4, 4:].mean())
    assert found.means[1, 0] == pytest.approx(scores[4:, :4].mean())
    assert found.pairs.tolist() == [[12, 16], [16, 12]]
    assert family_matrix(scores, FAMILIES, own=True).means[0, 0] == pytest.approx(inner.mean())


def test_a_family_of_one_has_no_mean_of_its_own():
    found = family_matrix(np.random.default_rng(0).random((3, 3, 5)), ["a", "a", "b"], draws=50)
    assert np.isnan(found.means).tolist() == [[False, False], [False, True]]
    assert np.isnan(found.low).tolist() == [[False, False], [False, True]]


def test_families_that_matter_are_found_and_others_not():
    random = np.random.default_rng(1)
    assert family_matrix(drawn(random, 0.3).mean(axis=2), FAMILIES, draws=499).p < 0.05
    p = [family_matrix(drawn(random, 0.0, 5).mean(axis=2), FAMILIES, draws=199).p for _ in range(1000)]
    assert stats.binomtest(sum(value <= 0.05 for value in p), 1000, 0.05, "greater").pvalue > 0.001


def test_intervals_cover_the_mean_over_other_images():
    random = np.random.default_rng(2)
    truth, covered = 0.7, 0
    for number in range(100):
        scores = truth + random.normal(0, 0.3, (8, 8, 40))
        found = family_matrix(scores, FAMILIES, draws=200, seed=number)
        covered += int(((found.low < truth) & (truth < found.high)).sum())
    assert covered / 400 > 0.88


def test_a_pair_without_a_score_is_left_out():
    scores = np.random.default_rng(5).random((8, 8, 3))
    scores[1, 2] = np.nan
    found, matrix = family_matrix(scores, FAMILIES, draws=50), scores.mean(axis=2)
    assert found.pairs.tolist() == [[11, 16], [16, 12]]
    assert found.means[0, 0] == pytest.approx(np.nanmean(np.where(np.eye(4), np.nan, matrix[:4, :4])))
    assert found.means[1, 1] == pytest.approx((matrix[4:, 4:].sum() - np.trace(matrix[4:, 4:])) / 12)
    assert np.isfinite([found.within, found.p, *found.low.flat]).all()


def test_one_image_has_no_interval():
    assert np.isnan(family_matrix(np.ones((8, 8, 1)), FAMILIES, draws=50).low).all()


def test_the_order_of_models_does_not_matter():
    scores = np.random.default_rng(3).random((8, 8))
    order = np.random.default_rng(4).permutation(8)
    one, other = family_matrix(scores, FAMILIES), family_matrix(scores[order][:, order], [FAMILIES[i] for i in order])
    place = [other.families.index(name) for name in one.families]
    assert other.means[place][:, place] == pytest.approx(one.means)
    assert other.within == pytest.approx(one.within)


def test_every_model_has_one_family():
    with pytest.raises(OptionError, match="M families"):
        family_matrix(np.zeros((3, 3)), ["a", "b"])
