"""What is left of a difference between architectures once their networks are equally accurate, or equally sure.

Two architectures rarely come out of training equally good. A regression over networks tells what goes with the
architecture from what goes with being better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from suffice.compare.pairwise import Level
from suffice.errors import OptionError


@dataclass(frozen=True)
class AdjustedDifference:
    """How two architectures differ at equal values of other things.

    Attributes:
        difference: Of the first less the second, at equal values of what else is known.
        low: Lower end of its interval, for other trainings.
        high: Upper end.
        p: Two-sided, that there is no difference.
        slopes: How much the outcome grows when another thing grows by 1, by its name.
        trainings: How many of the first and the second.
    """

    difference: float
    low: float
    high: float
    p: float
    slopes: Mapping[str, float]
    trainings: tuple[int, int]


def adjusted_difference(
    first: Sequence[float],
    second: Sequence[float],
    beside: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    level: Level = 0.95,
) -> AdjustedDifference:
    """Compare trainings of two architectures at equal accuracy, confidence, or whatever else is known of each.

    The outcome of a network is taken to grow along a line with each of these, alike in both architectures. Where
    architectures hardly overlap in them, the interval is wide, as it should be.

    Args:
        first: The outcome of each training of the first architecture, a mean over images for instance.
        second: Likewise.
        beside: By name what else is known of each training, of the first and of the second.
        level: Of the interval.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> accuracy = rng.uniform(0.80, 0.86, 10), rng.uniform(0.82, 0.88, 10)
        >>> first, second = (10 * one + rng.normal(0, 0.02, 10) for one in accuracy)  # all of it is accuracy
        >>> found = adjusted_difference(first, second, {"accuracy": accuracy})
        >>> bool(first.mean() < second.mean() - 0.1), found.low < 0 < found.high, round(found.slopes["accuracy"])
        (True, True, 10)
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    known = {name: [np.asarray(one, dtype=float) for one in pair] for name, pair in beside.items()}
    for name, pair in known.items():
        if [one.shape for one in pair] != [a.shape, b.shape]:
            raise OptionError(f"{name}: expected a number for each training, {len(a)} and {len(b)} of them.")
    columns = [np.concatenate(pair) for pair in known.values()]
    outcome = np.concatenate([a, b])
    if not all(np.isfinite(column).all() for column in (outcome, *columns)):
        raise OptionError("Expected finite numbers for every training.")
    is_first = np.arange(len(outcome)) < len(a)
    design = np.column_stack([np.ones(len(outcome)), is_first, *(column - column.mean() for column in columns)])
    free = len(outcome) - design.shape[1]
    if min(len(a), len(b)) < 2 or free < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        raise OptionError(
            f"{len(a)} and {len(b)} trainings are too few to adjust for {', '.join(known) or 'nothing'}, or one of "
            "these tells the architectures apart by itself, or follows from the others."
        )
    fitted, *_ = np.linalg.lstsq(design, outcome, rcond=None)
    rest = outcome - design @ fitted
    error = np.sqrt(rest @ rest / free * np.linalg.inv(design.T @ design)[1, 1])
    rounding = 1e-12 * np.abs(outcome).max()
    difference, error = (0.0 if abs(number) <= rounding else float(number) for number in (fitted[1], error))
    reach = error * float(stats.t.ppf((1 + level) / 2, free))
    p = float(2 * stats.t.sf(abs(difference) / error, free)) if error else float(difference == 0)
    slopes = dict(zip(known, map(float, fitted[2:]), strict=True))
    return AdjustedDifference(difference, difference - reach, difference + reach, p, slopes, (len(a), len(b)))
