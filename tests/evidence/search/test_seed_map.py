"""Seed maps rank the cells that matter first."""

import pytest
import torch

from suffice.evidence import Settings
from suffice.evidence.search.seed_map import seed_map
from suffice.perturb import Runner
from suffice.testing import WeightedSum


def seed_map_of(oracle, ids=("a",), shade=None, **choices):
    image = oracle.image(56) if shade is None else oracle.image(56, shade=shade)
    pixels = image.reshape(-1, 3, 56, 56).expand(len(ids), -1, -1, -1)
    targets = torch.ones(len(ids), dtype=torch.long)
    return seed_map(Runner(oracle.classifier(56)), pixels, targets, Settings(baseline="black", **choices), ids)


def test_used_cells_come_first():
    oracle = WeightedSum({16: 1.0, 17: 1.0, 32: 1.0}, threshold=1.5, grid=7, link="smooth")
    saliency = seed_map_of(oracle, shade=4)
    assert set(saliency.flatten().topk(3).indices.tolist()) == {16, 17, 32}


def test_where_nothing_pays_the_gradient_still_ranks_cells():
    # The whole image is certain by far, so that no small deletion is felt, and larger ones cost too much.
    weights = {16: 1.0, 17: 0.8, 32: 0.6}
    saliency = seed_map_of(WeightedSum(weights, threshold=0.5, grid=7, link="smooth", sharpness=30.0))
    assert 0 < saliency.max() < 1e-6
    assert saliency.flatten().topk(3).indices.tolist() == [16, 17, 32]


@pytest.mark.parametrize("grid", [1, 5])
def test_maps_have_the_size_of_the_grid(grid):
    oracle = WeightedSum({0: 1.0}, threshold=0.5, grid=7, link="smooth")
    assert seed_map_of(oracle, grid=grid).shape == (1, grid, grid)


def test_noise_depends_on_the_image_the_seed_and_the_defect():
    oracle = WeightedSum({16: 1.0, 17: 1.0}, threshold=1.0, grid=7, link="smooth")
    a, b, again = seed_map_of(oracle, ids=["a", "b", "a"])
    torch.testing.assert_close(a, again)
    assert not torch.allclose(a, b)
    assert not torch.allclose(a, seed_map_of(oracle, seed=1)[0])
    assert not torch.allclose(a, seed_map_of(oracle, noise_defect=True)[0])
