"""The oracle: a tiny classifier whose decision over the cells of a grid is a known formula.

An oracle looks at how bright each cell of its grid is, averaged over the pixels and channels of the cell: a
white cell is visible, a black one hidden, and the border lies at 0.5. Hide cells with the black baseline.
Class 1 means that the formula holds, class 0 that it does not. The formulas are in
:mod:`suffice.testing.oracles`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from suffice.errors import OptionError
from suffice.vision.classifier import Classifier


class Oracle(nn.Module, ABC):
    """Base of all oracles: the image side, shared; a subclass supplies the formula in :meth:`decide`.

    Args:
        grid: cells along each side; an image has ``grid * grid`` cells, counted row by row.
        cells_used: the cells that the formula depends on; all others may never change the decision.
        high: confidence of class 1 where the formula holds.
        low: confidence of class 1 where it does not.
    """

    used: Tensor

    def __init__(self, grid: int, cells_used: Collection[int], *, high: float = 0.98, low: float = 0.02) -> None:
        super().__init__()
        if grid < 1:
            raise OptionError(f"grid is {grid}; an oracle needs at least one cell a side, such as grid=4")
        if not 0 <= low < high <= 1:
            raise OptionError(f"low={low} and high={high} should satisfy 0 <= low < high <= 1")
        self.grid, self.high, self.low = grid, high, low
        self.cells_used = tuple(sorted(set(cells_used)))
        # A buffer, so that the oracle has a device and moves like any other module.
        self.register_buffer("used", self._members([self.cells_used])[0])

    @abstractmethod
    def decide(self, visible: Tensor) -> Tensor:
        """Whether the formula holds when these cells can be seen, bool [K, cells] -> bool [K]."""

    def strength(self, visible: Tensor) -> Tensor:
        """Confidence of class 1 when these cells can be seen, bool [K, cells] -> float64 [K] in [0, 1]."""
        holds = self.decide(visible)
        strong = torch.full(holds.shape, self.high, dtype=torch.float64, device=holds.device)
        return strong.masked_fill(~holds, self.low)

    def visibility(self, pixels: Tensor) -> Tensor:
        """How bright each cell is: the mean over pixels [N, channels, H, W] of the cell; float32 [N, cells].

        Pixel row ``i`` of ``H`` belongs to row ``i * grid // H`` of the grid, and likewise for columns. An image
        smaller than the grid, so that some cells would have no pixels, is an error.
        """
        height, width = pixels.shape[-2:]
        if min(height, width) < self.grid:
            raise OptionError(
                f"an image of {height}×{width} pixels cannot hold {self.grid}×{self.grid} cells; "
                f"use an image of at least {self.grid} pixels a side"
            )
        # Slices and means, and no matrix product: those would follow autocast and depend on the batch size.
        if height % self.grid == 0 and width % self.grid == 0:  # one reduction, much faster
            tall, wide = height // self.grid, width // self.grid
            blocks = pixels.float().reshape(len(pixels), -1, self.grid, tall, self.grid, wide)
            return blocks.mean(dim=(1, 3, 5)).flatten(1)
        rows = pixels.float().mean(dim=1)
        bands = torch.stack([rows[:, a:b].mean(dim=1) for a, b in _bounds(self.grid, height)], dim=1)
        cells = torch.stack([bands[:, :, a:b].mean(dim=2) for a, b in _bounds(self.grid, width)], dim=2)
        return cells.flatten(1)

    def log_odds(self, visibility: Tensor) -> Tensor:
        """Log-odds of class 1 from float visibilities [N, cells]; float64 [N]."""
        # The margin keeps the log-odds of 0 and 1 finite; float32 probabilities cannot show it.
        return torch.logit(self.strength(visibility > 0.5), eps=1e-12)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits whose softmax is (1 - strength, strength); pixels [N, channels, H, W] -> float32 [N, 2]."""
        odds = self.log_odds(self.visibility(pixels)).float()
        return torch.stack([torch.zeros_like(odds), odds], dim=1)

    def image(self, size: int | tuple[int, int], shade: int | None = None) -> Tensor:
        """An image on which every cell is visible, float32 [3, height, width].

        Args:
            size: side in pixels, or (height, width).
            shade: None for plain white; a seed for a texture between 0.6 and 1, which makes images that
                look different to a method although every oracle with a hard link treats them alike.
        """
        height, width = (size, size) if isinstance(size, int) else size
        if shade is None:
            return torch.ones(3, height, width)
        return 0.6 + 0.4 * torch.rand(3, height, width, generator=torch.Generator().manual_seed(shade))

    def classifier(self, size: int | tuple[int, int]) -> Classifier:
        """This oracle as an ordinary classifier of images of ``size`` pixels."""
        return Classifier(
            self.eval(),
            size=size,
            mean=(0.0, 0.0, 0.0),
            std=(1.0, 1.0, 1.0),
            labels=["no", "yes"],
            name=f"oracle/{type(self).__name__}",
            family="oracle",
            score="softmax",
        )

    def _members(self, sets: Sequence[Collection[int]]) -> Tensor:
        """Sets of cells as bool [sets, cells]; refuses cells that the grid does not have."""
        total = self.grid * self.grid
        members = torch.zeros(len(sets), total, dtype=torch.bool)
        for row, cell in [(row, cell) for row, cells in enumerate(sets) for cell in cells]:
            if not 0 <= cell < total:
                raise OptionError(f"cell {cell} is not in a {self.grid}×{self.grid} grid, which has 0…{total - 1}")
            members[row, cell] = True
        return members


def _bounds(parts: int, length: int) -> list[tuple[int, int]]:
    """First pixel and end of each part, where pixel i belongs to part ``i * parts // length``."""
    starts = [-(-part * length // parts) for part in range(parts + 1)]
    return list(pairwise(starts))
