"""Wilcoxon's signed-rank test, also of a few images, of which many are level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FEW = 13  # images, for which all signs are tried


def wilcoxon(differences: NDArray[np.float64]) -> float:
    """P-value of Wilcoxon's signed-rank test that differences [N] are symmetric around 0, two-sided."""
    some = differences[differences != 0]
    if not len(some):
        return 1.0
    if len(some) > FEW:
        return float(stats.wilcoxon(differences).pvalue)
    # SciPy is exact here, too, but tries signs one after the other, which takes seconds.
    ranks = stats.rankdata(np.abs(some))
    signs = (np.arange(2 ** len(some))[:, None] >> np.arange(len(some))) & 1
    sums, seen = signs @ ranks, float(ranks[some > 0].sum())
    return float(min(1.0, 2 * min((sums <= seen + 1e-9).mean(), (sums >= seen - 1e-9).mean())))
