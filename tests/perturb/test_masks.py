"""Masks against literal ones."""

import numpy as np
import pytest
import torch

from suffice.errors import OptionError
from suffice.perturb import FloatMasks, Grid, RankMasks, RegionMasks, enlarge

CPU = torch.device("cpu")


def all_rows(masks, size):
    return masks.rows(slice(None), size, CPU)


@pytest.mark.parametrize(("side", "size"), [(7, (224, 224)), (7, (60, 45)), (9, (56, 56)), (1, (8, 8))])
def test_hard_cells_are_the_rectangles_of_the_grid(side, size):
    grid = Grid(side)
    chosen = sorted({0, side - 1, grid.cells // 2, grid.cells - 1})
    mask = all_rows(RegionMasks(grid.from_cells([chosen]), grid), size)[0]
    literal = np.zeros(size, dtype=bool)
    for i in range(size[0]):
        for j in range(size[1]):
            literal[i, j] = (i * side // size[0]) * side + j * side // size[1] in chosen
    assert mask.dtype == torch.bool
    assert np.array_equal(mask.numpy(), literal)


def test_hard_cells_tile_the_image():
    grid = Grid(7)
    masks = all_rows(RegionMasks(grid.single(torch.arange(49)), grid), (100, 90))
    assert torch.equal(masks.int().sum(dim=0), torch.ones(100, 90, dtype=torch.int32))


def test_soft_cells_have_the_weights_of_structured_attention_graphs():
    # Known weights of one cell at 224: 1381 pixels inside, 709 on an edge, 364 in a corner (nominal: 1024).
    grid = Grid(7)
    masks = all_rows(RegionMasks(grid.from_cells([(24,), (3,), (0,)]), grid, "soft"), (224, 224))
    assert masks.sum(dim=(1, 2)).round().tolist() == [1381, 709, 364]
    assert (masks[0] > 0).sum().item() == 74 * 74


def test_soft_cells_of_everything_hide_nothing():
    grid = Grid(7)
    everything = all_rows(RegionMasks(grid.full(1), grid, "soft"), (224, 224))
    assert torch.allclose(everything, torch.ones_like(everything))


def test_rank_masks_show_a_growing_set():
    ranks = torch.randperm(48).view(1, 6, 8)
    thresholds = torch.arange(0, 49, 6)
    which = torch.zeros_like(thresholds)
    below = all_rows(RankMasks(ranks, which, thresholds), (6, 8))
    rest = all_rows(RankMasks(ranks, which, thresholds, show="rest"), (6, 8))
    assert below.sum(dim=(1, 2)).tolist() == thresholds.tolist()
    assert torch.equal(rest, ~below)
    assert (below[:-1] <= below[1:]).all()


def test_small_ranks_are_enlarged():
    ranks = torch.arange(4).view(1, 2, 2)
    mask = all_rows(RankMasks(ranks, torch.tensor([0]), torch.tensor([1])), (4, 4))
    assert mask[0].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_the_two_bilinear_rules_differ():
    maps = torch.rand(1, 7, 7)
    corners = enlarge(maps, (28, 28), "bilinear-corners")
    assert torch.equal(corners[0, [0, 0, -1, -1], [0, -1, 0, -1]], maps[0, [0, 0, -1, -1], [0, -1, 0, -1]])
    assert not torch.allclose(corners, enlarge(maps, (28, 28), "bilinear"))


def test_mistakes_are_named():
    grid = Grid(7)
    with pytest.raises(OptionError, match="'hard' or 'soft'"):
        RegionMasks(grid.full(1), grid, "round")
    with pytest.raises(OptionError, match=r"\[K, h, w\]"):
        FloatMasks(torch.rand(7, 7))
    with pytest.raises(OptionError, match="thresholds"):
        RankMasks(torch.zeros(1, 2, 2), torch.zeros(3, dtype=torch.long), torch.zeros(2))
    with pytest.raises(OptionError, match="enlargement"):
        enlarge(torch.rand(1, 2, 2), (4, 4), "cubic")
