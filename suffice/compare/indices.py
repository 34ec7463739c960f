"""How compositional and how disjunctive a model is, as numbers, from the evidence of many images.

The two papers call a model *compositional* when it needs many parts at once and loses confidence little by little as
they go: there are many sub-explanations below its minimal sufficient explanations (MSEs). They call it *disjunctive*
when few parts are enough, in many ways: there are many MSEs. Counts are heavy-tailed, so geometric means are taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.compare.pairwise import Level, Numbers, bootstrap_mean
from suffice.compare.tables import floats
from suffice.errors import OptionError
from suffice.options import Count

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Index:
    """A number about a model, with its interval over images; NaN where there is none."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "–"
        return f"{self.value:.3g}" + ("" if math.isnan(self.low) else f" [{self.low:.3g}, {self.high:.3g}]")


@dataclass(frozen=True)
class Decides:
    """How a model decides.

    Attributes:
        compositionality: Geometric mean over images of 1 + sub-explanations that keep half of the confidence, less 1.
        disjunctivism: The same of the number of MSEs.
        independent: Mean size of the largest family of MSEs that share no cell: really different ways to decide.
        gentleness: Mean share of the confidence that is left when one cell of an MSE goes: 0 for a strict AND; NaN
            where MSEs have one cell only.
        size: Mean number of cells of an MSE.
        images: With evidence.
        without: Without.
    """

    compositionality: Index
    disjunctivism: Index
    independent: Index
    gentleness: Index
    size: Index
    images: int
    without: int


def how_it_decides(
    evidence: pyarrow.Table, *, level: Level = 0.95, draws: Count = 1999, seed: int = 0, counted: str = "distinct_50"
) -> Decides:
    """How a model decides, from the table of its evidence, one row an image.

    Args:
        evidence: As :meth:`EvidenceSet.to_arrow` or the table of a study has it, of one model.
        level: Of the intervals.
        draws: Of the bootstrap over images.
        seed: Of the bootstrap.
        counted: The column that counts sub-explanations.

    Example:
        >>> from suffice import find_evidence
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(0, 1, 2), (8,)], grid=3)
        >>> images = oracle.image(24).repeat(3, 1, 1, 1)
        >>> found = find_evidence(oracle.classifier(24), images, targets=1, grid=3, baseline="black")
        >>> decides = how_it_decides(found.to_arrow())
        >>> round(decides.disjunctivism.value, 6), round(decides.compositionality.value, 6)
        (2.0, 0.0)
    """
    if "mses" not in evidence.column_names or counted not in evidence.column_names:
        raise OptionError(f"Expected the table of evidence with the columns mses and {counted}.")
    mses = floats(evidence, "mses")
    some = np.nan_to_num(mses) > 0
    if some.sum() < 2:
        raise OptionError(f"{int(some.sum())} images have evidence; two or more are needed.")

    def index(values: Numbers, geometric: bool = False, place: int = 0) -> Index:
        values = values[np.isfinite(values)]
        if len(values) < 2:
            return Index(float("nan"), float("nan"), float("nan"))
        logs = np.log1p(values) if geometric else values
        ends = bootstrap_mean(logs, level, draws, np.random.default_rng([seed, place]))
        numbers = (float(logs.mean()), *ends)
        return Index(*(float(np.expm1(number)) if geometric else number for number in numbers))

    return Decides(
        index(floats(evidence, counted)[some], geometric=True, place=0),
        index(mses[some], geometric=True, place=1),
        index(floats(evidence, "diverse_0")[some], place=2),
        index(_gentleness(evidence)[some], place=3),
        index(floats(evidence, "mean_size")[some], place=4),
        int(some.sum()),
        int((~some).sum()),
    )


def explained_by(sizes: Mapping[str, Sequence[Sequence[int]]], most: int) -> dict[str, list[float]]:
    """For each model the share of images that an MSE of at most n cells explains, n from 0 to ``most``.

    Args:
        sizes: For each model the sizes of the MSEs of each image.
        most: The largest n.

    Example:
        >>> explained_by({"a": [[2, 3], [1], [], [4]]}, 4)
        {'a': [0.0, 0.25, 0.5, 0.5, 0.75]}
    """
    smallest = {model: np.array([min(each, default=np.inf) for each in images]) for model, images in sizes.items()}
    return {model: [float((least <= n).mean()) for n in range(most + 1)] for model, least in smallest.items()}


def _gentleness(evidence: pyarrow.Table) -> Numbers:
    """Mean ratio of the sets that lack one cell of an MSE, in units of the MSEs' own, [N]; NaN for MSEs of one cell."""
    found = []
    for sums, counts in zip(
        evidence["depth_ratio_sums"].to_pylist(), evidence["depth_counts"].to_pylist(), strict=True
    ):
        whole = sums is not None and len(sums) > 1 and counts[0] and counts[1]
        found.append((sums[1] / counts[1]) / (sums[0] / counts[0]) if whole else np.nan)
    return np.array(found)
