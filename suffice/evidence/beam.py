"""One level of beam search, for all images that are ready for it at once."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.settings import Settings
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows, lexsort, rank_in_group, starts, unique

# Ratios that differ by less than this share of themselves count as equal.
TIE = 1e-5


class Beam:
    """The sets that each image's search goes on from; an image is known by its slot.

    Attributes:
        sets: The beam; columns ``slot`` and ``region``.
        order: With a seed map: the cells of each image, most salient first, [slots, cells].
    """

    def __init__(self, grid: Grid, settings: Settings, slots: int, device: torch.device) -> None:
        self.grid, self.settings = grid, settings
        self.sets = no_sets(grid, device)
        self.order = torch.zeros(slots, grid.cells, dtype=torch.long, device=device)
        self._asked = self.sets

    def begin(self, slots: Tensor) -> None:
        """Start new searches from the empty set."""
        new = Rows(slot=slots, region=self.grid.empty(len(slots), slots.device))
        self.sets = Rows.cat([self.sets, new])

    def questions(self, ready: Tensor) -> Rows:
        """The candidates of the next level of the images that are ready, bool [slots]."""
        going, self.sets = self.sets.split(ready[self.sets.slot])
        parent, cell, child = self.grid.with_each(going.region)
        if self.settings.search == "sag":
            chosen = self._salient(going)[parent, cell]
            parent, child = parent[chosen], child[chosen]
        candidates = Rows(slot=going.slot[parent], region=child)
        if not self.settings.repeated_sets:
            candidates = candidates[unique(candidates.slot, candidates.region)[0]]
        self._asked = candidates
        return candidates

    def advance(self, ratio: Tensor, suffices: Tensor) -> Rows:
        """Take the answers [K]: keep the best that do not suffice, hand out those that do, best first in each image."""
        order = best_first(self._asked.slot, ratio, self._asked.region)
        scored, suffices = self._asked[order], suffices[order]
        width = self.settings.width
        if self.settings.passing == "beam":
            within = rank_in_group(scored.slot) < width
            kept, passing = within & ~suffices, within & suffices
        else:
            rest = (~suffices).nonzero().flatten()
            kept = torch.zeros_like(suffices)
            kept[rest[rank_in_group(scored.slot[rest]) < width]] = True
            passing = suffices
        self.sets = Rows.cat([self.sets, scored[kept]])
        return scored[passing]

    def drop(self, gone: Tensor) -> None:
        """Forget the sets of images whose search is over, bool [slots]."""
        self.sets = self.sets[~gone[self.sets.slot]]

    def _salient(self, sets: Rows) -> Tensor:
        """For each set the candidates: its most salient cells that it does not have yet, bool [K, cells]."""
        order = self.order[sets.slot]
        absent = ~self.grid.to_bits(sets.region).gather(1, order)
        chosen = absent & (absent.cumsum(dim=1) <= self.settings.candidates)
        return torch.zeros_like(chosen).scatter_(1, order, chosen)


def no_sets(grid: Grid, device: torch.device, **dtypes: torch.dtype) -> Rows:
    """An empty table of sets: columns ``slot``, ``region``, and others by name and type."""
    none = torch.zeros(0, dtype=torch.long, device=device)
    return Rows(slot=none, region=grid.empty(0, device), **{name: none.to(dtype) for name, dtype in dtypes.items()})


def best_first(slot: Tensor, ratio: Tensor, region: Tensor) -> Tensor:
    """The order [K] of candidates: by image, then by ratio, highest first, then by region.

    Candidates that are equally good often differ in the last bits of their float32 ratios, by the batch that each
    happened to be in. So neighbors in the order whose ratios are nearly equal are ties, and ties go by the region.
    """
    order = lexsort(slot, -ratio)
    sorted_ratio = ratio[order]
    new = starts(slot[order])
    new[1:] |= sorted_ratio[:-1] - sorted_ratio[1:] > TIE * sorted_ratio[:-1].abs()
    tie = torch.empty_like(slot)
    tie[order] = new.cumsum(0)
    return lexsort(tie, region)
