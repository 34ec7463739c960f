"""The verdicts of docs/findings-protocol.md, from the runs of studies/normalization.toml on both data sets.

    python benchmarks/verdicts.py imagenette=runs/normalization tiny=runs/normalization-tiny --out verdicts.md

For every question, data set and baseline: how many times as many sub-explanations with half of the confidence the first
kind of network has, with trainings and images as samples, corrected for the other questions (Holm), and again at equal
accuracy and confidence. Then what these say together, by the rules of the protocol, which this file is the code of;
beside them the secondary outcomes, which no verdict rests on, and what the networks are like. A data set may be given
several times: trainings that were measured in several runs are taken together.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from suffice import Study
from suffice.compare import Activations, adjusted_difference, compare_trainings
from suffice.compare.of_predictions import accuracies_of
from suffice.compare.pairwise import Numbers, holm
from suffice.compare.tables import by_model, numbers_of, tables_of_kind, without_errors
from suffice.errors import OptionError, SufficeError

OUTCOME = "distinct_50"
# Columns of evidence, in words; counts are compared by their logarithms.
SECONDARY = {
    "distinct_80": "sub-explanations at 80 %",
    "distinct_70": "at 70 %",
    "distinct_60": "at 60 %",
    OUTCOME: "at 50 %",
    "mses": "MSEs",
    "diverse_0": "MSEs that share no cell",
    "mean_size": "cells of an MSE",
}
NO_COUNT = "mean_size"
PRIMARY = "evidence"
ALPHA = 0.05
LITTLE = 1.25  # a factor
# What the papers say of the number of sub-explanations, by the two kinds of network.
FEWER, MORE, NOT_FEWER, ALIKE = "fewer", "more", "about as many, or more", "little difference"
EXPECTED = {
    ("convnext-3-bn", "convnext-3"): FEWER,
    ("swin-4-bn", "swin-4"): FEWER,
    ("convnext-3-gn", "convnext-3"): NOT_FEWER,
    ("swin-4-gn", "swin-4"): NOT_FEWER,
    ("convnext-3", "convnext"): ALIKE,
    ("swin-4", "swin"): ALIKE,
    ("deit-distilled", "deit"): FEWER,
    ("resnet-aug", "resnet"): MORE,
}


@dataclass(frozen=True)
class Answer:
    """What one data set under one baseline says to one question: ratios of counts, with 95 % intervals."""

    data: str
    baseline: str
    ratio: float
    low: float
    high: float
    p: float  # corrected for the other questions
    adjusted: tuple[float, float, float] | None  # at equal accuracy and confidence, with its interval
    trainings: tuple[int, int]

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance."""
        return self.p < ALPHA


def verdict(expected: str, answers: Sequence[Answer]) -> str:
    """What the answers to one question say together, on all data sets and under all baselines.

    Example:
        >>> fewer = [Answer(data, "evidence", 0.6, 0.5, 0.7, 0.001, (0.7, 0.5, 0.9), (10, 10)) for data in "ab"]
        >>> verdict("fewer", fewer), verdict("more", fewer), verdict("fewer", fewer[:1])
        ('confirmed', 'refuted', 'cannot tell: one data set')
    """
    primary = [one for one in answers if one.baseline == PRIMARY]
    if len({one.data for one in primary}) < 2:
        return "cannot tell: one data set"
    if expected in (ALIKE, NOT_FEWER):
        if all(one.low >= 1 / LITTLE and one.high <= LITTLE for one in primary):
            return "little difference confirmed"
        if expected == ALIKE:
            beyond = all(one.low > LITTLE for one in primary) or all(one.high < 1 / LITTLE for one in primary)
            return "refuted" if beyond else "cannot tell"
    if not all(one.significant for one in primary):
        return "cannot tell"
    if any(one.adjusted is None for one in answers):
        return "cannot tell: too few trainings to adjust"
    sign = -1 if expected == FEWER else 1
    ahead = {one: [sign * (ratio - 1) > 0 for ratio in (one.ratio, one.adjusted[0])] for one in answers}
    if all(all(both) for both in ahead.values()) and {one.baseline for one in answers} != {PRIMARY}:
        return "confirmed"
    return "cannot tell" if any(any(ahead[one]) for one in primary) else "refuted"


