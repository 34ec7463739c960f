"""Which sets contain others, against one comparison at a time."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.evidence.search.minimality import contains_any, is_among
from suffice.perturb import Grid
from suffice.perturb.rows import Rows

SETS = st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(0, 8), max_size=5)), max_size=30)


def table(grid, sets):
    cells = [[cell * (grid.cells - 1) // 8 for cell in one] for _, one in sets]
    return Rows(slot=torch.tensor([slot for slot, _ in sets], dtype=torch.long), region=grid.from_cells(cells))


@settings(max_examples=60, deadline=None)
@given(SETS, SETS, st.sampled_from([3, 7, 9]), st.sampled_from([1, 5, 1 << 22]))
def test_contains_any_is_every_pair_compared(outer, inner, side, most):
    grid = Grid(side)
    expected = [any(slot == other and small < large for other, small in inner) for slot, large in outer]
    assert contains_any(grid, table(grid, outer), table(grid, inner), most).tolist() == expected


@settings(max_examples=40, deadline=None)
@given(SETS, SETS)
def test_is_among(rows, others):
    grid = Grid(3)
    assert is_among(table(grid, rows), table(grid, others)).tolist() == [one in others for one in rows]
