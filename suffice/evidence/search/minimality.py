"""Making sets that suffice minimal: pruning single cells, and certifying that no proper subset suffices."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.search.beam import no_sets
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
        if not len(self.sets):
            return self.sets
        parent, cell, child = self.grid.without_each(self.sets.region)
        left = Rows(parent=parent, cell=cell, region=child)[cell >= self.sets.cursor.index_select(0, parent)]
        self._deletions = left
        return Rows(slot=self.sets.slot.index_select(0, left.parent), region=left.region)

    def advance(self, suffices: Tensor) -> Rows:
        """Take the answers, bool [K]; hand out the sets that are minimal now: ``slot``, ``region`` and ``rank``."""
        if not len(self.sets):
            return Rows(slot=self.sets.slot, region=self.sets.region, rank=self.sets.rank)
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
    """Evaluates the proper subsets of sets that suffice: what has none that suffices too is minimal for certain.

    Subsets are evaluated small ones first; one that suffices is not enlarged, because what contains it is not minimal.
    So the subsets that are handed out, unless they contain another one of them, are certain as well.

    Attributes:
        subsets: Those being enlarged; columns ``slot``, ``region``, ``root`` (the set they are below) and ``room`` (its
            cells beyond the last one of the subset).
        budget: Most subsets to evaluate for one image.
    """

    def __init__(self, grid: Grid, budget: int, slots: int, device: torch.device) -> None:
        self.grid, self.budget = grid, budget
        self._sufficient = no_sets(grid, device)
        self.subsets = self._sufficient.but(root=grid.empty(0, device), room=grid.empty(0, device))
        self._cut = self._sufficient
        self.spent = torch.zeros(slots, dtype=torch.long, device=device)
        everything = torch.ones(grid.cells, grid.cells, dtype=torch.bool, device=device)
        self._beyond = grid.from_bits(everything.triu(1))  # the cells beyond each cell

    def begin(self, slot: Tensor, root: Tensor) -> None:
        """Start below sets that suffice."""
        self.spent[slot] = 0
        new = Rows(slot=slot, region=self.grid.empty(len(slot), slot.device), root=root, room=root)
        self.subsets = Rows.cat([self.subsets, new])

    def questions(self) -> Rows:
        """Each subset enlarged by a cell of its root beyond its last one: none comes twice below the same root."""
        if not len(self.subsets):
            return self.subsets
        parent, cell, room = self.grid.without_each(self.subsets.room)
        larger = self.subsets[parent]
        larger = larger.but(
            region=larger.region | self.grid.single(cell), room=room & self._beyond.index_select(0, cell)
        )
        proper = (self.grid.as_words(larger.region) != self.grid.as_words(larger.root)).any(dim=1)
        subsets = larger[proper]

        # The same subset of two roots is one question; the budget counts questions.
        rows, same = unique(*self.grid.keys(subsets.slot, subsets.region))
        asked = subsets.slot.index_select(0, rows)
        affordable = rank_in_group(asked) < (self.budget - self.spent).index_select(0, asked)
        self.spent.scatter_add_(0, asked, affordable.long())
        self.subsets, beyond_budget = subsets.split(affordable.index_select(0, same))
        self._cut = Rows.cat([self._cut, Rows(slot=beyond_budget.slot, region=beyond_budget.root)])
        return self.subsets

    def advance(self, suffices: Tensor) -> None:
        """Take the answers, bool [K]."""
        sufficient, self.subsets = self.subsets.split(suffices)
        self._sufficient = Rows.cat([self._sufficient, Rows(slot=sufficient.slot, region=sufficient.region)])

    def collect(self, gone: Tensor) -> tuple[Rows, Rows]:
        """Hand out, for some images, bool [slots]: the subsets that suffice; and the sets that the budget cut off."""
        mine, self._sufficient = self._sufficient.split(gone[self._sufficient.slot])
        cut, self._cut = self._cut.split(gone[self._cut.slot])
        return mine, cut


def contains_any(grid: Grid, outer: Rows, inner: Rows, most: int = 1 << 22) -> Tensor:
    """Which rows of ``outer`` contain a row of ``inner`` of the same slot, other than themselves; bool [K].

    Both have columns ``slot`` and ``region``; no more than about ``most`` pairs are compared at once.
    """
    # What lies within a set has fewer cells: of the others, in order of slot and size, one run.
    inner = inner.but(place=inner.slot * (grid.cells + 1) + grid.count(inner.region)).sorted_by("place")
    first = outer.slot * (grid.cells + 1)
    begins, ends = torch.searchsorted(inner.place, torch.stack([first, first + grid.count(outer.region)]))
    number = ends - begins
    found = torch.zeros(len(outer), dtype=torch.bool, device=outer.slot.device)
    words, within = grid.as_words(outer.region), grid.as_words(inner.region)
    block = (number.cumsum(0) - 1).clamp(min=0) // most
    lengths = block.unique_consecutive(return_counts=True)[1].tolist()
    for rows in torch.arange(len(outer), device=block.device).split(lengths):
        row = torch.repeat_interleave(rows, number[rows])
        other = begins[row] + rank_in_group(row)
        found[row[((within[other] & ~words[row]) == 0).all(dim=1)]] = True
    return found


def is_among(rows: Rows, others: Rows) -> Tensor:
    """Which rows are equal to one of the others in ``slot`` and ``region``, bool [K]."""
    if not len(others):
        return torch.zeros_like(rows.slot, dtype=torch.bool)
    both = Rows.cat([Rows(slot=part.slot, region=part.region) for part in (rows, others)])
    first, same = unique(both.slot, both.region)
    there = torch.zeros(len(first), dtype=torch.bool, device=rows.slot.device)
    there[same[len(rows) :]] = True
    return there[same[: len(rows)]]
