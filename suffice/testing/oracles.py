"""Oracles: tiny classifiers whose decision over the cells of a grid is a known formula.

What is enough for an oracle to decide follows from its formula by pure thought (or by the brute force of
:mod:`suffice.testing.truth`), so that a search, a count or a map can be checked against the truth instead of
against yesterday's output.

An oracle looks at how bright each cell of its grid is, averaged over the pixels and channels of the cell: a
white cell is visible, a black one hidden, and the border lies at 0.5. Hide cells with the black baseline.
Class 1 means that the formula holds, class 0 that it does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from suffice.errors import OptionError
from suffice.vision.classifier import Classifier

# Weights may not be exact in binary (0.1 + 0.2 against 0.3), nor survive a cast of the module to float32.
ROUNDING = 1e-6


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
        self.grid = grid
        self.high = high
        self.low = low
        self.cells_used = tuple(sorted(set(cells_used)))
        # A buffer, so that the oracle has a device and moves like any other module.
        self.register_buffer("used", self._members([self.cells_used])[0])

    @abstractmethod
    def decide(self, visible: Tensor) -> Tensor:
        """The formula.

        Args:
            visible: bool [K, cells], which cells can be seen.

        Returns:
            bool [K], whether the formula holds.
        """

    def strength(self, visible: Tensor) -> Tensor:
        """Confidence of class 1.

        Args:
            visible: bool [K, cells], which cells can be seen.

        Returns:
            float64 [K] in [0, 1].
        """
        holds = self.decide(visible)
        strong = torch.full(holds.shape, self.high, dtype=torch.float64, device=holds.device)
        return strong.masked_fill(~holds, self.low)

    def visibility(self, pixels: Tensor) -> Tensor:
        """How bright each cell is: the mean over its pixels and channels.

        Pixel row ``i`` of ``H`` belongs to row ``i * grid // H`` of the grid, and likewise for columns.

        Args:
            pixels: [N, channels, H, W].

        Returns:
            float32 [N, cells].

        Raises:
            OptionError: if the image is smaller than the grid, so that some cells would have no pixels.
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
        """Logits whose softmax is (1 - strength, strength).

        Args:
            pixels: [N, channels, H, W], brightness in [0, 1].

        Returns:
            float32 [N, 2].
        """
        odds = self.log_odds(self.visibility(pixels)).float()
        return torch.stack([torch.zeros_like(odds), odds], dim=1)

    def image(self, size: int | tuple[int, int], shade: int | None = None) -> Tensor:
        """An image on which every cell is visible.

        Args:
            size: side in pixels, or (height, width).
            shade: None for plain white; a seed for a texture between 0.6 and 1, which makes images that
                look different to a method although every oracle with a hard link treats them alike.

        Returns:
            float32 [3, height, width].
        """
        height, width = (size, size) if isinstance(size, int) else size
        if shade is None:
            return torch.ones(3, height, width)
        texture = torch.rand(3, height, width, generator=torch.Generator().manual_seed(shade))
        return 0.6 + 0.4 * texture

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
        for row, cells in enumerate(sets):
            for cell in cells:
                if not 0 <= cell < total:
                    raise OptionError(f"cell {cell} is not in a {self.grid}×{self.grid} grid, which has 0…{total - 1}")
                members[row, cell] = True
        return members


class AnyOf(Oracle):
    """An OR of ANDs: holds when all the cells of at least one term are visible.

    Args:
        terms: groups of cells, such as ``[(0, 1), (5,)]`` for *(0 and 1) or 5*.
        grid: cells a side.
        high: confidence where it holds.
        low: confidence where it does not.

    Example:
        >>> oracle = AnyOf([(0, 1), (5,)], grid=3)
        >>> visible = torch.zeros(3, 9, dtype=torch.bool)
        >>> visible[0, 0] = visible[1, [0, 1]] = visible[2, 5] = True
        >>> oracle.decide(visible)
        tensor([False,  True,  True])
    """

    members: Tensor

    def __init__(self, terms: Sequence[Collection[int]], grid: int, *, high: float = 0.98, low: float = 0.02) -> None:
        super().__init__(grid, _union(terms), high=high, low=low)
        self.register_buffer("members", self._members(terms))

    def decide(self, visible: Tensor) -> Tensor:
        """The formula, bool [K, cells] -> bool [K]."""
        return _any_term(self.members, visible)


class AtLeast(Oracle):
    """Holds when at least ``k`` of ``cells`` are visible.

    Args:
        k: how many are enough.
        cells: the cells that count.
        grid: cells a side.
        high: confidence where it holds.
        low: confidence where it does not.

    Example:
        >>> AtLeast(2, [0, 4, 8], grid=3).decide(torch.eye(9, dtype=torch.bool)).any()
        tensor(False)
    """

    def __init__(self, k: int, cells: Collection[int], grid: int, *, high: float = 0.98, low: float = 0.02) -> None:
        super().__init__(grid, cells, high=high, low=low)
        self.k = k

    def decide(self, visible: Tensor) -> Tensor:
        """The formula, bool [K, cells] -> bool [K]."""
        return (visible & self.used).sum(dim=1) >= self.k


