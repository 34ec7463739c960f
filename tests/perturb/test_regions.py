"""Set algebra on bit words against Python's own sets."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import OptionError
from suffice.perturb import Grid

SIDES = st.sampled_from([1, 2, 5, 7, 8, 9, 14])


@st.composite
def grids_with_sets(draw, lists=2):
    grid = Grid(draw(SIDES))
    count = draw(st.integers(0, 5))
    cells = st.sets(st.integers(0, grid.cells - 1), max_size=12)
    return grid, *([draw(cells) for _ in range(count)] for _ in range(lists))


def sets_of(grid, regions):
    return [set(cells) for cells in grid.to_cells(regions)]


@given(grids_with_sets(1))
def test_cells_survive_the_round_trip(case):
    grid, sets = case
    regions = grid.from_cells(sets)
    assert sets_of(grid, regions) == sets
    assert torch.equal(grid.from_bits(grid.to_bits(regions)), regions)
    assert grid.count(regions).tolist() == [len(s) for s in sets]


@given(grids_with_sets(2))
def test_set_algebra(case):
    grid, left, right = case
    a, b = grid.from_cells(left), grid.from_cells(right)
    pairs = list(zip(left, right, strict=True))
    assert sets_of(grid, a | b) == [x | y for x, y in pairs]
    assert sets_of(grid, a & b) == [x & y for x, y in pairs]
    assert sets_of(grid, a & ~b) == [x - y for x, y in pairs]
    assert sets_of(grid, a ^ b) == [x ^ y for x, y in pairs]
    assert sets_of(grid, grid.complement(a)) == [set(range(grid.cells)) - x for x in left]
    assert grid.is_subset(a, b).tolist() == [x <= y for x, y in pairs]
    assert grid.is_subset(a & b, a).all()


@given(grids_with_sets(1))
def test_neighbors(case):
    grid, sets = case
    regions = grid.from_cells(sets)
    parent, cell, child = grid.without_each(regions)
    expected = [(k, c, s - {c}) for k, s in enumerate(sets) for c in sorted(s)]
    assert list(zip(parent.tolist(), cell.tolist(), sets_of(grid, child), strict=True)) == expected

    parent, cell, child = grid.with_each(regions)
    expected = [(k, c, s | {c}) for k, s in enumerate(sets) for c in range(grid.cells) if c not in s]
    assert list(zip(parent.tolist(), cell.tolist(), sets_of(grid, child), strict=True)) == expected


@pytest.mark.parametrize(("side", "words"), [(1, 1), (7, 1), (8, 1), (9, 2), (16, 4), (20, 7)])
def test_full_and_empty(side, words):
    grid = Grid(side)
    assert grid.words == words
    assert grid.count(grid.full(2)).tolist() == [side**2] * 2
    assert grid.count(grid.empty(2)).tolist() == [0, 0]
    assert torch.equal(grid.complement(grid.full(1)), grid.empty(1))


def test_the_sign_bit_is_a_cell_like_any_other():
    grid = Grid(8)
    region = grid.from_cells([(63,)])
    assert region.item() < 0
    assert grid.to_cells(region) == [(63,)]
    assert grid.count(region).item() == 1


def test_mistakes_are_named():
    with pytest.raises(OptionError, match="cells 0 to 48; there is no 49"):
        Grid(7).from_cells([(49,)])
    for regions in ([17, 24], ["ab"], 17):
        with pytest.raises(OptionError, match="Regions are lists of cells"):
            Grid(7).from_cells(regions)
    with pytest.raises(OptionError, match="whole number"):
        Grid(0)
    with pytest.raises(OptionError, match="int64"):
        Grid(7).to_bits(torch.zeros(3))
    with pytest.raises(OptionError, match=r"\[K, 4\]"):
        Grid(16).to_bits(torch.zeros(3, dtype=torch.long))
