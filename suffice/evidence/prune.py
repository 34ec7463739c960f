"""Pruning sets that suffice until no single cell can go.

The rule is sequential: pass over the cells of a set in row-major order, take out each one without which the set still
suffices, and repeat until a pass takes out nothing. It is asked in parallel: all deletions that remain in the pass are
one question each, the first that succeeds is made, and those before it are known to fail. The result is the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.perturb.regions import Grid
from suffice.perturb.rows import lexsort, rank_in_group, starts


class Pruner:
    """Sets on their way to being minimal.

    Args:
        grid: The grid.
        device: Where the arrays live.
    """

    def __init__(self, grid: Grid, device: torch.device) -> None:
        self.grid = grid
        none = torch.zeros(0, dtype=torch.long, device=device)
        self.place, self.region, self.rank = none, grid.empty(0, device), none
        self._cursor = none  # cells before this one have been tried in this pass
        self._removed = none.bool()  # whether this pass has taken a cell out
        self._parent, self._cell = none, none

    def add(self, place: Tensor, region: Tensor, rank: Tensor) -> None:
        """Take in sets that suffice; ``rank`` is their order of discovery within their image."""
        self.place = torch.cat([self.place, place])
        self.region = torch.cat([self.region, region])
        self.rank = torch.cat([self.rank, rank])
        self._cursor = torch.cat([self._cursor, torch.zeros_like(place)])
        self._removed = torch.cat([self._removed, torch.zeros_like(place, dtype=torch.bool)])

    def questions(self) -> tuple[Tensor, Tensor]:
        """The deletions that remain to be tried in the pass of each set: places and regions."""
        parent, cell, child = self.grid.without_each(self.region)
        left = cell >= self._cursor[parent]
        self._parent, self._cell = parent[left], cell[left]
        return self.place[self._parent], child[left]

    def advance(self, suffices: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take the answers, bool [K].

        Returns:
            Places, regions and ranks of the sets that are minimal now; they leave the pruner.
        """
        succeed = suffices.nonzero().flatten()
        first = succeed[rank_in_group(self._parent[succeed]) == 0]  # questions are in order of set and cell
        shrinks, cell = self._parent[first], self._cell[first]
        stuck = torch.ones_like(self.place, dtype=torch.bool)
        stuck[shrinks] = False
        self.region[shrinks] ^= self.grid.single(cell)
        self._cursor[shrinks] = cell + 1

        done = stuck & ~self._removed
        self._cursor[stuck] = 0
        self._removed[stuck] = False
        self._removed[shrinks] = True
        finished = (self.place[done], self.region[done], self.rank[done])
        self._keep(~done)
        return finished

    def waiting(self, places: int) -> Tensor:
        """How many sets of each image are being pruned, [places]."""
        return torch.bincount(self.place, minlength=places)

    def _keep(self, rows: Tensor) -> None:
        """Keep some sets; of those that will end alike only the one found first."""
        columns = [c[rows] for c in (self.place, self.region, self._cursor, self._removed, self.rank)]
        order = lexsort(*columns)
        columns = [c[order] for c in columns]
        first = starts(*columns[:4])
        self.place, self.region, self._cursor, self._removed, self.rank = (c[first] for c in columns)
