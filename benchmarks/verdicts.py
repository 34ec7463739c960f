"""The verdicts of docs/findings-protocol.md, from the runs of studies/normalization.toml on both data sets.

    python benchmarks/verdicts.py imagenette=runs/normalization tiny=runs/normalization-tiny --out verdicts.md

For every question, data set and baseline: how many times as many sub-explanations with half of the confidence the first
kind of network has, with trainings and images as samples, corrected for the other questions (Holm), and again at equal
accuracy and confidence. Then what these say together, by the rules of the protocol, which this file is the code of.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path

import numpy as np

from suffice import Study
from suffice.compare import adjusted_difference, compare_trainings
from suffice.compare.of_predictions import accuracies_of
from suffice.compare.pairwise import holm
from suffice.compare.tables import by_model, numbers_of, tables_of_kind, without_errors
from suffice.errors import OptionError

OUTCOME = "distinct_50"
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
    sign = -1 if expected == FEWER else 1
    ahead = [sign * (one.ratio - 1) > 0 for one in answers]
    ahead += [sign * (one.adjusted[0] - 1) > 0 for one in answers if one.adjusted is not None]
    if all(one.significant for one in primary):
        if all(ahead):
            return "confirmed"
        if not any(sign * (one.ratio - 1) > 0 for one in primary):
            return "refuted"
    return "cannot tell"


def answers_of(data: str, study: Study) -> dict[tuple[str, str], list[Answer]]:
    """All that a run says, by the kinds that are compared."""
    (said,) = tables_of_kind(study, "predictions")
    accuracies = accuracies_of(without_errors(study.table(said)))
    pairs = [(one.of, one.against) for one in study.asked.contrasts]
    found: dict[tuple[str, str], list[Answer]] = {pair: [] for pair in pairs}
    for baseline in tables_of_kind(study, "evidence"):
        table = without_errors(study.table(baseline))
        kinds: dict[str, list[str]] = {}
        for model, own in by_model(table).items():
            kinds.setdefault(own["group"][0].as_py(), []).append(model)
        counts = {model: np.log1p(own) for model, own in numbers_of(table, OUTCOME).items()}
        sure = {model: float(np.nanmean(own)) for model, own in numbers_of(table, "confidence").items()}
        plain = [compare_trainings(*([counts[m] for m in kinds[kind]] for kind in pair)) for pair in pairs]
        for pair, difference, p in zip(pairs, plain, holm([one.p for one in plain]), strict=True):
            members = [kinds[kind] for kind in pair]
            beside = {
                name: ([own[m] for m in members[0]], [own[m] for m in members[1]])
                for name, own in (("accuracy", accuracies), ("confidence", sure))
            }
            means = [[float(np.nanmean(counts[m])) for m in some] for some in members]
            ends = map(exp, (difference.difference, difference.low, difference.high))
            found[pair].append(
                Answer(data, baseline, *ends, p=p, adjusted=_equal(means, beside), trainings=difference.trainings)
            )
    return found


def _equal(means: list[list[float]], beside: dict[str, tuple[list[float], list[float]]]) -> tuple | None:
    """The ratio at equal accuracy and confidence with its interval; None where there are too few trainings for it."""
    try:
        equal = adjusted_difference(means[0], means[1], beside)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="NAME=FOLDER of each data set")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    found: dict[tuple[str, str], list[Answer]] = {}
    questions: dict[tuple[str, str], str] = {}
    for one in options.runs:
        name, _, folder = one.partition("=")
        study = Study.open(folder)
        questions |= {(c.of, c.against): c.question for c in study.asked.contrasts}
        for pair, answers in answers_of(name, study).items():
            found.setdefault(pair, []).extend(answers)
    text = written(questions, found)
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
