"""Evaluating what lies below the MSEs: the lattice of their subsets, size by size.

All images descend together, each from the size of its own largest MSE. A set with a ratio at or above ``expand_at`` is
expanded by deleting each of its cells; equal sets reached in several ways, or below several MSEs, are evaluated once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.settings import Settings
from suffice.perturb.regions import Grid
from suffice.perturb.rows import rank_in_group, unique


class Lattice:
    """Sets below the MSEs of the images that are at it.

    Args:
        grid: The grid.
        settings: The choices.
        places: How many images are searched at once.
        device: Where the arrays live.
    """

    def __init__(self, grid: Grid, settings: Settings, places: int, device: torch.device) -> None:
        self.grid, self.settings, self.places = grid, settings, places
        none = torch.zeros(0, dtype=torch.long, device=device)
        self._root_place, self._root = none, grid.empty(0, device)
        self._place, self._region, self._ratio = none, grid.empty(0, device), torch.zeros(0, device=device)
        self._asked = (self._place, self._region)
        self._evaluated: list[tuple[Tensor, Tensor, Tensor]] = []
        self._size = torch.zeros(places, dtype=torch.long, device=device)  # of the sets evaluated next
        self._count = torch.zeros(places, dtype=torch.long, device=device)
        self.truncated = torch.zeros(places, dtype=torch.bool, device=device)

    def begin(self, place: Tensor, mses: Tensor) -> None:
        """Start below some MSEs."""
        self._count[place], self.truncated[place] = 0, False
        self._size.scatter_reduce_(0, place, self.grid.count(mses), "amax", include_self=False)
        self._root_place, self._root = torch.cat([self._root_place, place]), torch.cat([self._root, mses])

    def questions(self) -> tuple[Tensor, Tensor]:
        """The sets of the next size: places and regions."""
        grows = self._ratio >= self.settings.expand_at
        place, region = self._place[grows], self._region[grows]
        parent, _, child = self.grid.without_each(region)
        due = self.grid.count(self._root) == self._size[self._root_place]
        place = torch.cat([place[parent], self._root_place[due]])
        region = torch.cat([child, self._root[due]])
        self._root_place, self._root = self._root_place[~due], self._root[~due]

        filled = self.grid.count(region) > 0
        rows, _ = unique(place[filled], region[filled])
        place, region = place[filled][rows], region[filled][rows]
        within = rank_in_group(place) < self.settings.max_regions - self._count[place]
        self.truncated[place[~within]] = True
        self._asked = (place[within], region[within])
        return self._asked

    def advance(self, ratio: Tensor) -> None:
        """Take the answers, [K]."""
        self._place, self._region = self._asked
        self._ratio = ratio
        self._evaluated.append((self._place, self._region, ratio))
        self._count += torch.bincount(self._place, minlength=self.places)
        self._size -= 1

    def finished(self) -> Tensor:
        """Which images have nothing left to expand, bool [places]."""
        grows = self._ratio >= self.settings.expand_at
        left = torch.bincount(self._place[grows], minlength=self.places)
        left += torch.bincount(self._root_place, minlength=self.places)
        return left == 0

    def collect(self, gone: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Hand out and forget what was evaluated for some images, bool [places]: places, regions and ratios."""
        if not self._evaluated:
            return self._place[:0], self._region[:0], self._ratio[:0]
        place, region, ratio = (torch.cat(column) for column in zip(*self._evaluated, strict=True))
        mine = gone[place]
        self._evaluated = [(place[~mine], region[~mine], ratio[~mine])]
        return place[mine], region[mine], ratio[mine]
