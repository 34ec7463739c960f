"""A ranking that says which models do not differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np

from suffice.compare.pairwise import Difference, Test, Values, as_columns, compare_pairs


@dataclass(frozen=True)
class Ranked:
    """A model in a ranking.

    Attributes:
        model: Its name.
        mean: Over images.
        letters: Models that share a letter do not differ significantly.
    """

    model: str
    mean: float
    letters: str


def rank_models(
    values: Mapping[str, Values],
    *,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    test: Test = "wilcoxon",
    pairs: Sequence[Difference] | None = None,
) -> list[Ranked]:
    """Rank models by their mean, with letters for groups that do not differ significantly.

    Args:
        values: For each model one number an image, in the same order.
        higher_is_better: Whether the largest mean comes first.
        alpha: Below it a corrected p-value is significant.
        test: See :func:`compare_pairs`.
        pairs: What :func:`compare_pairs` said of them, where that is known already.

    Example:
        >>> values = {"a": [5, 6, 7, 8, 9, 9, 8], "b": [5, 6, 7, 8, 9, 8, 9], "c": [1, 2, 3, 1, 2, 3, 1]}
        >>> [(one.model, one.letters) for one in rank_models(values)]
        [('a', 'a'), ('b', 'a'), ('c', 'b')]
    """
    columns = as_columns(values)
    means = {name: float(np.nanmean(column)) for name, column in columns.items()}
    order = sorted(means, key=lambda name: means[name], reverse=higher_is_better)
    found = compare_pairs(values, test=test) if pairs is None else pairs
    different = [(pair.first, pair.second) for pair in found if pair.clear(alpha)]
    letters = letters_of(order, different)
    return [Ranked(name, means[name], letters[name]) for name in order]


def letters_of(order: Sequence[str], different: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Letters such that two names share one exactly where they are not among the pairs that differ.

    Example:
        >>> letters_of(["x", "y", "z"], [("x", "z")])
        {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    groups = [frozenset(order)]
    for one, other in different:
        split = [part for g in groups for part in ((g - {one}, g - {other}) if {one, other} <= g else (g,))]
        groups = [g for n, g in enumerate(split) if not any(g < h or (g == h and m < n) for m, h in enumerate(split))]
    place = {name: number for number, name in enumerate(order)}
    groups.sort(key=lambda group: sorted(place[name] for name in group))
    return {name: "".join(_letter(n) for n, group in enumerate(groups) if name in group) for name in order}


def _letter(number: int) -> str:
    rounds, rest = divmod(number, len(ascii_letters))
    return ascii_letters[rest] + ("" if not rounds else f"{rounds}")
