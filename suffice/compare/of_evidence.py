"""Tables about the evidence of several models: how much, whether they differ, and how they decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.compare.adjusting import AdjustedDifference, adjusted_difference
from suffice.compare.indices import Index, explained_by, how_it_decides
from suffice.compare.pairwise import Difference, Numbers, compare_pairs, holm
from suffice.compare.ranking import rank_models
from suffice.compare.sections import Section
from suffice.compare.tables import by_model, numbers_of
from suffice.compare.trainings import TrainingDifference, compare_trainings
from suffice.errors import OptionError
from suffice.study.choices import Contrast

if TYPE_CHECKING:
    import pyarrow

DRAWS = 1999
FEW = 5  # so many models have few enough pairs to print
CELLS = (1, 2, 3, 5, 7, 10, 15)


@dataclass(frozen=True)
class Quantity:
    """What is compared: a column, its words, and whether it is a count, of which logarithms are compared."""

    column: str
    words: str
    count: bool = True

    def values(self, numbers: Mapping[str, Numbers]) -> dict[str, Any]:
        """What tests are made on, of each model."""
        return {model: np.log1p(own) if self.count else own for model, own in numbers.items()}

    def interval(self, found: Any) -> Index:
        """A difference in words of the quantity: for counts, how many times more the first has."""
        ends = (found.difference, found.low, found.high)
        return Index(*(float(np.exp(end)) if self.count else float(end) for end in ends))


QUANTITIES = (
    Quantity("mses", "MSEs"),
    Quantity("mean_size", "cells of an MSE", count=False),
    Quantity("distinct_50", "sub-explanations at 50 %"),
)
STRICTER = Quantity("distinct_80", "sub-explanations at 80 %")


def of_evidence(
    table: pyarrow.Table,
    name: str,
    contrasts: Sequence[Contrast] = (),
    accuracies: Mapping[str, float] | None = None,
) -> list[Section]:
    """The tables of a search for evidence with several models, or with one.

    Args:
        table: Of a study, rows with errors left out.
        name: Of the measurement.
        contrasts: The comparisons that the study was made for.
        accuracies: Of the models, where they are known: architectures are compared at equal accuracy, too.
    """
    made = [_summary(table, name), _decides(table, name), _distribution(table, name)]
    numbers = {one: numbers_of(table, one.column) for one in QUANTITIES}
    found = _pairs(numbers)
    if found:
        made.insert(1, _ranking(numbers, found, name))
        made.insert(2, _differences(found, name, len(numbers[QUANTITIES[0]]) > FEW))
        asked = _asked(numbers, contrasts, name)
        made[1:1] = [asked] if asked else []
    trainings = _trainings(table, name, contrasts, accuracies or {})
    return [*made, trainings] if trainings else made


def _summary(table: pyarrow.Table, name: str) -> Section:
    """Means and medians of counts."""
    rows = []
    for model, own in by_model(table).items():
        counts = {one.column: numbers_of(own, one.column)[model] for one in QUANTITIES}
        some = np.nan_to_num(counts["mses"]) > 0
        below = counts["distinct_50"][some]
        rows.append(
            [
                model, own.num_rows, int(some.sum()), _mean(counts["mses"][some]), _mean(counts["mean_size"][some]),
                _mean(below), float(np.median(below)) if len(below) else float("nan"),
            ]
        )  # fmt: skip
    columns = ("model", "images", "with evidence", "MSEs", "cells of an MSE", "sub-explanations", "median")
    note = "MSEs are minimal sufficient explanations; sub-explanations below them keep half of the confidence."
    return Section(name, f"{name}: what is enough", columns, rows, (note,))


def _pairs(numbers: Mapping[Quantity, Mapping[str, Numbers]]) -> dict[Quantity, list[Difference]]:
    """Every two models by each quantity; nothing where there are too few models or images."""
    try:
        return {one: compare_pairs(one.values(own), draws=DRAWS) for one, own in numbers.items()}
    except OptionError:
        return {}


def _ranking(
    numbers: Mapping[Quantity, Mapping[str, Numbers]], found: Mapping[Quantity, list[Difference]], name: str
) -> Section:
    """Models with letters for those that do not differ, one column a quantity."""
    ranked = {one: rank_models(one.values(own), pairs=found[one]) for one, own in numbers.items()}
    letters = {one: {r.model: r.letters for r in rows} for one, rows in ranked.items()}
    means = {
        one: {r.model: float(np.expm1(r.mean)) if one.count else r.mean for r in rows} for one, rows in ranked.items()
    }
    rows = [
        [model, *(value for one in numbers for value in (means[one][model], letters[one][model]))]
        for model in (r.model for r in ranked[QUANTITIES[0]])
    ]
    columns = ("model", *(text for one in numbers for text in (one.words, f"alike in {one.words}")))
    note = (
        "Models that share a letter do not differ significantly (Wilcoxon over the same images, Holm, 5 %). Means of "
        "counts are geometric."
    )
    return Section(f"{name}-ranking", f"{name}: ranking", columns, rows, (note,))


def _differences(found: Mapping[Quantity, list[Difference]], name: str, long: bool) -> Section:
    """Every two models: by how much, and whether that could be chance."""
    rows = [
        [one.words, d.first, d.second, one.interval(d), d.effect, d.p, d.adjusted, d.images]
        for one, differences in found.items()
        for d in differences
    ]
    columns = ("of", "first", "second", "difference", "effect", "p", "p (Holm)", "images")
    note = (
        "Differences of counts are ratios, 1 where both are alike, else first less second; 95 % intervals by the "
        "bootstrap. The effect is the rank-biserial correlation, from -1 to 1."
    )
    return Section(f"{name}-differences", f"{name}: every two models", columns, rows, (note,), long)


def _asked(
    numbers: Mapping[Quantity, Mapping[str, Numbers]], contrasts: Sequence[Contrast], name: str
) -> Section | None:
    """The comparisons that a study was made for, of models with one training each; corrected for each other only."""
    rows = []
    for one, own in numbers.items():
        known = [c for c in contrasts if {c.of, c.against} <= set(own)]
        values = one.values(own)
        found = [compare_pairs({n: values[n] for n in (c.of, c.against)}, draws=DRAWS)[0] for c in known]
        adjusted = holm([d.p for d in found]) if found else []
        rows += [
            [c.question or f"{c.of} instead of {c.against}", one.words, one.interval(d), d.effect, d.p, p, d.images]
            for c, d, p in zip(known, found, adjusted, strict=True)
        ]
    columns = ("question", "of", "difference", "effect", "p", "p (Holm)", "images")
    note = (
        "Named in the study before it was run, and corrected for each other only. Differences of counts are ratios, 1 "
        "where both are alike; 95 % intervals."
    )
    return Section(f"{name}-contrasts", f"{name}: what was asked", columns, rows, (note,)) if rows else None


def _decides(table: pyarrow.Table, name: str) -> Section:
    """Indices with intervals."""
    rows: list[list[Any]] = []
    for model, own in by_model(table).items():
        try:
            found = how_it_decides(own, draws=DRAWS)
        except OptionError:  # fewer than two images have evidence
            continue
        indices = (found.compositionality, found.disjunctivism, found.independent, found.gentleness, found.size)
        rows.append([model, *indices, found.images])
    columns = ("model", "compositionality", "disjunctivism", "independent", "gentleness", "size", "images")
    note = "Compositionality and disjunctivism are geometric means of sub-explanations and of MSEs; 95 % intervals."
    return Section(f"{name}-indices", f"{name}: how models decide", columns, rows, (note,))


def _distribution(table: pyarrow.Table, name: str) -> Section:
    """How many images few cells explain, and how many really different explanations there are."""
    parts = by_model(table)
    shares = explained_by(
        {model: [s or [] for s in own["sizes"].to_pylist()] for model, own in parts.items()}, CELLS[-1]
    )
    rows = [
        [
            model, *(shares[model][n] for n in CELLS),
            *(_mean(numbers_of(own, f"diverse_{overlap}")[model]) for overlap in (0, 1)),
        ]
        for model, own in parts.items()
    ]  # fmt: skip
    columns = ("model", *(f"≤ {n}" for n in CELLS), "diverse, overlap 0", "overlap 1")
    note = "Share of the images that an MSE of at most so many cells explains; and MSEs that share no cell, or one."
    return Section(f"{name}-distribution", f"{name}: how few cells", columns, rows, (note,))


def _trainings(
    table: pyarrow.Table, name: str, contrasts: Sequence[Contrast], accuracies: Mapping[str, float]
) -> Section | None:
    """Architectures of which there are several trainings: would others say the same?

    Where the study names comparisons between them, these alone are made, and corrected for each other.
    """
    groups: dict[str, list[str]] = {}
    for model, own in by_model(table).items():
        if own["seed"][0].as_py() is not None:
            groups.setdefault(own["group"][0].as_py(), []).append(model)
    several = {group: models for group, models in groups.items() if len(models) > 1}
    asked = {(c.of, c.against): c.question for c in contrasts if {c.of, c.against} <= set(several)}
    pairs = list(asked or combinations(several, 2))
    known = {"confidence": {model: _mean(own) for model, own in numbers_of(table, "confidence").items()}}
    if all(model in accuracies for models in several.values() for model in models):
        known["accuracy"] = dict(accuracies)
    rows = []
    for one in (*QUANTITIES, STRICTER):
        values = one.values(numbers_of(table, one.column))
        trained = {group: [values[model].tolist() for model in models] for group, models in several.items()}
        found = {pair: compared for pair in pairs if (compared := _compared(*(trained[group] for group in pair)))}
        adjusted = holm([one.p for one in found.values()])
        for ((first, second), difference), p in zip(found.items(), adjusted, strict=True):
            question = asked.get((first, second)) or f"{first} instead of {second}"
            counts = " and ".join(map(str, difference.trainings))
            alike = _at_equal(values, several[first], several[second], known)
            rows.append(
                [
                    question, one.words, counts, one.interval(difference), difference.p, p,
                    difference.seed_share, difference.seeds_needed(), alike and one.interval(alike),
                ]
            )  # fmt: skip
    equal = f"at equal {' and '.join(known)}"
    columns = ("question", "of", "trainings", "difference", "p", "p (Holm)", "share of seeds", "seeds needed", equal)
    note = (
        "Trainings and images are both a sample; the share is that of the variance which more trainings would lessen. "
        "With so many of each, and as many other images, four of five attempts would show the difference that was seen "
        "(at 5 %, uncorrected); – where there are too few images for any number. Differences of counts are ratios. The "
        "last column is what a regression over networks leaves to the architecture."
    )
    title = f"{name}: would other trainings say the same?"
    return Section(f"{name}-trainings", title, columns, rows, (note,)) if rows else None


def _compared(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> TrainingDifference | None:
    """The difference of two architectures; None where hardly any image has a number in every training."""
    try:
        return compare_trainings(first, second)
    except OptionError:
        return None


def _at_equal(
    values: Mapping[str, Numbers], first: Sequence[str], second: Sequence[str], known: Mapping[str, Mapping[str, float]]
) -> AdjustedDifference | None:
    """The difference of two architectures, adjusted for what else is known of their networks, if these are enough."""
    outcomes = [[_mean(values[model]) for model in models] for models in (first, second)]
    beside = {name: ([own[m] for m in first], [own[m] for m in second]) for name, own in known.items()}
    try:
        return adjusted_difference(outcomes[0], outcomes[1], beside)
    except OptionError:
        return None


def _mean(values: Numbers) -> float:
    some = values[np.isfinite(values)]
    return float(some.mean()) if len(some) else float("nan")
