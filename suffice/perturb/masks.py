"""Masks: which pixels show the image (1) and which show the baseline (0).

A set of K masks is an object that makes any rows of itself on demand, so that memory is bounded by one batch
whatever K is. There are three kinds: regions of a grid, given float masks, and ranks with a threshold.
"""

from __future__ import annotations

from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from suffice.errors import OptionError
from suffice.options import allows, in_words
from suffice.perturb.regions import Grid

Cells = Literal["hard", "soft"]
Enlargement = Literal["bilinear", "bilinear-corners", "nearest"]


class Masks(Protocol):
    """What the probe needs of a set of masks."""

    def __len__(self) -> int: ...

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """Make some of the masks for images of so many pixels, [B, H, W] on the device; bool, or float in [0, 1]."""


class NoisyMasks(Masks, Protocol):
    """Masks that come with noise: something added to the inputs once they are blended."""

    def noise(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """What is added to the normalized inputs of some of the questions, [B, 3, H, W]."""


class RegionMasks:
    """Masks that show the cells of regions.

    Args:
        regions: [K] or [K, words] int64; see :mod:`suffice.perturb.regions`.
        grid: The grid whose cells they are.
        cells: ``"hard"`` cells are rectangles of pixels. ``"soft"`` cells are the overlapping tents of structured
            attention graphs: the cells' 0/1 values enlarged bilinearly with corners aligned, by which a corner cell
            shows about a quarter of what an inner one shows.

    Example:
        >>> grid = Grid(2)
        >>> masks = RegionMasks(grid.from_cells([(0, 3)]), grid)
        >>> masks.rows(slice(1), (2, 4), torch.device("cpu")).int()
        tensor([[[1, 1, 0, 0],
                 [0, 0, 1, 1]]], dtype=torch.int32)
    """

    def __init__(self, regions: Tensor, grid: Grid, cells: Cells = "hard") -> None:
        if not allows(Cells, cells):
            raise OptionError(f"cells={cells!r}; it can be {in_words(Cells)}.")
        grid.as_words(regions)  # raises on a wrong shape
        self.regions, self.grid, self.cells = regions, grid, cells

    def __len__(self) -> int:
        return len(self.regions)

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """See :meth:`Masks.rows`; bool for hard cells, float for soft ones."""
        shown = self.shown(rows, device)
        return enlarge(shown.float(), size, "bilinear-corners") if self.cells == "soft" else fill_cells(shown, size)

    def shown(self, rows: slice, device: torch.device) -> Tensor:
        """Whether each cell is shown, bool [B, side, side]: all there is to know of hard cells."""
        bits = self.grid.to_bits(self.regions[rows].to(device))
        # Contiguous, as what is compiled is compiled for strides too.
        return bits.contiguous().view(-1, self.grid.side, self.grid.side)


class FloatMasks:
    """Masks given as numbers [K, h, w] in [0, 1], or bools; smaller ones are enlarged, see :func:`enlarge`."""

    def __init__(self, values: Tensor, enlargement: Enlargement = "bilinear") -> None:
        if values.dim() != 3:
            raise OptionError(f"Float masks are [K, h, w]; got {list(values.shape)}.")
        self.values, self.enlargement = values, enlargement

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """See :meth:`Masks.rows`."""
        values = self.values[rows]
        if device.type == "cuda" and values.device.type == "cpu":
            values = values.pin_memory()  # so that the copy need not wait for the GPU's work before it
        values = values.to(device, non_blocking=True)
        return enlarge(values.float() if values.dtype == torch.bool else values, size, self.enlargement)


class RankMasks:
    """Masks that show the pixels whose rank is below (or not below) a threshold.

    An insertion curve of T steps is one map of ranks and T thresholds; its masks are never all in memory.

    Args:
        ranks: [M, h, w] whole numbers, rank 0 = first.
        which: Which of the M maps each mask uses, [K] int64.
        thresholds: [K].
        show: ``"below"`` shows ranks < threshold (insertion of the first ones), ``"rest"`` the others (deletion).
        enlargement: How the 0/1 mask of a smaller map is enlarged; see :func:`enlarge`.

    Example:
        >>> ranks = torch.tensor([[[0, 1], [2, 3]]])
        >>> masks = RankMasks(ranks, torch.tensor([0, 0]), torch.tensor([1, 3]))
        >>> masks.rows(slice(2), (2, 2), torch.device("cpu")).int().flatten(1)
        tensor([[1, 0, 0, 0],
                [1, 1, 1, 0]], dtype=torch.int32)
    """

    def __init__(
        self,
        ranks: Tensor,
        which: Tensor,
        thresholds: Tensor,
        show: Literal["below", "rest"] = "below",
        enlargement: Enlargement = "nearest",
    ) -> None:
        if ranks.dim() != 3 or which.shape != thresholds.shape or which.dim() != 1:
            raise OptionError(
                f"Expected ranks [M, h, w] and as many maps as thresholds, [K]; got {list(ranks.shape)}, "
                f"{list(which.shape)} and {list(thresholds.shape)}."
            )
        self.ranks, self.which, self.thresholds = ranks.int(), which, thresholds
        self.show, self.enlargement = show, enlargement

    def __len__(self) -> int:
        return len(self.which)

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """See :meth:`Masks.rows`."""
        mask = self.shown(rows, device)
        return mask if tuple(mask.shape[1:]) == size else enlarge(mask.float(), size, self.enlargement)

    def shown(self, rows: slice, device: torch.device) -> Tensor:
        """The same at the size of the maps, bool [B, h, w]."""
        if self.ranks.device != device:  # they are small beside the masks made of them, and needed again and again
            self.ranks, self.which, self.thresholds = (t.to(device) for t in (self.ranks, self.which, self.thresholds))
        mask = self.ranks[self.which[rows]] < self.thresholds[rows, None, None]
        return ~mask if self.show == "rest" else mask


def enlarge(maps: Tensor, size: tuple[int, int], rule: Enlargement = "bilinear") -> Tensor:
    """Enlarge maps [K, h, w] to a height and width; the two bilinear conventions are not interchangeable.

    The rule is ``"bilinear"`` (half-pixel centers), ``"bilinear-corners"`` (corners aligned) or ``"nearest"``.
    """
    if not allows(Enlargement, rule):
        raise OptionError(f"The enlargement is {rule!r}; it can be {in_words(Enlargement)}.")
    if tuple(maps.shape[-2:]) == tuple(size):
        return maps
    if rule == "nearest":
        return interpolate(maps[:, None], size, mode="nearest-exact")[:, 0]
    return interpolate(maps[:, None], size, mode="bilinear", align_corners=rule == "bilinear-corners")[:, 0]


def fill_cells(shown: Tensor, size: tuple[int, int]) -> Tensor:
    """Give every pixel the value of its cell: from [B, side, side] to [B, H, W] of the same type."""
    side = shown.shape[1]
    if size[0] % side == 0 and size[1] % side == 0:
        # Columns first, then whole rows, which are copied faster than single values.
        wide = shown[..., None].expand(-1, -1, -1, size[1] // side).reshape(-1, side, 1, size[1])
        return wide.expand(-1, -1, size[0] // side, -1).reshape(-1, *size)
    rows, columns = (cell_of_pixel(n, shown.shape[1], shown.device) for n in size)
    return shown[:, rows][:, :, columns]


def cell_of_pixel(length: int, side: int, device: torch.device | str | None = None) -> Tensor:
    """The row (or column) of the grid in which each of so many pixel rows (or columns) lies, [length] int64.

    Cells differ by at most one pixel where ``side`` does not divide ``length``.
    """
    return torch.arange(length, device=device) * side // length
