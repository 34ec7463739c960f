"""One level of beam search, for all images that are ready for it at once."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.settings import Settings
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows, lexsort, rank_in_group, starts, unique
from suffice.vision.noise import normal_noise

# Ratios that differ by less than this share of themselves count as equal.
TIE = 1e-5


class Beam:
    """The sets that each image's search goes on from; an image is known by its slot.

    Attributes:
        sets: The beam; columns ``slot`` and ``region``.
        order: With a seed map: the cells of each image, most salient first, [slots, cells].
        seeds: With ``beam_noise``: the seed of each image, [slots].
    """

    def __init__(self, grid: Grid, settings: Settings, slots: int, device: torch.device) -> None:
        self.grid, self.settings = grid, settings
        self.sets = no_sets(grid, device)
        self.order = torch.zeros(slots, grid.cells, dtype=torch.long, device=device)
        self.seeds = torch.zeros(slots, dtype=torch.long, device=device)
        self._asked = self._going = self.sets

    def begin(self, slots: Tensor) -> None:
        """Start new searches from the empty set."""
        new = Rows(slot=slots, region=self.grid.empty(len(slots), slots.device))
        self.sets = Rows.cat([self.sets, new])

    def questions(self, ready: Tensor, exhaustive: Tensor) -> Rows:
        """The candidates of the next level of the images that are ready, bool [slots].

        Of those that are ``exhaustive``, bool [slots], every cell is a candidate.
        """
        going, self.sets = self.sets.split(ready[self.sets.slot])
        self._going = going
        parent, cell, child = self.grid.with_each(going.region)
        if self.settings.search == "sag":
            chosen = self._salient(going)[parent, cell] | exhaustive[going.slot][parent]
            parent, child = parent[chosen], child[chosen]
        candidates = Rows(slot=going.slot.index_select(0, parent), region=child)
        if not self.settings.repeated_sets:
            candidates = candidates[unique(*self.grid.keys(candidates.slot, candidates.region))[0]]
        self._asked = candidates
        return candidates

    def leave_out(self, which: Tensor) -> Rows:
        """Do not ask about some of the candidates, bool [K]; returns the others."""
        self._asked = self._asked[~which]
        return self._asked

    def hold(self, held: Tensor) -> Tensor:
        """Leave the level of some images, bool [slots], for another time; returns which of the candidates go on [K]."""
        going = (~held.index_select(0, self._asked.slot)).nonzero().flatten()
        self._asked = self._asked[going]
        self.sets = Rows.cat([self.sets, self._going[held[self._going.slot]]])
        return going

    def advance(self, ratio: Tensor, suffices: Tensor, exhaustive: Tensor) -> Rows:
        """Take the answers [K]: keep the best that do not suffice, hand out those that do, best first in each image.

        Of images that are ``exhaustive``, bool [slots], all sets are kept.
        """
        ratio = self._with_chance(ratio)
        order = best_first(self._asked.slot, ratio, self._asked.region)
        scored = self._asked.but(ratio=ratio, suffices=suffices)[order]
        suffices = scored.suffices
        width = torch.where(exhaustive.index_select(0, scored.slot), len(scored), self.settings.width)
        if self.settings.passing == "beam":
            within = rank_in_group(scored.slot) < width
            kept, passing = scored[within & ~suffices], scored[within & suffices]
        else:
            passing, rest = scored.split(suffices)
            if self.settings.prefer_disjoint:
                rest = self._disjoint_first(rest)
            kept = rest[rank_in_group(rest.slot) < width[~suffices]]
        self.sets = Rows.cat([self.sets, Rows(slot=kept.slot, region=kept.region)])
        return Rows(slot=passing.slot, region=passing.region)

    def _with_chance(self, ratio: Tensor) -> Tensor:
        """Ratios as the beam ranks them: where asked for, with a little noise."""
        if not self.settings.beam_noise:
            return ratio
        # By image and region alone, so that neither batches nor the other images matter.
        draw = self.grid.as_words(self._asked.region).sum(dim=1) & (1 << 62) - 1
        noise = normal_noise(self.seeds[self._asked.slot], draw, (1,))[:, 0]
        return ratio * torch.exp(self.settings.beam_noise * noise)

    def _disjoint_first(self, sets: Rows) -> Rows:
        """Sets [K], best first in each image, so that each next one shares few cells with those before it.

        It is the best by its ratio times the share of its cells that those before it do not have. As many are chosen as
        the beam is wide; the others stay behind them.
        """
        bits, place = self.grid.to_bits(sets.region), torch.full_like(sets.slot, self.settings.width)
        taken = torch.zeros(len(self.order), self.grid.cells, dtype=torch.bool, device=place.device)
        for number in range(self.settings.width):
            left = (place == self.settings.width).nonzero().flatten()
            fresh = (bits[left] & ~taken[sets.slot[left]]).sum(dim=1) / bits[left].sum(dim=1)
            rows = left[best_first(sets.slot[left], sets.ratio[left] * fresh, sets.region[left])]
            first = rows[rank_in_group(sets.slot[rows]) == 0]
            place[first] = number
            taken[sets.slot[first]] |= bits[first]
        return sets[lexsort(sets.slot, place)]

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
    sorted_ratio = ratio.index_select(0, order)
    new = starts(slot.index_select(0, order))
    new[1:] |= sorted_ratio[:-1] - sorted_ratio[1:] > TIE * sorted_ratio[:-1].abs()
    # Most are alone; only those that are not are sorted once more, among the places that they have.
    tied = ~new
    tied[:-1] |= ~new[1:]
    places = tied.nonzero().flatten()
    rows = order.index_select(0, places)
    tie = new.cumsum(0).index_select(0, places)
    order[places] = rows.index_select(0, lexsort(tie, region.index_select(0, rows)))
    return order