class Runs:
    """The runs of one data set, taken together.

    Args:
        data: Its name.
        studies: Of the same images and the same questions, of different networks.
    """

    def __init__(self, data: str, studies: Sequence[Study]) -> None:
        self.data, self.studies = data, studies
        first = studies[0]
        self.contrasts = {(one.of, one.against): one.question for one in first.asked.contrasts}
        for other in studies[1:]:
            if other.plan.names != first.plan.names or other.asked.contrasts != first.asked.contrasts:
                raise OptionError(f"The runs of {data} are about different images or questions.")
        (said,) = tables_of_kind(first, "predictions")
        self.baselines = tables_of_kind(first, "evidence")
        self.said = self.table(said)
        self.kinds: dict[str, list[str]] = {}
        for model, own in by_model(self.said).items():
            self.kinds.setdefault(own["group"][0].as_py(), []).append(model)
        if missing := {kind for pair in self.contrasts for kind in pair} - {k for k, m in self.kinds.items() if m[1:]}:
            raise OptionError(f"{data} has fewer than two trainings of {', '.join(sorted(missing))}.")

    def table(self, name: str) -> pa.Table:
        """A table of all runs, rows with errors left out; an error where networks are missing, or there twice."""
        parts = [without_errors(study.table(name)) for study in self.studies]
        models = [model for part in parts for model in part["model"].unique().to_pylist()]
        if twice := {model for model in models if models.count(model) > 1}:
            raise OptionError(f"Several runs of {self.data} have {', '.join(sorted(twice))}.")
        if hasattr(self, "kinds") and (missing := {m for own in self.kinds.values() for m in own} - set(models)):
            raise OptionError(f"{name} of {self.data} is not done yet for {', '.join(sorted(missing))}.")
        return pa.concat_tables(parts, promote_options="default")

    def of_kinds(self, values: Mapping[str, Any], pair: Sequence[str]) -> list[list[Any]]:
        """The values of the trainings of some kinds."""
        return [[values[model] for model in self.kinds[kind]] for kind in pair]


def answers_of(runs: Runs) -> dict[tuple[str, str], list[Answer]]:
    """All that the runs of a data set say, by the kinds that are compared."""
    accuracies = accuracies_of(runs.said)
    found: dict[tuple[str, str], list[Answer]] = {pair: [] for pair in runs.contrasts}
    for baseline in runs.baselines:
        table = runs.table(baseline)
        counts = outcomes(table, OUTCOME)
        known = {"accuracy": accuracies, "confidence": means(numbers_of(table, "confidence"))}
        plain = [compare_trainings(*runs.of_kinds(counts, pair)) for pair in found]
        for pair, difference, p in zip(found, plain, holm([one.p for one in plain]), strict=True):
            first, second = runs.of_kinds(means(counts), pair)
            beside = {name: tuple(runs.of_kinds(own, pair)) for name, own in known.items()}
            ends = map(exp, (difference.difference, difference.low, difference.high))
            adjusted = _equal(first, second, beside)
            found[pair].append(
                Answer(runs.data, baseline, *ends, p=p, adjusted=adjusted, trainings=difference.trainings)
            )
    return found


def outcomes(table: pa.Table, column: str) -> dict[str, Numbers]:
    """What is compared, of each model and image: logarithms of counts."""
    return {model: own if column == NO_COUNT else np.log1p(own) for model, own in numbers_of(table, column).items()}


def means(numbers: Mapping[str, Numbers]) -> dict[str, float]:
    """The mean over images, of each model."""
    return {model: float(np.nanmean(own)) for model, own in numbers.items()}


