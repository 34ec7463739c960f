"""From the top down: cells are taken out of a set that suffices, in a given order, until none can go.

Where a beam that grows from single cells ends empty, there still is an explanation below the whole image. One cell
after the other would cost a question each; here several leaps are asked at once (the next 1, 2, 4, … cells), and the
farthest that still suffices is made, so that long runs of needless cells go in a few rounds.
"""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.search.beam import no_sets
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows


class Deletion:
    """Sets from which cells are being taken out, of many images and in many orders side by side.

    It speaks as the :class:`~suffice.evidence.search.minimality.Pruner` does, which comes after it: for models that are
    not monotone, a cell that was needed may be needless once others are gone.

    Attributes:
        sets: Columns ``slot``, ``region``, ``rank``, ``order`` ([K, cells]: the cells of the set, those to be taken out
            first in front, then the others), ``position`` (the order is done up to here) and ``end`` (its cells).
    """

    def __init__(self, grid: Grid, device: torch.device) -> None:
        self.grid = grid
        order = torch.zeros(0, grid.cells, dtype=torch.long, device=device)
        self.sets = no_sets(grid, device, rank=torch.long, position=torch.long, end=torch.long).but(order=order)
        self._leaps = Rows(parent=self.sets.slot, position=self.sets.slot, region=self.sets.region)

    def add(self, slot: Tensor, region: Tensor, order: Tensor, rank: Tensor) -> None:
        """Take in sets that suffice, [K].

        Args:
            slot: Image of each, [K].
            region: The sets, [K] or [K, words].
            order: For each set all cells of the grid, the first to go in front, [K, cells]; cells it does not have are
                passed over.
            rank: Order of discovery, handed out again, [K].
        """
        # A stable sort by absence keeps the order among the cells that are there, and puts the others behind.
        absent = (~self.grid.to_bits(region).gather(1, order)).long()
        order = order.gather(1, absent.sort(dim=1, stable=True).indices)
        position, end = torch.zeros_like(slot), self.grid.count(region)
        new = Rows(slot=slot, region=region, rank=rank, position=position, end=end, order=order)
        self.sets = Rows.cat([self.sets, new])

    def questions(self) -> Rows:
        """Each set without its next 1, 2, 4, … cells; the last leap is to the end of its order."""
        if not len(self.sets):
            return self.sets
        sets, cells = self.sets, torch.arange(self.grid.cells, device=self.sets.slot.device)
        left = sets.end - sets.position
        leaps = 2 ** torch.arange(self.grid.cells.bit_length(), device=left.device)
        parent, number = (leaps < 2 * left[:, None]).nonzero(as_tuple=True)
        position = sets.position[parent] + torch.minimum(leaps[number], left[parent])

        order = sets.order[parent]
        goes = (cells >= sets.position[parent][:, None]) & (cells < position[:, None])
        bits = self.grid.to_bits(sets.region[parent])
        bits &= ~torch.zeros_like(bits).scatter_(1, order, goes)
        self._leaps = Rows(parent=parent, position=position, region=self.grid.from_bits(bits))
        return Rows(slot=sets.slot[parent], region=self._leaps.region)

    def advance(self, suffices: Tensor) -> Rows:
        """Take the answers, bool [K]; hand out the sets at the end of their order: ``slot``, ``region``, ``rank``."""
        if not len(self.sets):
            return Rows(slot=self.sets.slot, region=self.sets.region, rank=self.sets.rank)
        sets, leaps = self.sets, self._leaps
        good = suffices.nonzero().flatten()
        # Leaps are in order of set and length, so that the last one is the farthest.
        farthest = torch.full_like(sets.slot, -1).scatter_reduce_(0, leaps.parent[good], good, "amax")
        made = farthest >= 0
        sets.region[made] = leaps.region[farthest[made]]
        sets.position[made] = leaps.position[farthest[made]]
        sets.position[~made] += 1  # not even the next cell can go: it stays
        finished, self.sets = sets.split(sets.position >= sets.end)
        return Rows(slot=finished.slot, region=finished.region, rank=finished.rank)
