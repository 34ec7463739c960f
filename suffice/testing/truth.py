"""The truth about an oracle, by looking at every set of the cells it uses.

A set of cells is sufficient when showing it alone keeps enough of the confidence: strength on the set divided
by strength on the whole image is at least the threshold. All of this is about class 1, "the formula holds".
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.testing.oracle import Oracle

MAX_CELLS = 16


def ratios(oracle: Oracle) -> Tensor:
    """Strength on every set of the cells that the oracle uses, over strength on the whole image.

    float64 [2 ** n] for n cells used, on the CPU. Bit ``i`` of the position says whether cell
    ``oracle.cells_used[i]`` is shown; cells that are not used are hidden.

    Raises:
        OptionError: if more than 16 cells are used, if the whole image has strength 0, or if the decision
            depends on cells that the oracle does not list as used.

    Example:
        >>> from suffice.testing import WeightedSum
        >>> ratios(WeightedSum({2: 1.0, 3: 2.0}, threshold=3.0, grid=2, link="smooth", sharpness=1.0))
        tensor([0.0949, 0.2384, 0.5379, 1.0000], dtype=torch.float64)
    """
    used = list(oracle.cells_used)
    if len(used) > MAX_CELLS:
        raise OptionError(
            f"the oracle uses {len(used)} cells and would need 2^{len(used)} decisions; "
            f"brute force ends at {MAX_CELLS} cells: use a formula over fewer"
        )
    hidden_rest = torch.zeros(2 ** len(used), oracle.grid**2, dtype=torch.bool, device=oracle.used.device)
    for bit, cell in enumerate(used):
        hidden_rest[:, cell] = (torch.arange(2 ** len(used)) >> bit & 1).bool()
    strength = oracle.strength(hidden_rest)
    if not torch.equal(strength, oracle.strength(hidden_rest | ~oracle.used)):
        raise OptionError(
            f"the decision depends on cells beside {oracle.cells_used}; "
            "name every cell that the formula looks at in cells_used"
        )
    # All used cells shown is the last row; it equals the whole image, since the rest does not matter.
    if strength[-1] == 0:
        raise OptionError("the whole image has strength 0, so ratios to it are not defined; use low > 0")
    return (strength / strength[-1]).cpu()


def sufficient_sets(oracle: Oracle, threshold: float = 0.9) -> list[tuple[int, ...]]:
    """Every set of used cells that is enough alone, in order: those with at least ``threshold`` of :func:`ratios`.

    Example:
        >>> from suffice.testing import AnyOf
        >>> sufficient_sets(AnyOf([(0, 1), (3,)], grid=2))
        [(0, 1), (0, 1, 3), (0, 3), (1, 3), (3,)]
    """
    return _as_tuples(oracle, ratios(oracle) >= threshold)


def minimal_sufficient_sets(
    oracle: Oracle, threshold: float = 0.9, minimal: Literal["subset", "single"] = "subset"
) -> list[tuple[int, ...]]:
    """The sufficient sets that cannot be made smaller, in order.

    With ``minimal="subset"`` no proper subset is sufficient (for a monotone formula, its prime implicants); with
    ``"single"`` leaving out any one cell is no longer sufficient. They differ only for formulas that are not monotone.

    Example:
        >>> from suffice.testing import ExactlyOdd
        >>> minimal_sufficient_sets(ExactlyOdd([0, 1, 2], grid=2))
        [(0,), (1,), (2,)]
        >>> minimal_sufficient_sets(ExactlyOdd([0, 1, 2], grid=2), minimal="single")
        [(0,), (0, 1, 2), (1,), (2,)]
    """
    if minimal not in ("subset", "single"):
        raise OptionError(f'minimal is {minimal!r}; write minimal="subset" or minimal="single"')
    passes = ratios(oracle) >= threshold
    smaller = _spread_up(passes) if minimal == "subset" else passes
    return _as_tuples(oracle, passes & ~_any_without_one(smaller))


def _spread_up(passes: Tensor) -> Tensor:
    """Whether the set itself or any of its subsets passes: bool [2 ** n] -> bool [2 ** n]."""
    reached = passes.clone()
    for bit in range(len(passes).bit_length() - 1):
        pairs = reached.view(-1, 2, 2**bit)
        pairs[:, 1] |= pairs[:, 0]
    return reached


def _any_without_one(flags: Tensor) -> Tensor:
    """Whether leaving out some single cell leads to a flagged set: bool [2 ** n] -> bool [2 ** n]."""
    found = torch.zeros_like(flags)
    for bit in range(len(flags).bit_length() - 1):
        found.view(-1, 2, 2**bit)[:, 1] |= flags.view(-1, 2, 2**bit)[:, 0]
    return found


def _as_tuples(oracle: Oracle, flags: Tensor) -> list[tuple[int, ...]]:
    used = oracle.cells_used
    positions = flags.nonzero().flatten().tolist()
    return sorted(tuple(cell for bit, cell in enumerate(used) if position >> bit & 1) for position in positions)
