"""Certifying that no proper subset of an explanation suffices.

Below each single-minimal set all proper subsets are evaluated, small ones first; a subset that suffices is not
enlarged, because what contains it is not minimal. What remains are the subset-minimal sets below those given.
"""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.perturb.regions import Grid
from suffice.perturb.rows import rank_in_group, unique


class Certifier:
    """Subsets of explanations that are being enumerated.

    Args:
        grid: The grid.
        budget: Most subsets to evaluate for one image.
        places: How many images are searched at once.
        device: Where the arrays live.
    """

    def __init__(self, grid: Grid, budget: int, places: int, device: torch.device) -> None:
        self.grid, self.budget = grid, budget
        none = torch.zeros(0, dtype=torch.long, device=device)
        self.place, self.region, self.root = none, grid.empty(0, device), grid.empty(0, device)
        self.found_place, self.found_region = none, grid.empty(0, device)
        self.spent = torch.zeros(places, dtype=torch.long, device=device)
        self.exhausted = torch.zeros(places, dtype=torch.bool, device=device)

    def begin(self, place: Tensor, root: Tensor) -> None:
        """Start below single-minimal sets."""
        self.spent[place], self.exhausted[place] = 0, False
        self.place = torch.cat([self.place, place])
        self.root = torch.cat([self.root, root])
        self.region = torch.cat([self.region, self.grid.empty(len(place), self.region.device)])

    def questions(self) -> tuple[Tensor, Tensor]:
        """Each subset enlarged by a cell of its root beyond its last one: none comes twice below the same root."""
        if not len(self.place):
            return self.place, self.region
        inside, room = self.grid.to_bits(self.region), self.grid.to_bits(self.root)
        beyond = inside.flip(1).cumsum(dim=1).flip(1) == 0
        parent, cell = (room & beyond).nonzero(as_tuple=True)
        place, region, root = self.place[parent], self.region[parent] | self.grid.single(cell), self.root[parent]
        proper = (self.grid.as_words(region) != self.grid.as_words(root)).any(dim=1)
        self.place, self.region, self.root = place[proper], region[proper], root[proper]

        # The same subset of two roots is one question; the budget counts questions.
        rows, same = unique(self.place, self.region)
        asked = self.place[rows]
        affordable = rank_in_group(asked) < self.budget - self.spent[asked]
        self.exhausted[asked[~affordable]] = True
        self.spent += torch.bincount(asked[affordable], minlength=len(self.spent))
        self._only(affordable[same])
        return self.place, self.region

    def advance(self, suffices: Tensor) -> None:
        """Take the answers, bool [K]."""
        self.found_place = torch.cat([self.found_place, self.place[suffices]])
        self.found_region = torch.cat([self.found_region, self.region[suffices]])
        self._only(~suffices)

    def waiting(self, places: int) -> Tensor:
        """How many subsets of each image are still being enlarged, [places]."""
        return torch.bincount(self.place, minlength=places)

    def collect(self, place: int) -> Tensor:
        """The sufficient proper subsets found for one image."""
        mine = self.found_place == place
        found = self.found_region[mine]
        self.found_place, self.found_region = self.found_place[~mine], self.found_region[~mine]
        return found

    def _only(self, rows: Tensor) -> None:
        self.place, self.region, self.root = self.place[rows], self.region[rows], self.root[rows]


def inclusion_minimal(grid: Grid, regions: Tensor) -> Tensor:
    """Which of some distinct regions [K] contain no other one of them, bool [K]."""
    words = grid.as_words(regions)
    contains = ((words[None, :] & ~words[:, None]) == 0).all(dim=2)  # [k, j]: region j lies within region k
    contains.fill_diagonal_(False)
    return ~contains.any(dim=1)
