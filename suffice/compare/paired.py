"""One number an image from each of two models: how many times more, and could it be chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from suffice.errors import OptionError
from suffice.metrics.signed_ranks import wilcoxon


@dataclass(frozen=True)
class PairedRatio:
    """How many times more of something the first model has than the second, over the same images.

    Attributes:
        ratio: Geometric mean over images of (1 + first) / (1 + second).
        low: Lower end of its 95 % interval (Student's t on the logarithms).
        high: Upper end.
        p: Of Wilcoxon's signed-rank test, two-sided, that neither is larger.
        images: How many images.
    """

    ratio: float
    low: float
    high: float
    p: float
    images: int

    @property
    def clear(self) -> bool:
        """Whether the difference is significant at 5 %."""
        return self.p < 0.05

    def __str__(self) -> str:
        return f"{self.ratio:.2f} × [{self.low:.2f}, {self.high:.2f}], p = {self.p:.2g}, {self.images} images"


def paired_ratio(first: Sequence[float], second: Sequence[float]) -> PairedRatio:
    """Compare counts of two models on the same images.

    Counts such as those of sub-explanations are heavy-tailed: a few images decide their mean. So logarithms are
    compared, image by image: both lists have one count an image, [N], in the same order.

    Example:
        >>> paired_ratio([10, 21, 30, 39, 52], [4, 10, 14, 19, 25]).clear
        False
        >>> str(paired_ratio([1] * 9, [1] * 9))
        '1.00 × [1.00, 1.00], p = 1, 9 images'
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise OptionError(f"Expected two lists of at least two numbers, one an image; got {a.shape} and {b.shape}.")
    if (a < 0).any() or (b < 0).any() or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise OptionError("Expected counts, which are finite and not negative.")
    difference = np.log1p(a) - np.log1p(b)
    mean, error = difference.mean(), stats.sem(difference)
    reach = error * stats.t.ppf(0.975, len(difference) - 1)
    low, ratio, high = np.exp([mean - reach, mean, mean + reach])
    return PairedRatio(float(ratio), float(low), float(high), wilcoxon(difference), len(a))
