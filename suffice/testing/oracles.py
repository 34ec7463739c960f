"""Oracles with formulas of many kinds; ``grid``, ``high`` and ``low`` are as in :class:`Oracle`.

What is enough for an oracle to decide follows from its formula by pure thought (or by the brute force of
:mod:`suffice.testing.truth`), so that a search, a count or a map can be checked against the truth instead of
against yesterday's output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.testing.oracle import Oracle

# Weights may not be exact in binary (0.1 + 0.2 against 0.3), nor survive a cast of the module to float32.
ROUNDING = 1e-6


class AnyOf(Oracle):
    """An OR of ANDs, such as ``[(0, 1), (5,)]``: holds when all the cells of at least one term are visible.

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
        link: ``"hard"`` for the two confidences ``high`` and ``low``, ``"smooth"`` for graded ones.
        sharpness: steepness of the smooth link.

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
        self.threshold, self.link, self.sharpness = threshold, link, sharpness
        dense = [weights.get(cell, 0.0) for cell in range(grid * grid)]
        self.register_buffer("weights", torch.tensor(dense, dtype=torch.float64))

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
        anyway: groups of cells, each enough whether or not a blocker is visible.

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
    """Any formula at all: a function bool [K, cells] -> bool [K] over ``cells_used``, by default all of them.

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


def _any_term(members: Tensor, visible: Tensor) -> Tensor:
    """Whether all cells of some term are visible: bool [terms, cells], bool [K, cells] -> bool [K]."""
    hidden = ~visible[:, None, :]
    return ~(members & hidden).any(dim=2).all(dim=1)


def _union(groups: Sequence[Collection[int]]) -> set[int]:
    return {cell for group in groups for cell in group}