def _equal(first: list[float], second: list[float], beside: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """The ratio at equal accuracy and confidence with its interval; None where there are too few trainings for it."""
    try:
        equal = adjusted_difference(first, second, beside)
    except OptionError:
        return None
    return exp(equal.difference), exp(equal.low), exp(equal.high)


def written(questions: Mapping[tuple[str, str], str], found: Mapping[tuple[str, str], Sequence[Answer]]) -> str:
    """Two tables in Markdown: the verdicts, and what they rest on."""
    lines = ["| question | the papers say | verdict |", "|---|---|---|"]
    lines += [f"| {questions[p]} | {EXPECTED[p]} | **{verdict(EXPECTED[p], own)}** |" for p, own in found.items()]
    lines += ["", "| question | data | measurement | ratio | p (Holm) | at equal accuracy and confidence | trainings |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for pair, own in found.items():
        for one in own:
            equal = "–" if one.adjusted is None else "{:.2f} [{:.2f}, {:.2f}]".format(*one.adjusted)
            lines.append(
                f"| {questions[pair]} | {one.data} | {one.baseline} | {one.ratio:.2f} [{one.low:.2f}, {one.high:.2f}] "
                f"| {one.p:.2g} | {equal} | {one.trainings[0]} and {one.trainings[1]} |"
            )
    return "\n".join(lines) + "\n"


def secondary(runs: Runs) -> Iterator[str]:
    """Rows of the other outcomes, not corrected, and of the dominance of channels."""
    for baseline in runs.baselines:
        table = runs.table(baseline)
        for column, words in SECONDARY.items():
            values = outcomes(table, column)
            for pair, question in runs.contrasts.items():
                d = compare_trainings(*runs.of_kinds(values, pair))
                ends = [d.difference, d.low, d.high] if column == NO_COUNT else map(exp, (d.difference, d.low, d.high))
                sign = "+" if column == NO_COUNT else ""
                said = "{:{s}.2f} [{:{s}.2f}, {:{s}.2f}]".format(*ends, s=sign)
                yield f"| {question} | {runs.data} | {baseline} | {words} | {said} | {d.p:.2g} |"
    for name in tables_of_kind(runs.studies[0], "activations"):
        uneven = {model: one.dominance for model, one in Activations.from_table(runs.table(name)).items()}
        for pair, question in runs.contrasts.items():
            e = adjusted_difference(*runs.of_kinds(uneven, pair), {})
            said = f"{e.difference:+.3f} [{e.low:+.3f}, {e.high:+.3f}]"
            yield f"| {question} | {runs.data} | {name} | dominance of channels | {said} | {e.p:.2g} |"


def networks(runs: Runs) -> Iterator[str]:
    """Rows about the networks of each kind: accuracies, how searches ended, geometric means of counts."""
    accuracies = accuracies_of(runs.said)
    for baseline in runs.baselines:
        table = runs.table(baseline)
        sure = means(numbers_of(table, "confidence"))
        parts = by_model(table)
        columns = {column: means(outcomes(table, column)) for column in SECONDARY}
        for kind, models in runs.kinds.items():
            right = [accuracies[model] for model in models]
            own = pa.concat_tables([parts[model] for model in models])
            stopped = own["stopped"].to_pylist()
            none = sum(count == 0 for count in own["mses"].to_pylist()) / own.num_rows
            cut = sum(own["truncated"].to_pylist()) / own.num_rows
            values = [float(np.mean([columns[column][model] for model in models])) for column in SECONDARY]
            shown = [v if c == NO_COUNT else np.expm1(v) for c, v in zip(SECONDARY, values, strict=True)]
            yield (
                f"| {kind} | {runs.data} | {baseline} | {len(models)} "
                f"| {np.mean(right):.1%} ({min(right):.1%} to {max(right):.1%}) "
                f"| {np.mean([sure[model] for model in models]):.2f} | {stopped.count('max_size') / len(stopped):.1%} "
                f"| {none:.1%} | {cut:.1%} | {' | '.join(f'{value:.2f}' for value in shown)} |"
            )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="NAME=FOLDER of each data set")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args(arguments)
    folders: dict[str, list[str]] = {}
    for one in options.runs:
        name, _, folder = one.partition("=")
        folders.setdefault(name, []).append(folder)
    found: dict[tuple[str, str], list[Answer]] = {}
    questions: dict[tuple[str, str], str] = {}
    others = ["| question | data | measurement | of | ratio or difference | p |", "|---|---|---|---|---|---|"]
    about = [
        "| kind | data | measurement | trainings | accuracy | confidence | ended at 18 cells | no MSE | cut off | "
        + " | ".join(SECONDARY.values()) + " |",
        "|---" * (9 + len(SECONDARY)) + "|",
    ]  # fmt: skip
    try:
        for name, several in folders.items():
            runs = Runs(name, [Study.open(folder) for folder in several])
            questions |= runs.contrasts
            for pair, answers in answers_of(runs).items():
                found.setdefault(pair, []).extend(answers)
            others += secondary(runs)
            about += networks(runs)
    except SufficeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    text = "\n".join(
        [
            "## Verdicts",
            "",
            written(questions, found),
            "## Other outcomes",
            "",
            *others,
            "",
            "## Networks",
            "",
            *about,
            "",
        ]
    )
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
