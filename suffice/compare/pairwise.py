"""Every pair of models over the same images: by how much they differ, and whether that could be chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from suffice.errors import OptionError
from suffice.metrics.signed_ranks import FEW, wilcoxon
from suffice.options import Count, Range, check_options

Numbers = NDArray[np.float64]
Values = Sequence[float] | Numbers
Test = Literal["wilcoxon", "permutation"]
Level = Annotated[float, Range(0, 1, above=True, below=True)]
BLOCK = 1 << 22  # numbers that are drawn at once
MANY = 50  # images, beyond which SciPy takes the normal approximation


@dataclass(frozen=True)
class Difference:
    """How two models differ over the same images.

    Attributes:
        first: One of them.
        second: The other.
        difference: Mean over images of first less second.
        low: Lower end of its bootstrap interval.
        high: Upper end.
        effect: Rank-biserial correlation, from -1 (the second is larger on every image) to 1: an effect size.
        p: Of the test that neither is larger, two-sided.
        adjusted: The same, corrected for the number of pairs by Holm's rule.
        images: How many images both have.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    effect: float
    p: float
    adjusted: float
    images: int

    def clear(self, alpha: float = 0.05) -> bool:
        """Whether the difference is significant after correction."""
        return self.adjusted < alpha


def compare_pairs(
    values: Mapping[str, Values],
    *,
    test: Test = "wilcoxon",
    level: Level = 0.95,
    draws: Count = 9999,
    seed: int = 0,
) -> list[Difference]:
    """Compare every two models image by image.

    Args:
        values: For each model one number an image, all in the same order; NaN where an image has none, which leaves it
            out of the pairs of that model.
        test: ``"wilcoxon"``, the signed-rank test; or ``"permutation"``, of the mean, by flipping signs.
        level: Of the intervals.
        draws: Of the bootstrap and of the permutation test.
        seed: Of both.

    Returns:
        One for each pair, in the order of the models.

    Example:
        >>> values = {"a": [1, 2, 3, 4, 5, 6, 7], "b": [0, 1, 2, 2, 4, 4, 5], "c": [1, 2, 3, 4, 5, 7, 6]}
        >>> [(d.first, d.second, round(d.difference, 2), d.effect) for d in compare_pairs(values)]
        [('a', 'b', 1.43, 1.0), ('a', 'c', 0.0, 0.0), ('b', 'c', -1.43, -1.0)]
    """
    check_options({"test": test, "level": level, "draws": draws}, compare_pairs)
    columns = as_columns(values)
    found = []
    for number, (first, second) in enumerate(combinations(columns, 2)):
        both = columns[first] - columns[second]
        both = both[np.isfinite(both)]
        if len(both) < 2:
            raise OptionError(f"{first} and {second} have {len(both)} images in common; two or more are needed.")
        random = np.random.default_rng([seed, number])
        p = wilcoxon(both) if test == "wilcoxon" else sign_flips(both, draws, random)
        low, high = bootstrap_mean(both, level, draws, random)
        found.append((first, second, float(both.mean()), low, high, rank_biserial(both), p, len(both)))
    adjusted = holm([row[6] for row in found])
    return [Difference(*row[:7], adjusted=a, images=row[7]) for row, a in zip(found, adjusted, strict=True)]


def as_columns(values: Mapping[str, Values]) -> dict[str, Numbers]:
    """Numbers of each model, [N], checked."""
    columns = {name: np.asarray(column, dtype=float) for name, column in values.items()}
    lengths = {column.shape for column in columns.values()}
    if len(columns) < 2 or len(lengths) > 1 or len(next(iter(lengths))) != 1:
        raise OptionError("Expected two or more models with one number an image each, of the same images.")
    return columns


def wilcoxon_each(differences: Sequence[Numbers]) -> list[float]:
    """P-values of :func:`wilcoxon` of several differences, [N] each.

    Those of many images are tested together: what SciPy does for a call takes longer than a test.
    """
    together: dict[int, list[int]] = {}
    found = [0.0] * len(differences)
    for number, one in enumerate(differences):
        if len(one) > MANY and np.count_nonzero(one) > FEW:
            together.setdefault(len(one), []).append(number)
        else:
            found[number] = wilcoxon(one)
    for numbers in together.values():
        p = stats.wilcoxon(np.stack([differences[number] for number in numbers]), axis=1).pvalue
        for number, value in zip(numbers, p.tolist(), strict=True):
            found[number] = value
    return found


def sign_flips(differences: Numbers, draws: int, random: np.random.Generator) -> float:
    """P-value of the permutation test that differences [N] have the mean 0: their signs are flipped at random."""
    seen = abs(differences.sum()) * (1 - 1e-12)
    as_far = 0
    for count in blocks(draws, len(differences)):
        signs = random.integers(0, 2, (count, len(differences))) * 2.0 - 1
        as_far += int((np.abs(signs @ differences) >= seen).sum())
    return (as_far + 1) / (draws + 1)  # what was seen is one of the possibilities


def bootstrap_mean(values: Numbers, level: float, draws: int, random: np.random.Generator) -> tuple[float, float]:
    """Interval of the mean of values [N], by the bootstrap (bias-corrected and accelerated).

    As ``scipy.stats.bootstrap`` has it, with the same draws. That one leaves out each value in turn to see how skewed
    they are, in the time of N²; of a mean, the skew is known from the values themselves.
    """
    count = len(values)
    parts = [values[random.integers(0, count, (rows, count))].mean(axis=1) for rows in blocks(draws, count)]
    return corrected_ends(values, np.concatenate(parts), ((1 - level) / 2, (1 + level) / 2))


def corrected_ends(values: Numbers, means: Numbers, shares: tuple[float, float]) -> tuple[float, float]:
    """Ends below which so large shares of the bootstrap of a mean lie, once it is corrected for bias and skew.

    Args:
        values: Whose mean it is, [N].
        means: Of values drawn again, one a draw.
        shares: Below the lower end, and below the upper.
    """
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    draws, mean = len(means), values.mean()
    away = values - mean
    acceleration = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    below = ((means < mean).mean() + (means <= mean).mean()) / 2
    bias = special.ndtri(np.clip(below, 0.5 / draws, 1 - 0.5 / draws))  # few draws may all lie on one side
    ends = bias + special.ndtri(shares)
    low, high = np.quantile(means, special.ndtr(bias + ends / (1 - acceleration * ends)))
    return float(low), float(high)


def rank_biserial(differences: Numbers) -> float:
    """The share of ranks where differences [N] are positive less that where they are negative."""
    some = differences[differences != 0]
    if not len(some):
        return 0.0
    ranks = stats.rankdata(np.abs(some))
    return float((ranks * np.sign(some)).sum() / ranks.sum())


def holm(p: Sequence[float]) -> list[float]:
    """P-values corrected for how many there are, by Holm's step-down rule.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    factors = np.arange(len(p), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(np.asarray(p, dtype=float)[order] * factors), 1)
    return [float(value) for value in adjusted]


def blocks(draws: int, width: int) -> list[int]:
    """How many draws of so many numbers to make at a time."""
    size = max(1, BLOCK // max(width, 1))
    return [min(size, draws - start) for start in range(0, draws, size)]
