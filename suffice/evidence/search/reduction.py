"""Taking sets down until no single cell can go, of many images in lockstep: deletion in an order, then pruning."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from suffice.evidence.search.criterion import Criterion
from suffice.evidence.search.deletion import Deletion
from suffice.evidence.search.minimality import Pruner
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows

Holds = Callable[[Tensor, Tensor], Tensor]
"""From slots [K] and regions [K] or [K, words] to whether what is asked for holds for each, bool [K]."""


def sufficient(criterion: Criterion) -> Holds:
    """Being enough alone, as what holds."""
    return lambda slot, region: criterion.ask(slot, region).suffices


def reduce_sets(grid: Grid, slot: Tensor, region: Tensor, order: Tensor, holds: Holds) -> Rows:
    """Take cells out of sets as long as something holds for what is left.

    Args:
        grid: The grid.
        slot: Image of each set, [K].
        region: The sets, [K] or [K, words]; those for which it does not hold to begin with are left out.
        order: For each set all cells of the grid, the first to go in front, [K, cells].
        holds: What must go on holding.

    Returns:
        What is left: ``slot``, ``region`` and ``rank`` (which of the K sets it was), by rank; of sets of an image that
        end alike only the first.

    Example:
        >>> grid = Grid(3)
        >>> def has_a_corner(slot, region):
        ...     return (region & grid.from_cells([(0, 2, 6, 8)])) != 0
        >>> order = torch.tensor([range(9), range(8, -1, -1)])
        >>> left = reduce_sets(grid, torch.tensor([0, 1]), grid.full(2), order, has_a_corner)
        >>> grid.to_cells(left.region)
        [(8,), (0,)]
    """
    every = torch.arange(len(slot), device=slot.device)
    begin = holds(slot, region).nonzero().flatten()
    deletion, pruner = Deletion(grid, slot.device), Pruner(grid, slot.device)
    deletion.add(slot[begin], region[begin], order[begin], every[begin])
    done = [Rows(slot=slot, region=region, rank=every)[:0]]
    while len(deletion.sets) or len(pruner.sets):
        leaps, single = deletion.questions(), pruner.questions()
        answers = holds(torch.cat([leaps.slot, single.slot]), torch.cat([leaps.region, single.region]))
        done.append(pruner.advance(answers[len(leaps) :]))
        pruner.add(deletion.advance(answers[: len(leaps)]))
    return Rows.cat(done).sorted_by("slot", "region", "rank").first_of_each("slot", "region").sorted_by("rank")
