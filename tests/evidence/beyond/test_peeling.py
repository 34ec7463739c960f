"""Peeling ends where no single cell can go, and takes the least important cells first."""

import pytest
import torch

from suffice.evidence.beyond.peeling import peel_sets
from suffice.evidence.search.criterion import Answers, Criterion
from suffice.evidence.settings import Settings
from suffice.perturb import Grid, Probe
from suffice.testing import AtLeast, WeightedSum, random_formula
from tests.evidence.blocks import Truth


def peeled(oracle, regions, **choices):
    probe = Probe(oracle.classifier(12), oracle.image(12), targets=1, baseline="black", grid=oracle.grid)
    criterion = Criterion.of(probe, Settings(grid=oracle.grid, **choices))
    slot = torch.zeros(len(regions), dtype=torch.long)
    left = peel_sets(probe.grid, slot, probe.grid.from_cells(regions), criterion.ask)
    return probe, dict(zip(left.rank.tolist(), probe.grid.to_cells(left.region), strict=True))


@pytest.mark.parametrize("seed", range(24))
def test_what_is_left_suffices_and_no_cell_can_go(seed):
    oracle = random_formula(seed, grid=3, max_cells=7)
    truth = Truth(oracle)
    regions = truth.sets[5::37]
    _, left = peeled(oracle, regions)
    assert sorted(left) == [row for row, cells in enumerate(regions) if truth.suffices(cells)]
    for row, cells in left.items():
        assert set(cells) <= set(regions[row])
        assert truth.suffices(cells)
        assert not any(truth.suffices(set(cells) - {cell}) for cell in cells)


def test_the_least_important_go():
    weights = {0: 1.0, 1: 4.0, 2: 3.0, 3: 2.0, 5: 0.5}
    oracle = WeightedSum(weights, 6.5, 3, link="smooth", sharpness=8.0)
    assert peeled(oracle, [range(9)])[1] == {0: (1, 2)}


def test_few_questions_where_most_cells_stay():
    probe, left = peeled(AtLeast(14, range(16), grid=4), [range(16)])
    assert len(left[0]) == 14
    # The baseline alone, the whole set, each cell alone, leaps of 2, 4, 8 and 16, and those left once more, twice.
    assert int(probe.forwards) <= 2 + 16 + 4 + 14 + 14


def test_a_cell_that_becomes_needless_later_goes_on_grids_of_any_size():
    grid = Grid(9)

    def ask(slot, region):
        zero, one, last = (grid.to_bits(region)[:, cell] for cell in (0, 1, 80))
        enough = last & (zero | ~one)  # 0 is needed as long as 1 is there
        return Answers(enough.float(), enough, enough)

    left = peel_sets(grid, torch.tensor([4]), grid.from_cells([(0, 1, 80)]), ask)
    assert (left.slot.tolist(), grid.to_cells(left.region)) == ([4], [(80,)])


def test_empty_sets_and_none():
    grid = Grid(3)

    def ask(slot, region):
        return Answers(torch.ones(len(slot)), torch.ones(len(slot), dtype=torch.bool), torch.ones(len(slot)))

    assert grid.to_cells(peel_sets(grid, torch.tensor([0]), grid.empty(1), ask).region) == [()]
    assert len(peel_sets(grid, torch.zeros(0, dtype=torch.long), grid.empty(0), ask)) == 0
