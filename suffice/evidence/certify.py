"""Certifying that no proper subset of an explanation suffices.

Below each single-minimal set all proper subsets are evaluated, small ones first; a subset that suffices is not
enlarged, because what contains it is not minimal. What remains are the subset-minimal sets below those given.
"""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.beam import no_sets
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows, rank_in_group, unique


class Certifier:
    """Subsets of explanations that are being enumerated.

    Args:
        grid: The grid.
        budget: Most subsets to evaluate for one image.
        slots: How many images are searched at once.
        device: Where the arrays live.

    Attributes:
        subsets: Those being enlarged; columns ``slot``, ``region`` and ``root``, the set they are below.
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

    def waiting(self, slots: int) -> Tensor:
        """How many subsets of each image are still being enlarged, [slots]."""
        return torch.bincount(self.subsets.slot, minlength=slots)

    def collect(self, slot: int) -> Tensor:
        """The sufficient proper subsets found for one image."""
        mine, self._sufficient = self._sufficient.split(self._sufficient.slot == slot)
        return mine.region


def inclusion_minimal(grid: Grid, regions: Tensor) -> Tensor:
    """Which of some distinct regions [K] contain no other one of them, bool [K]."""
    words = grid.as_words(regions)
    contains = ((words[None, :] & ~words[:, None]) == 0).all(dim=2)  # [k, j]: region j lies within region k
    contains.fill_diagonal_(False)
    return ~contains.any(dim=1)
