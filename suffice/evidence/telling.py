"""Which minimal sufficient explanations tell a reader most."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from suffice.errors import OptionError

if TYPE_CHECKING:
    from suffice.evidence.result import MSE


def most_telling(mses: Sequence[MSE], overlap: int | None = None) -> list[MSE]:
    """Small, strong and different MSEs, those that tell most first.

    One after the other, the smallest is taken of those that share at most ``overlap`` cells with each one before it. Of
    several of a size it is the one that shares the fewest cells with those before it, of several such the one with the
    highest ratio, and of equal ones the one found first. So the smallest, strongest MSE is always there, and each next
    one shows another place in the image. The rule is greedy: :meth:`Evidence.diverse` has the largest such family.

    Args:
        mses: Those of one image, in order of discovery.
        overlap: Most cells that two of those taken may share; None takes all.

    Example:
        >>> from suffice.evidence import MSE
        >>> found = [MSE((0, 1, 2), 0.95), MSE((1, 2), 0.91), MSE((1, 4), 0.97), MSE((2, 5, 6), 0.92)]
        >>> [mse.cells for mse in most_telling(found, overlap=0)]
        [(1, 4), (2, 5, 6)]
        >>> [mse.cells for mse in most_telling(found)]
        [(1, 4), (1, 2), (2, 5, 6), (0, 1, 2)]
    """
    if overlap is not None and overlap < 0:
        raise OptionError(f"overlap={overlap}; it can be 0 or more, the number of cells that two MSEs may share.")
    taken: list[MSE] = []
    seen: set[int] = set()
    waiting = list(mses)
    while waiting:
        best = min(waiting, key=lambda mse: (len(mse), len(seen.intersection(mse.cells)), sinking(mse.ratio)))
        taken.append(best)
        seen.update(best.cells)
        waiting = [m for m in waiting if m is not best and (overlap is None or _shared(m, best) <= overlap)]
    return taken


def sinking(ratio: float) -> tuple[bool, float]:
    """Sorts the highest ratio first, and what is not a number last.

    Example:
        >>> sorted([0.5, float("nan"), 0.9], key=sinking)
        [0.9, 0.5, nan]
    """
    return (True, 0.0) if isnan(ratio) else (False, -ratio)


def _shared(one: MSE, other: MSE) -> int:
    return len(set(one.cells).intersection(other.cells))
