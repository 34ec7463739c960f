"""Positions of models."""

import warnings

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA

from suffice.compare.landscapes import aligned, centered, distances, distances_of, kernel_pca, landscape
from suffice.errors import OptionError

NAMES = list("abcdef")


def matrix(seed=0, models=6):
    random = np.random.default_rng(seed)
    places = random.normal(size=(models, 3))
    return places @ places.T + 3 + random.normal(0, 0.05, (models, models))


def test_kernel_pca_is_that_of_scikit_learn_where_it_takes_the_kernel():
    kernel = matrix()
    kernel = (kernel + kernel.T) / 2 + 2 * np.eye(6)  # positive
    ours, explained, negative = kernel_pca(centered(kernel))
    theirs = KernelPCA(2, kernel="precomputed").fit_transform(kernel)
    assert np.abs(ours) == pytest.approx(np.abs(theirs), abs=1e-8)
    assert negative == pytest.approx(0, abs=1e-9)
    assert 0.5 < sum(explained) <= 1


def test_what_no_positions_can_show_is_said():
    kernel = np.array([[0.0, 1, 1], [1, 0, 1], [1, 1, 0]])  # each is nearer to others than to itself
    assert landscape(kernel, NAMES[:3]).negative == pytest.approx(1)


@pytest.mark.parametrize("projection", ["kernel-pca", "mds"])
def test_models_that_are_all_alike_lie_in_one_place(projection):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = landscape(np.ones((4, 4)), NAMES[:4], projection=projection)
    assert not found.positions.any()
    assert f"{found.negative:.0%}" == "0%"


def test_points_in_the_plane_are_found_again():
    places = np.random.default_rng(1).normal(size=(6, 2))
    places -= places.mean(axis=0)
    for projection in ("kernel-pca", "mds"):
        found = landscape(places @ places.T, NAMES, projection=projection)
        assert distances_of(found.positions) == pytest.approx(distances_of(places), abs=1e-3)
        assert aligned(found.positions, places) == pytest.approx(places, abs=1e-3)
    assert found.stress == pytest.approx(0, abs=1e-3)
    assert distances(places @ places.T) == pytest.approx(distances_of(places))


def test_the_order_of_models_does_not_matter():
    scores = matrix()
    order = [3, 1, 5, 0, 2, 4]
    one, other = landscape(scores, NAMES), landscape(scores[order][:, order], [NAMES[i] for i in order])
    assert distances_of(other.positions) == pytest.approx(distances_of(one.positions[order]), abs=1e-8)


def test_which_way_is_up_does_not_matter_for_how_sure_a_position_is():
    random = np.random.default_rng(2)
    truth = matrix()
    spreads = []
    for noise in (0.05, 0.5):
        scores = truth[:, :, None] + random.normal(0, noise, (6, 6, 200))
        spreads.append(landscape(scores, NAMES, draws=100).spread)
    small, large = (np.trace(spread, axis1=1, axis2=2) for spread in spreads)
    assert (small < large).all()
    # A mean of 200 with deviation 0.05 moves little: were maps not aligned, it would be as large as the map itself.
    assert small.max() < 1e-3


def test_the_bootstrap_covers_the_truth():
    random = np.random.default_rng(3)
    places = random.normal(size=(5, 2)) * 2
    places -= places.mean(axis=0)
    truth, inside = places @ places.T, 0
    for number in range(60):
        found = landscape(truth[:, :, None] + random.normal(0, 1, (5, 5, 50)), NAMES[:5], draws=60, seed=number)
        there = aligned(found.positions, places)
        # In its own directions, the position of a model and how far it is said to reach.
        turned = aligned(places, found.positions)
        for model in range(5):
            gap = turned[model] - found.positions[model]
            inside += gap @ np.linalg.solve(found.spread[model] + 1e-12 * np.eye(2), gap) < 5.99
        assert there.shape == (5, 2)
    assert inside / 300 > 0.85


def test_near_models_join_first_in_the_tree():
    places = np.array([[0.0, 0], [0.1, 0], [5, 5], [5, 5.1]])
    tree = landscape(places @ places.T, NAMES[:4]).tree
    assert {tuple(sorted(row[:2])) for row in tree[:2]} == {(0, 1), (2, 3)}


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (3,)])
def test_what_has_no_landscape(shape):
    with pytest.raises(OptionError, match="three or more models"):
        landscape(np.zeros(shape), NAMES[: shape[0]])


def test_where_a_score_is_missing_nobody_is_placed():
    scores = matrix()
    scores[2, 4] = np.nan
    with pytest.raises(OptionError, match="no score of maps of c on e"):
        landscape(scores, NAMES)


def test_how_sure_a_position_is_takes_two_images():
    scores = matrix()[:, :, None].repeat(6, axis=2)
    assert landscape(scores[:, :, :1], NAMES).spread is None
    scores[1, 2, 1:] = np.nan  # of one image only; draws without it do not count
    assert np.isfinite(landscape(scores, NAMES, draws=20).spread).all()
