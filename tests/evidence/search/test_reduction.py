"""Taking sets down, in orders."""

import torch

from suffice.evidence.search.reduction import reduce_sets
from suffice.perturb import Grid


def test_sets_that_do_not_hold_are_left_out_and_equal_ends_are_one():
    grid = Grid(3)
    needed = grid.from_cells([(4,), (0, 8)])

    def holds(slot, region):
        return grid.is_subset(needed[slot], region)

    slot = torch.tensor([0, 1, 0, 1])
    region = grid.from_cells([range(9), range(8), (3, 4, 5), range(9)])
    order = torch.arange(9).expand(4, 9)
    left = reduce_sets(grid, slot, region, order, holds)
    assert left.slot.tolist() == [0, 1]
    assert left.rank.tolist() == [0, 3]
    assert grid.to_cells(left.region) == [(4,), (0, 8)]


def test_empty_sets_stay_and_nothing_is_asked_of_none():
    grid = Grid(3)
    order = torch.arange(9).expand(2, 9)
    left = reduce_sets(grid, torch.tensor([0, 1]), grid.empty(2), order, lambda s, r: torch.ones_like(s).bool())
    assert grid.to_cells(left.region) == [(), ()]
    none = torch.zeros(0, dtype=torch.long)
    assert len(reduce_sets(grid, none, grid.empty(0), order[:0], lambda s, r: s.bool())) == 0


def test_grids_of_several_words():
    grid = Grid(12)
    needed = grid.from_cells([(3, 70, 143)])
    left = reduce_sets(
        grid,
        torch.zeros(1, dtype=torch.long),
        grid.full(1),
        torch.randperm(144, generator=torch.Generator().manual_seed(0))[None],
        lambda slot, region: grid.is_subset(needed.expand(len(region), -1), region),
    )
    assert grid.to_cells(left.region) == [(3, 70, 143)]


def test_a_cell_that_becomes_needless_later_goes():
    grid = Grid(2)

    def holds(slot, region):
        # 0 is needed as long as 1 is there.
        zero, one, two = (grid.to_bits(region)[:, cell] for cell in range(3))
        return two & (zero | ~one)

    left = reduce_sets(grid, torch.tensor([0]), grid.full(1), torch.tensor([[0, 1, 2, 3]]), holds)
    assert grid.to_cells(left.region) == [(2,)]