class WeightedSum(Oracle):
    """Holds when the weights of the visible cells add up to the threshold.

    With ``link="smooth"`` the confidence is ``sigmoid(sharpness * (sum - threshold))``: it grows cell by
    cell, so ratios are graded, and cells count by their brightness, so that gradients reach the pixels.

    Args:
        weights: cell -> weight; cells not named weigh nothing. Weights may be negative.
        threshold: the sum that is enough.
        grid: cells a side.
        link: ``"hard"`` for the two confidences ``high`` and ``low``, ``"smooth"`` for graded ones.
        sharpness: steepness of the smooth link.
        high: confidence where it holds, for the hard link.
        low: confidence where it does not, for the hard link.

    Example:
        >>> oracle = WeightedSum({0: 1.0, 3: 2.0}, threshold=2.0, grid=2, link="smooth", sharpness=4.0)
        >>> oracle.strength(torch.tensor([[False, False, False, True]]))
        tensor([0.5000], dtype=torch.float64)
    """

    weights: Tensor

    def __init__(
        self,
        weights: dict[int, float],
        threshold: float,
        grid: int,
        *,
        link: Literal["hard", "smooth"] = "hard",
        sharpness: float = 4.0,
        high: float = 0.98,
        low: float = 0.02,
    ) -> None:
        super().__init__(grid, weights.keys(), high=high, low=low)
        if link not in ("hard", "smooth"):
            raise OptionError(f'link is {link!r}; write link="hard" or link="smooth"')
        if sharpness <= 0:
            raise OptionError(f"sharpness is {sharpness}; it should be positive, such as sharpness=4.0")
        self.threshold = threshold
        self.link = link
        self.sharpness = sharpness
        dense = torch.zeros(grid * grid, dtype=torch.float64)
        for cell, weight in weights.items():
            dense[cell] = weight
        self.register_buffer("weights", dense)

    def decide(self, visible: Tensor) -> Tensor:
        """The formula, bool [K, cells] -> bool [K]."""
        return self._total(visible) >= self.threshold - ROUNDING

    def strength(self, visible: Tensor) -> Tensor:
        """Confidence of class 1, bool [K, cells] -> float64 [K]."""
        return torch.sigmoid(self.log_odds(visible)) if self.link == "smooth" else super().strength(visible)

    def log_odds(self, visibility: Tensor) -> Tensor:
        """Log-odds of class 1 from float visibilities [N, cells]; float64 [N]."""
        if self.link == "smooth":
            return self.sharpness * (self._total(visibility) - self.threshold)
        return super().log_odds(visibility)

    def _total(self, visibility: Tensor) -> Tensor:
        return (visibility.double() * self.weights.double()).sum(dim=1)


class ExactlyOdd(Oracle):
    """Holds when an odd number of ``cells`` is visible (exclusive or): every cell matters, always.

    Give an odd number of cells if the formula should hold on the whole image.

    Args:
        cells: the cells that count.
        grid: cells a side.
        high: confidence where it holds.
        low: confidence where it does not.

    Example:
        >>> visible = torch.tensor([[True, False, True, True], [True, True, False, False]])
        >>> ExactlyOdd([0, 1], grid=2).decide(visible)
        tensor([ True, False])
    """

    def __init__(self, cells: Collection[int], grid: int, *, high: float = 0.98, low: float = 0.02) -> None:
        super().__init__(grid, cells, high=high, low=low)

    def decide(self, visible: Tensor) -> Tensor:
        """The formula, bool [K, cells] -> bool [K]."""
        return (visible & self.used).sum(dim=1) % 2 == 1


class Unless(Oracle):
    """An OR of ANDs that any visible blocker switches off: showing more can undo the decision.

    The whole image shows the blockers too, so ``terms`` alone never hold on it; ``anyway`` lists terms that
    no blocker touches, which let the formula hold on the whole image.

    Args:
        terms: groups of cells, each enough while no blocker is visible.
        blockers: cells that switch ``terms`` off.
        grid: cells a side.
        anyway: groups of cells, each enough whether or not a blocker is visible.
        high: confidence where it holds.
        low: confidence where it does not.

    Example:
        >>> oracle = Unless([(0,)], blockers=[1], grid=2, anyway=[(2, 3)])
        >>> oracle.decide(torch.tensor([[True, False, False, False], [True, True, False, False], [True] * 4]))
        tensor([ True, False,  True])
    """

    members: Tensor
    anyway: Tensor
    blockers: Tensor

    def __init__(
        self,
        terms: Sequence[Collection[int]],
        blockers: Collection[int],
        grid: int,
        *,
        anyway: Sequence[Collection[int]] = (),
        high: float = 0.98,
        low: float = 0.02,
    ) -> None:
        super().__init__(grid, _union([*terms, blockers, *anyway]), high=high, low=low)
        self.register_buffer("members", self._members(terms))
        self.register_buffer("anyway", self._members(anyway))
        self.register_buffer("blockers", self._members([blockers])[0])

    def decide(self, visible: Tensor) -> Tensor:
        """The formula, bool [K, cells] -> bool [K]."""
        blocked = (visible & self.blockers).any(dim=1)
        return (_any_term(self.members, visible) & ~blocked) | _any_term(self.anyway, visible)


