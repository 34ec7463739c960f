"""Do models of a family test alike? Scores of a cross-test by the family of the map and the family tested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from suffice.compare.pairwise import Level, Numbers
from suffice.compare.resampling import drawn_again, means_over
from suffice.errors import OptionError
from suffice.options import Count, check_options


@dataclass(frozen=True, eq=False)
class FamilyMatrix:
    """Mean scores by family.

    Attributes:
        families: Their names, in order of rows and columns.
        means: Mean score of maps from the models of a family (row) on those of another (column), [F, F]; NaN where
            there is no such pair.
        low: Lower ends of bootstrap intervals over images, [F, F]; NaN without scores of two images or more.
        high: Upper ends.
        pairs: How many pairs of models each mean is over, [F, F]; those without a score do not count.
        within: Mean over pairs within families less that over pairs between them.
        p: Of the permutation test that families do not matter for it, one-sided.
    """

    families: tuple[str, ...]
    means: Numbers
    low: Numbers
    high: Numbers
    pairs: np.ndarray
    within: float
    p: float


def family_matrix(
    scores: Numbers,
    families: Sequence[str],
    *,
    own: bool = False,
    level: Level = 0.95,
    draws: Count = 1999,
    seed: int = 0,
    normalize: Callable[[Numbers], Numbers] | None = None,
    higher_is_better: bool = True,
) -> FamilyMatrix:
    """Average a cross-test by families, and test whether families matter.

    Args:
        scores: [M, M], of the map of one model (row) on another (column), or of single images, [M, M, N].
        families: Of each model, [M].
        own: Count a model tested with its own map as a pair within its family.
        level: Of the intervals.
        draws: Of the bootstrap over images, and of the permutations of the models' families.
        seed: Of both.
        normalize: From how often each image is drawn, [D, N], to matrices [D, M, M]; default: the means of the scores.
        higher_is_better: Whether models that find the same have high scores; False for deletion.

    Example:
        >>> matrix = np.array([[1, 0.8, 0.3, 0.2], [0.7, 1, 0.3, 0.3], [0.2, 0.2, 1, 0.6], [0.3, 0.1, 0.7, 1]])
        >>> found = family_matrix(matrix, ["cnn", "cnn", "vit", "vit"])
        >>> found.means.round(2).tolist(), round(found.within, 2)
        ([[0.75, 0.28], [0.2, 0.65]], 0.46)
    """
    check_options({"level": level, "draws": draws}, family_matrix)
    given = np.asarray(scores, dtype=float)
    if given.ndim not in (2, 3) or given.shape[:2] != (len(families), len(families)):
        raise OptionError(f"Expected scores [M, M] or [M, M, N] and M families; got {list(given.shape)}.")
    names = tuple(dict.fromkeys(families))
    of_draws = normalize or partial(means_over, given)
    matrix = of_draws(np.ones((1, given.shape[2])))[0] if given.ndim == 3 else given
    belongs = np.array([[family == name for family in families] for name in names], dtype=float)  # [F, M]
    counted = np.ones_like(matrix, dtype=bool) if own else ~np.eye(len(families), dtype=bool)

    def by_family(some: Numbers) -> tuple[Numbers, Numbers]:
        there = counted & np.isfinite(some)
        pairs = belongs @ there @ belongs.T
        with np.errstate(invalid="ignore"):
            return (belongs @ np.where(there, some, 0) @ belongs.T) / pairs, pairs

    means, pairs = by_family(matrix)
    low, high = np.full_like(means, np.nan), np.full_like(means, np.nan)
    if given.ndim == 3 and given.shape[2] > 1:
        random = np.random.default_rng([seed, 0])
        again = [by_family(of_draws(drawn))[0] for drawn in drawn_again(given.shape[2], draws, random)]
        low, high = np.quantile(np.concatenate(again), [(1 - level) / 2, (1 + level) / 2], axis=0)
    sign = 1 if higher_is_better else -1
    within, p = _alike(sign * matrix, np.asarray([names.index(family) for family in families]), draws, seed)
    within *= sign
    return FamilyMatrix(names, means, low, high, pairs.astype(int), within, p)


def _alike(matrix: Numbers, family: np.ndarray, draws: int, seed: int) -> tuple[float, float]:
    """Mean within less mean between families, and how often families given out at random do as well."""
    models = len(family)
    others = ~np.eye(models, dtype=bool) & np.isfinite(matrix)

    def gap(of: np.ndarray) -> float:
        same = (of[:, None] == of[None, :]) & others
        between = ~same & others
        return float(matrix[same].mean() - matrix[between].mean()) if same.any() and between.any() else float("nan")

    seen = gap(family)
    if np.isnan(seen):
        return seen, float("nan")
    random = np.random.default_rng([seed, 1])
    as_large = sum(gap(random.permutation(family)) >= seen - 1e-12 for _ in range(draws))
    return seen, (as_large + 1) / (draws + 1)
