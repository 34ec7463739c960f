"""Means over images, and over the same images drawn again with replacement: the bootstrap, many draws at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from suffice.compare.pairwise import Numbers, blocks


def drawn_again(count: int, draws: int, random: np.random.Generator) -> Iterator[Numbers]:
    """How often each of some images is drawn, [some draws, N], until there are as many draws as asked for."""
    for rows in blocks(draws, count):
        places = random.integers(0, count, (rows, count)) + count * np.arange(rows)[:, None]
        yield np.bincount(places.ravel(), minlength=rows * count).reshape(rows, count).astype(float)


def means_over(values: Numbers, drawn: Numbers) -> Numbers:
    """Means over images as often as each is drawn: [..., N] and [D, N] to [D, ...].

    Images without a number do not count; NaN where no other is drawn.

    Example:
        >>> means_over(np.array([1.0, 3.0, np.nan]), np.array([[1.0, 1, 1], [3, 1, 0], [0, 0, 2]]))
        array([2. , 1.5, nan])
    """
    there = np.isfinite(values)
    total = np.moveaxis(np.where(there, values, 0.0) @ drawn.T, -1, 0)
    known = np.moveaxis(there.astype(float) @ drawn.T, -1, 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / known)
