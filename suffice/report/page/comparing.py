"""One quantity, every two models: which differ, by how much, and which cannot be told apart.

All statistics are those of :mod:`suffice.compare`; here they are asked for, and remembered. Tests are made for all
pairs, which Holm's rule needs; intervals only where something is said of a pair, since they take the most time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from suffice.compare import compare_pairs, compare_trainings, paired_ratio
from suffice.compare.pairwise import Numbers, holm, rank_biserial, wilcoxon_each
from suffice.compare.ranking import letters_of
from suffice.study.choices import Contrast

ALPHA = 0.05
LOOKED_AT = 5  # pairs, where something is said of many
FEWEST = 6  # images; with fewer, no test of signed ranks is significant
Both = tuple[Numbers, Numbers]


@dataclass(frozen=True)
class Quantity:
    """Something that is measured of every image.

    Attributes:
        key: Name of its column.
        noun: What it counts or measures, in the plural: "sub-explanations at ≥ 80 %".
        question: Section of the report that it belongs to.
        counts: Whether it is a count, which is compared by ratios; else by differences.
        higher_is_better: Where one way is better.
        scale: By which values are multiplied to be shown: 100 for percentages.
        says: A sentence with ``{first}``, ``{by}``, ``{more}`` and ``{second}``, for what is compared by differences.
        ways: The words for ``{more}`` in it, where the first is higher, and where it is lower.
        ends: What the first and the last of a ranking are called.
    """

    key: str
    noun: str
    question: str
    counts: bool = False
    higher_is_better: bool | None = None
    scale: float = 1.0
    says: str = "{first} is {by} {more} in {noun} than {second}"
    ways: tuple[str, str] = ("higher", "lower")
    ends: tuple[str, str] = ("the most", "the fewest")


@dataclass(frozen=True)
class Pair:
    """How two differ; ``adjusted`` is the p-value after Holm's correction over so many tests of the quantity.

    ``question`` is what differs between the two, where the study was made to compare them.
    """

    first: str
    second: str
    p: float
    adjusted: float
    images: int
    tests: int = 1
    question: str = ""

    @property
    def clear(self) -> bool:
        """Whether the difference is significant after correction."""
        return self.adjusted < ALPHA


@dataclass(frozen=True)
class Size:
    """How large a difference is: a ratio for counts, else first less second; with its interval and effect size."""

    value: float
    low: float
    high: float
    effect: float


class Comparison:
    """What one quantity says of every two of some names.

    Args:
        quantity: What is compared.
        names: Of models, families or methods.
        both: From two names to their values of the same images, [N] each; NaN where one has none.
        trainings: From a name to its values training by training, [T, N], where there are several.
        members: The models behind a name, where it is not itself one.
    """

    def __init__(
        self,
        quantity: Quantity,
        names: Sequence[str],
        both: Callable[[str, str], Both],
        trainings: Mapping[str, Numbers] | None = None,
        members: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.quantity, self.names, self.trainings = quantity, list(names), trainings or {}
        self.members = members or {}
        self._both = both

    @classmethod
    def of(cls, quantity: Quantity, values: Mapping[str, Sequence[float]]) -> Comparison:
        """From one number an image of each, in the same order."""
        columns = {name: np.asarray(column, dtype=float) for name, column in values.items()}
        return cls(quantity, list(columns), lambda a, b: (columns[a], columns[b]))

    def values(self, first: str, second: str) -> Both:
        """Values of the images that both have."""
        a, b = self._both(first, second)
        there = np.isfinite(a) & np.isfinite(b)
        return a[there], b[there]

    def values_of(self, name: str) -> Numbers:
        """All values of one of them, [N]; NaN where it has none."""
        return self._both(name, name)[0]

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every two that have enough images in common, tested by Wilcoxon's signed ranks, corrected by Holm's rule."""
        return self._tested(combinations(self.names, 2))

    def named(self, contrasts: Sequence[Contrast]) -> list[Pair]:
        """The comparisons that a study was made for, corrected for each other only."""
        known = [one for one in contrasts if {one.of, one.against} <= set(self.names)]
        asked = {(one.of, one.against): one.question or f"{one.of} and {one.against}" for one in known}
        return [replace(pair, question=asked[pair.first, pair.second]) for pair in self._tested(asked)]

    @cached_property
    def clear(self) -> list[Pair]:
        """Those that differ."""
        return [pair for pair in self.pairs if pair.clear]

    def pair(self, first: str, second: str) -> Pair | None:
        """That of two names, in either order, turned such that the first comes first."""
        for one in self.pairs:
            if {one.first, one.second} == {first, second}:
                return replace(one, first=first, second=second)
        return None

    def size(self, pair: Pair) -> Size:
        """By how much the two differ, with its interval."""
        a, b = self.values(pair.first, pair.second)
        effect = rank_biserial(self._differences(a, b))
        if self.quantity.counts:
            ratio = paired_ratio(a.tolist(), b.tolist())
            return Size(ratio.ratio, ratio.low, ratio.high, effect)
        (found,) = compare_pairs({"a": a.tolist(), "b": b.tolist()}, draws=_draws(len(a)))
        scale = self.quantity.scale
        return Size(scale * found.difference, scale * found.low, scale * found.high, effect)

    def over_trainings(self, pair: Pair) -> tuple[float, int] | None:
        """P-value over trainings and images, and the smaller number of trainings; None where one has just one."""
        both = [self.trainings.get(name) for name in (pair.first, pair.second)]
        if any(one is None or len(one) < 2 for one in both):
            return None
        a, b = (np.log1p(one) if self.quantity.counts else one for one in both if one is not None)
        found = compare_trainings(a.tolist(), b.tolist())
        return found.p, min(found.trainings)

    def mean(self, name: str) -> float:
        """Of one of them over its own images, as it is shown: the geometric one of 1 + counts, less 1."""
        own = self.values_of(name)
        own = own[np.isfinite(own)]
        if not len(own):
            return float("nan")
        return (
            float(np.expm1(np.log1p(own).mean())) if self.quantity.counts else float(own.mean() * self.quantity.scale)
        )

    @cached_property
    def order(self) -> list[str]:
        """Names from the best, or the highest where no way is better, to the last."""
        means = {name: self.mean(name) for name in self.names}
        known = [name for name in self.names if np.isfinite(means[name])]
        return sorted(known, key=lambda name: means[name], reverse=self.quantity.higher_is_better is not False)

    @cached_property
    def letters(self) -> dict[str, str]:
        """Names that share a letter do not differ significantly; none where there is nothing to compare."""
        if len(self.order) < 2 or not self.pairs:
            return {}
        return letters_of(self.order, [(pair.first, pair.second) for pair in self.clear])

    def reach(self, pairs: Sequence[Pair]) -> float:
        """How far apart some pairs could still be: the farthest end of their intervals from no difference at all.

        Of counts, it is the logarithm of a ratio. Of others, whose intervals take long, the pairs whose means lie
        farthest apart are looked at.
        """
        means = {name: self.mean(name) for name in self.names}
        apart = sorted(pairs, key=lambda pair: -abs(means[pair.first] - means[pair.second]))
        apart = apart if self.quantity.counts else apart[:LOOKED_AT]
        ends = [end for pair in apart for size in (self.size(pair),) for end in (size.low, size.high)]
        return max((abs(float(np.log(end))) if self.quantity.counts else abs(end) for end in ends), default=0.0)

    def _differences(self, a: Numbers, b: Numbers) -> Numbers:
        return np.log1p(a) - np.log1p(b) if self.quantity.counts else a - b

    def _tested(self, names: Iterable[tuple[str, str]]) -> list[Pair]:
        """Of some pairs of names those that have enough images in common, tested and corrected for each other."""
        differences = {pair: self._differences(*self.values(*pair)) for pair in names}
        differences = {pair: one for pair, one in differences.items() if len(one) >= FEWEST}
        p = wilcoxon_each(list(differences.values()))
        rows = zip(differences.items(), p, holm(p), strict=True)
        return [Pair(*pair, one_p, adjusted, len(one), len(p)) for (pair, one), one_p, adjusted in rows]


def _draws(images: int) -> int:
    """Draws of the bootstrap: fewer with many images, whose means are close to normal anyway."""
    return 1999 if images < 1000 else 999
