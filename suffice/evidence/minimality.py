"""Making sets that suffice minimal: pruning single cells, and certifying that no proper subset suffices."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.beam import no_sets
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows, rank_in_group, unique


class Pruner:
    """Prunes sets that suffice until no single cell can go.

    The rule is sequential: pass over the cells of a set in row-major order, take out each one without which the set
    still suffices, and repeat until a pass takes out nothing. It is asked in parallel: all deletions that remain in the
    pass are one question each, the first that succeeds is made, and those before it are known to fail. The result is
    the same.

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
        """Take the answers, bool [K]; hand out the sets that are minimal now: ``slot``, ``region`` and ``rank``."""
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


class Certifier:
    """Finds the proper subsets of single-minimal sets that suffice, so that what is left can be shown minimal.

    Subsets are evaluated small ones first; one that suffices is not enlarged, because what contains it is not minimal.

    Attributes:
        subsets: Those being enlarged; columns ``slot``, ``region`` and ``root``, the set they are below.
        budget: Most subsets to evaluate for one image.
        exhausted: Whether the budget of an image is spent, bool [slots].
    """

    def __init__(self, grid: Grid, budget: int, slots: int, device: torch.device) -> None:
        self.grid, self.budget = grid, budget
        self._sufficient = no_sets(grid, device)
        self.subsets = self._sufficient.but(root=grid.empty(0, device))
        self.spent = torch.zeros(slots, dtype=torch.long, device=device)
        self.exhausted = torch.zeros(slots, dtype=torch.bool, device=device)

    def begin(self, slot: Tensor, root: Tensor) -> None:
        """Start below single-minimal sets."""
        self.spent[slot], self.exhausted[slot] = 0, False
        new = Rows(slot=slot, region=self.grid.empty(len(slot), slot.device), root=root)
        self.subsets = Rows.cat([self.subsets, new])

    def questions(self) -> Rows:
        """Each subset enlarged by a cell of its root beyond its last one: none comes twice below the same root."""
        if not len(self.subsets):
            return self.subsets
        inside, room = self.grid.to_bits(self.subsets.region), self.grid.to_bits(self.subsets.root)
        beyond = inside.flip(1).cumsum(dim=1).flip(1) == 0
        parent, cell = (room & beyond).nonzero(as_tuple=True)
        larger = self.subsets[parent]
        larger = larger.but(region=larger.region | self.grid.single(cell))
        proper = (self.grid.as_words(larger.region) != self.grid.as_words(larger.root)).any(dim=1)
        subsets = larger[proper]

        # The same subset of two roots is one question; the budget counts questions.
        rows, same = unique(subsets.slot, subsets.region)
        asked = subsets.slot[rows]
        affordable = rank_in_group(asked) < self.budget - self.spent[asked]
        self.exhausted[asked[~affordable]] = True
        self.spent += torch.bincount(asked[affordable], minlength=len(self.spent))
        self.subsets = subsets[affordable[same]]
        return self.subsets

    def advance(self, suffices: Tensor) -> None:
        """Take the answers, bool [K]."""
        sufficient, self.subsets = self.subsets.split(suffices)
        self._sufficient = Rows.cat([self._sufficient, Rows(slot=sufficient.slot, region=sufficient.region)])

    def collect(self, slot: int) -> Tensor:
        """Hand out the sufficient proper subsets found for one image."""
        mine, self._sufficient = self._sufficient.split(self._sufficient.slot == slot)
        return mine.region


def inclusion_minimal(grid: Grid, regions: Tensor) -> Tensor:
    """Which of some distinct regions [K] contain no other one of them, bool [K]."""
    words = grid.as_words(regions)
    contains = ((words[None, :] & ~words[:, None]) == 0).all(dim=2)  # [k, j]: region j lies within region k
    contains.fill_diagonal_(False)
    return ~contains.any(dim=1)
