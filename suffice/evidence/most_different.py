"""A few MSEs that stand for many: the smallest one, and those that share least with what was chosen before."""

from __future__ import annotations

from collections.abc import Sequence

from suffice.evidence.result import MSE


def most_different(mses: Sequence[MSE], count: int) -> list[MSE]:
    """Some MSEs that differ from each other, one after the other.

    The first is the smallest one, of equally small ones that with the highest ratio. Each further one shares the
    smallest share of its cells and those of the one it is most like (Jaccard); ties go as the first.

    Example:
        >>> found = [MSE((1, 2), 0.9), MSE((1, 2, 3), 0.95), MSE((7, 8, 9), 0.91), MSE((1, 3, 7), 0.99)]
        >>> [m.cells for m in most_different(found, 3)]
        [(1, 2), (7, 8, 9), (1, 3, 7)]
    """
    chosen: list[MSE] = []
    left = sorted(mses, key=lambda m: (len(m), -m.ratio))
    while left and len(chosen) < count:
        chosen.append(min(left, key=lambda m: max((_alike(m, other) for other in chosen), default=0.0)))
        left.remove(chosen[-1])
    return chosen


def _alike(one: MSE, other: MSE) -> float:
    """Cells of both / cells of either."""
    either = set(one.cells) | set(other.cells)
    return len(set(one.cells) & set(other.cells)) / len(either) if either else 1.0