class Formula(Oracle):
    """Any formula at all.

    Args:
        function: bool [K, cells] -> bool [K], vectorized over rows.
        grid: cells a side.
        cells_used: the cells the function looks at; all of them unless told otherwise.
        high: confidence where it holds.
        low: confidence where it does not.

    Example:
        >>> oracle = Formula(lambda visible: visible[:, 0] == visible[:, 1], grid=2, cells_used=(0, 1))
        >>> oracle.decide(torch.tensor([[True, True, False, False], [True, False, False, False]]))
        tensor([ True, False])
    """

    def __init__(
        self,
        function: Callable[[Tensor], Tensor],
        grid: int,
        *,
        cells_used: Collection[int] | None = None,
        high: float = 0.98,
        low: float = 0.02,
    ) -> None:
        super().__init__(grid, range(grid * grid) if cells_used is None else cells_used, high=high, low=low)
        self.function = function

    def decide(self, visible: Tensor) -> Tensor:
        """The formula, bool [K, cells] -> bool [K]."""
        return self.function(visible)


def random_formula(
    seed: int | np.random.Generator, grid: int = 4, *, max_cells: int = 8, monotone: bool = False
) -> Oracle:
    """A random oracle that holds on the whole image and not on the empty one.

    Args:
        seed: a number, or a generator to draw from.
        grid: cells a side.
        max_cells: most cells the formula may use; at least 3, at most the cells of the grid.
        monotone: True leaves out the formulas that showing more can undo.

    Returns:
        One of the oracles of this module.

    Example:
        >>> oracle = random_formula(0)
        >>> oracle.decide(torch.stack([torch.zeros(16), torch.ones(16)]).bool())
        tensor([False,  True])
    """
    if not 3 <= max_cells <= grid * grid:
        raise OptionError(
            f"max_cells is {max_cells}; a {grid}×{grid} grid has {grid * grid} cells, "
            "and a random formula needs at least 3 of them"
        )
    draw = np.random.default_rng(seed)
    count = int(draw.integers(3, max_cells + 1))
    cells = [int(cell) for cell in draw.permutation(grid * grid)[:count]]

    def some_terms(among: list[int]) -> list[list[int]]:
        sizes = draw.integers(1, min(len(among), 4) + 1, size=int(draw.integers(1, 5)))
        return [[int(cell) for cell in draw.choice(among, size, replace=False)] for size in sizes]

    kinds = ["any of", "at least", "hard sum", "smooth sum"] + ([] if monotone else ["odd", "unless"])
    kind = kinds[int(draw.integers(len(kinds)))]
    if kind == "any of":
        return AnyOf(some_terms(cells), grid)
    if kind == "at least":
        return AtLeast(int(draw.integers(1, count + 1)), cells, grid)
    if kind == "odd":
        return ExactlyOdd(cells[: count - 1 + count % 2], grid)
    if kind == "unless":
        return Unless(some_terms(cells[1:]), cells[:1], grid, anyway=some_terms(cells[1:]))
    # Quarters add up exactly in binary, so that no sum lies a rounding error beside its threshold.
    weights = {cell: int(draw.integers(1, 9)) / 4 for cell in cells}
    threshold = sum(weights.values()) * int(draw.integers(1, 4)) / 4
    return WeightedSum(weights, threshold, grid, link="hard" if kind == "hard sum" else "smooth")


def _bounds(parts: int, length: int) -> list[tuple[int, int]]:
    """First pixel and end of each part, where pixel i belongs to part ``i * parts // length``."""
    starts = [-(-part * length // parts) for part in range(parts + 1)]
    return list(pairwise(starts))


def _any_term(members: Tensor, visible: Tensor) -> Tensor:
    """Whether all cells of some term are visible: bool [terms, cells], bool [K, cells] -> bool [K]."""
    hidden = ~visible[:, None, :]
    return ~(members & hidden).any(dim=2).all(dim=1)


def _union(groups: Sequence[Collection[int]]) -> set[int]:
    return {cell for group in groups for cell in group}
