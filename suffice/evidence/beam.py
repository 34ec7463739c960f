"""One level of beam search, for all images that are ready for it at once."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.settings import Settings
from suffice.perturb.regions import Grid
from suffice.perturb.rows import lexsort, rank_in_group, starts, unique

# Ratios that differ by less than this share of themselves count as equal.
TIE = 1e-5


class Beam:
    """The sets that each image's search goes on from.

    Args:
        grid: The grid.
        settings: The choices.
        places: How many images are searched at once; an image is known by its place.
        device: Where the arrays live.
    """

    def __init__(self, grid: Grid, settings: Settings, places: int, device: torch.device) -> None:
        self.grid, self.settings = grid, settings
        self.place = torch.zeros(0, dtype=torch.long, device=device)
        self.region = grid.empty(0, device)
        # With a seed map: the cells of each image, most salient first.
        self.order = torch.zeros(places, grid.cells, dtype=torch.long, device=device)
        self._asked = (self.place, self.region)

    def begin(self, places: Tensor) -> None:
        """Start new searches from the empty set."""
        self.place = torch.cat([self.place, places])
        self.region = torch.cat([self.region, self.grid.empty(len(places), self.region.device)])

    def questions(self, ready: Tensor) -> tuple[Tensor, Tensor]:
        """The candidates of the next level of the images that are ready, bool [places]: their places and regions."""
        goes = ready[self.place]
        place, region = self.place[goes], self.region[goes]
        self.place, self.region = self.place[~goes], self.region[~goes]

        parent, cell, child = self.grid.with_each(region)
        if self.settings.search == "sag":
            chosen = self._salient(place, region)[parent, cell]
            parent, child = parent[chosen], child[chosen]
        place = place[parent]
        if not self.settings.repeated_sets:
            rows, _ = unique(place, child)
            place, child = place[rows], child[rows]
        self._asked = (place, child)
        return self._asked

    def advance(self, ratio: Tensor, suffices: Tensor) -> tuple[Tensor, Tensor]:
        """Take the answers: keep the best that do not suffice, hand out those that do.

        Args:
            ratio: Of each question, [K].
            suffices: Whether it is enough, bool [K].

        Returns:
            Places and regions of the sets that suffice, best first within each image.
        """
        place, region = self._asked
        order = best_first(place, ratio, region)
        place, region, suffices = place[order], region[order], suffices[order]
        width = self.settings.width
        if self.settings.passing == "beam":
            within = rank_in_group(place) < width
            kept, found = within & ~suffices, within & suffices
        else:
            rest = (~suffices).nonzero().flatten()
            kept = torch.zeros_like(suffices)
            kept[rest[rank_in_group(place[rest]) < width]] = True
            found = suffices
        self.place = torch.cat([self.place, place[kept]])
        self.region = torch.cat([self.region, region[kept]])
        return place[found], region[found]

    def drop(self, gone: Tensor) -> None:
        """Forget the sets of images whose search is over, bool [places]."""
        stays = ~gone[self.place]
        self.place, self.region = self.place[stays], self.region[stays]

    def sizes(self, places: int) -> Tensor:
        """How many sets each image has in the beam, [places]."""
        return torch.bincount(self.place, minlength=places)

    def _salient(self, place: Tensor, region: Tensor) -> Tensor:
        """For each set the candidates: its most salient cells that it does not have yet, bool [K, cells]."""
        order = self.order[place]
        absent = ~self.grid.to_bits(region).gather(1, order)
        chosen = absent & (absent.cumsum(dim=1) <= self.settings.candidates)
        return torch.zeros_like(chosen).scatter_(1, order, chosen)


def best_first(place: Tensor, ratio: Tensor, region: Tensor) -> Tensor:
    """The order of candidates: by image, then by ratio, highest first, then by region.

    Candidates that are equally good often differ in the last bits of their float32 ratios, by the batch that each
    happened to be in. So neighbors in the order whose ratios are nearly equal are ties, and ties go by the region.

    Args:
        place: [K] int64.
        ratio: [K].
        region: [K] or [K, words].

    Returns:
        Positions [K].
    """
    order = lexsort(place, -ratio)
    sorted_ratio = ratio[order]
    new = starts(place[order])
    new[1:] |= sorted_ratio[:-1] - sorted_ratio[1:] > TIE * sorted_ratio[:-1].abs()
    tie = torch.empty_like(place)
    tie[order] = new.cumsum(0)
    return lexsort(tie, region)
