"""Evaluating what lies below the MSEs: the lattice of their subsets, size by size.

All images descend together, each from the size of its own largest MSE. A set with a ratio at or above ``expand_at`` is
expanded by deleting each of its cells; equal sets reached in several ways, or below several MSEs, are evaluated once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.search.beam import no_sets
from suffice.evidence.settings import Settings
from suffice.evidence.thresholds import least
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows, group_sizes, rank_in_group, unique


class Lattice:
    """Sets below the MSEs of the images that are at it; ``truncated``: which have spent their budget, bool [slots]."""

    def __init__(self, grid: Grid, settings: Settings, slots: int, device: torch.device) -> None:
        self.grid, self.settings, self.slots = grid, settings, slots
        self._least = least(settings.expand_at)
        self._roots = self._asked = no_sets(grid, device)
        self._growing = no_sets(grid, device, ratio=torch.float32)
        self._evaluated: list[Rows] = []
        self._size = torch.zeros(slots, dtype=torch.long, device=device)  # of the sets evaluated next
        self._count = torch.zeros(slots, dtype=torch.long, device=device)
        self.truncated = torch.zeros(slots, dtype=torch.bool, device=device)

    def begin(self, mses: Rows) -> None:
        """Start below some MSEs; columns ``slot`` and ``region``."""
        self._count[mses.slot], self.truncated[mses.slot] = 0, False
        self._size.scatter_reduce_(0, mses.slot, self.grid.count(mses.region), "amax", include_self=False)
        self._roots = Rows.cat([self._roots, Rows(slot=mses.slot, region=mses.region)])

    def questions(self) -> Rows:
        """The sets of the next size."""
        parent, _, child = self.grid.without_each(self._growing.region)
        due = self.grid.count(self._roots.region) == self._size.index_select(0, self._roots.slot)
        begun, self._roots = self._roots.split(due)
        sets = Rows.cat([Rows(slot=self._growing.slot.index_select(0, parent), region=child), begun])

        sets = sets[self._size.index_select(0, sets.slot) > 0]
        sets = sets[unique(*self.grid.keys(sets.slot, sets.region))[0]]
        left = self.settings.max_regions - self._count
        within = rank_in_group(sets.slot) < left.index_select(0, sets.slot)
        self._asked, cut = sets.split(within)
        self.truncated[cut.slot] = True
        return self._asked

    def advance(self, ratio: Tensor) -> None:
        """Take the answers, [K]."""
        evaluated = self._asked.but(ratio=ratio)
        self._evaluated.append(evaluated)
        self._growing = evaluated[ratio >= self._least]
        self._count += group_sizes(evaluated.slot, self.slots)
        self._size -= 1

    def finished(self) -> Tensor:
        """Which images have nothing left to expand, bool [slots]."""
        left = torch.cat([self._growing.slot, self._roots.slot])
        return group_sizes(left, self.slots) == 0

    def collect(self, gone: Tensor) -> Rows:
        """Hand out and forget what was evaluated for some images, bool [slots]: ``slot``, ``region``, ``ratio``."""
        evaluated = Rows.cat([self._growing[:0], *self._evaluated])
        mine, rest = evaluated.split(gone[evaluated.slot])
        self._evaluated = [rest]
        return mine
