"""What ``suffice evidence`` says: the explanations of an image, and the summary of many."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from suffice.cli import output
from suffice.draw.words import counted, percent

if TYPE_CHECKING:
    from suffice.evidence import Evidence, Settings
    from suffice.evidence.files.statistics import Summary

MOST = 12  # MSEs of an image that a terminal shows
# What to say of the images whose search ended so, after their number.
ENDS = {
    "beam empty": "searched until nothing was left to enlarge.",
    "max_mses": "stopped at the limit of {max_mses} MSEs: their counts are lower bounds.",
    "max_size": "searched up to sets of {max_size} cells: larger MSEs are not counted.",
    "max_questions": "stopped before a level beyond {max_questions} questions: their counts are lower bounds.",
    "nothing needed": "decided by the baseline alone: no cell is needed.",
    "no confidence": "without evidence: the confidence is below {min_confidence}, so ratios to it mean nothing.",
    "not a number": "without evidence: the model returns NaN or infinity.",
    "whole fails": "without evidence: the whole image itself does not suffice.",
}


def print_evidence(found: Evidence) -> None:
    """Print the MSEs of one image, what lies below them, and what ended the search."""
    from suffice.evidence.counting import COUNTINGS
    from suffice.evidence.telling import most_telling

    alone = f"baseline alone: {found.baseline_confidence:.3f}"
    if isfinite(found.baseline_ratio):
        alone += f", {percent(found.baseline_ratio)} of it"
    title = f"{found.name}: {found.label}, confidence {found.confidence:.3f} ({alone})"
    if not found.meaningful:
        output.note(f"{title}\n{found.why}\n")
        return
    if not output.stdout.is_terminal:
        output.note(title)
    columns = _columns(found)
    rows = list(zip(*columns.values(), strict=True))
    if output.stdout.is_terminal and len(rows) > MOST:
        telling = sorted(found.mses.index(mse) for mse in most_telling(found.mses)[:MOST])
        title += f"; the {MOST} most informative of {len(rows)} MSEs (--out and --json have all)"
        rows = [rows[number] for number in telling]
    _table(found, title, tuple(columns), rows, range(len(columns) - 1))

    counts = {c: found.subexplanations(c) for c in COUNTINGS}
    thresholds = list(counts["distinct"])
    below = [(name, *(f"{of[t]:,}".replace(",", " ") for t in thresholds)) for name, of in counts.items()]
    _table(found, "", ("sub-explanations", *(f"≥ {t:.0%}" for t in thresholds)), below, range(1, 1 + len(thresholds)))
    for title, sets in _besides(found).items():
        _table(found, title, (title, "cells", "ratio", "which"), sets, range(3))
    if found.why_not_necessary:
        output.note(found.why_not_necessary)
    if found.exhaustive_mses is not None:
        small = counted(found.exhaustive_mses, "MSE")
        output.note(f"{small} of up to {counted(found.settings.exhaustive, 'cell')}: these are all there are.")

    spent = ", ".join(f"{name} {n}" for name, n in found.spent.items() if n)
    asked = f"{counted(found.questions, 'masked image')}{f' ({spent})' if spent else ''}"
    cut = " Counts of sub-explanations are lower bounds: max_regions was reached." if found.truncated else ""
    mended = f" {counted(found.mended, 'MSE')} from the search mended in fp32." if found.mended else ""
    output.note(f"{found.why} {asked}, {counted(found.levels, 'level')}.{mended}{cut}\n")


def _columns(found: Evidence) -> dict[str, list[Any]]:
    """The columns about MSEs that have something to say."""
    mses = found.mses
    columns: dict[str, list[Any]] = {
        "MSE": list(range(1, len(mses) + 1)),
        "cells": [len(m) for m in mses],
        "ratio": [f"{m.ratio:.3f}" for m in mses],
    }
    if any(m.margin is not None for m in mses):
        columns["margin"] = ["" if m.margin is None else f"{m.margin:.3f}" for m in mses]
    if found.settings.second_baseline is not None:
        columns["2nd baseline"] = ["" if m.second_ratio is None else f"{m.second_ratio:.3f}" for m in mses]
    if any(m.stays is not None for m in mses):
        columns["stays under"] = [f"{sum(m.stays.values())} of {len(m.stays)}" if m.stays else "" for m in mses]
    columns["minimal"] = ["certified" if m.certified else m.minimality for m in mses]
    if any(m.found == "deletion" for m in mses):
        columns["found by"] = [m.found for m in mses]
    return columns | {"which": [_cells(m.cells) for m in mses]}


def _besides(found: Evidence) -> dict[str, list[tuple[Any, ...]]]:
    """What was asked for besides MSEs: heading → rows of number, cells, ratio and which."""
    sets: dict[str, list[tuple[Any, ...]]] = {}
    if found.contrastive is not None:
        sets["contrastive"] = [(len(m), f"{m.ratio:.3f}", _cells(m.cells)) for m in found.contrastive]
    if found.necessary:
        sets["necessary"] = [(len(cells), "", _cells(cells)) for cells in found.necessary]
    for side, parts in found.refined.items():
        sets[f"on {side}×{side}"] = [(len(m), f"{m.ratio:.3f}", _cells(m.cells)) for m in parts]
    return {name: [(number, *row) for number, row in enumerate(rows, start=1)] for name, rows in sets.items()}


def _cells(cells: tuple[int, ...]) -> str:
    return " ".join(map(str, cells))


def _table(found: Evidence, title: str, heads: tuple[str, ...], rows: list[Any], right: range) -> None:
    """A table of one image; piped, each line begins with its name."""
    if output.stdout.is_terminal:
        output.print_table(title, heads, rows, right=right)
    else:
        output.print_table(title, ("image", *heads), [(found.name, *row) for row in rows])


def print_summary(summary: Summary, model: str, settings: Settings) -> None:
    """Print what the images say together, separated by what ended their search."""
    from suffice.evidence.files.table import count_column

    wanted = ["mses", "mean_size", "certified_share", "coverage", "diverse_0", "diverse_1", "diverse_2"]
    wanted += ["within_500", "within_1000", "within_2000", "within_4000", "exhaustive_mses"]
    wanted += ["baseline_ratio", "stability"]
    wanted += [count_column(settings.counting, t) for t in (0.8, 0.7, 0.6, 0.5)] + ["questions"]
    told = {name: summary.statistics[name] for name in wanted if summary.statistics[name].images}
    rows = [
        (name, *(f"{number:.2f}" for number in (s.mean, s.standard_error, s.std, s.median)), s.images)
        for name, s in told.items()
    ]
    columns = ("quantity", "mean", "± s.e.", "std", "median", "images")
    output.print_table(f"{model}: {counted(summary.images, 'image')}", columns, rows, right=range(1, 6))

    ended = [
        (reason, of.images, *(f"{of.statistics[name].mean:.2f}" for name in ("mses", "mean_size", "questions")))
        for reason, of in summary.by_reason.items()
    ]
    output.print_table("", ("ended by", "images", "mses", "mean_size", "questions"), ended, right=range(1, 5))
    for reason, of in summary.by_reason.items():
        output.note(f"{counted(of.images, 'image')} {ENDS[reason].format(**vars(settings))}")
    if summary.by_deletion:
        output.note(f"{counted(summary.by_deletion, 'image')} explained by deletion because the beam found nothing.")
    if summary.truncated:
        output.note(f"{counted(summary.truncated, 'image')} whose counts of sub-explanations are lower bounds.")
    shares = {n: share for n, share in enumerate(summary.explained_with) if n in (1, 2, 3, 5, 8, 10, 15)}
    output.note("Explained with at most n cells: " + ", ".join(f"{n}: {s:.0%}" for n, s in shares.items()))
