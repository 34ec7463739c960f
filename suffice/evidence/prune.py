"""Pruning sets that suffice until no single cell can go.

The rule is sequential: pass over the cells of a set in row-major order, take out each one without which the set still
suffices, and repeat until a pass takes out nothing. It is asked in parallel: all deletions that remain in the pass are
one question each, the first that succeeds is made, and those before it are known to fail. The result is the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.beam import no_sets
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows, rank_in_group


class Pruner:
    """Sets on their way to being minimal.

    Args:
        grid: The grid.
        device: Where the arrays live.

    Attributes:
        sets: Columns ``slot``, ``region``, ``cursor`` (cells before this one have been tried in this pass), ``removed``
            (whether this pass has taken a cell out), ``rank`` (order of discovery within the image).
    """

    def __init__(self, grid: Grid, device: torch.device) -> None:
        self.grid = grid
        self.sets = no_sets(grid, device, cursor=torch.long, removed=torch.bool, rank=torch.long)
        self._deletions = Rows(parent=self.sets.slot, cell=self.sets.slot)

    def add(self, sets: Rows) -> None:
        """Take in sets that suffice; columns ``slot``, ``region`` and ``rank``."""
        zeros = torch.zeros_like(sets.slot)
        self.sets = Rows.cat([self.sets, sets.but(cursor=zeros, removed=zeros.bool())])

    def questions(self) -> Rows:
        """The deletions that remain to be tried in the pass of each set."""
        parent, cell, child = self.grid.without_each(self.sets.region)
        left = (cell >= self.sets.cursor[parent]).nonzero().flatten()
        self._deletions = Rows(parent=parent[left], cell=cell[left])
        return Rows(slot=self.sets.slot[parent[left]], region=child[left])

    def advance(self, suffices: Tensor) -> Rows:
        """Take the answers, bool [K].

        Returns:
            The sets that are minimal now, with ``slot``, ``region`` and ``rank``; they leave the pruner.
        """
        succeed = self._deletions[suffices]
        first = succeed[rank_in_group(succeed.parent) == 0]  # questions are in order of set and cell
        sets, shrinks = self.sets, first.parent
        stuck = torch.ones_like(sets.removed)
        stuck[shrinks] = False
        sets.region[shrinks] ^= self.grid.single(first.cell)
        sets.cursor[shrinks] = first.cell + 1

        done = stuck & ~sets.removed
        sets.cursor[stuck] = 0
        sets.removed[stuck] = False
        sets.removed[shrinks] = True
        finished, rest = sets.split(done)
        # Of those that will end alike only the one found first goes on.
        alike = ("slot", "region", "cursor", "removed")
        self.sets = rest.sorted_by(*alike, "rank").first_of_each(*alike)
        return Rows(slot=finished.slot, region=finished.region, rank=finished.rank)

    def waiting(self, slots: int) -> Tensor:
        """How many sets of each image are being pruned, [slots]."""
        return torch.bincount(self.sets.slot, minlength=slots)
