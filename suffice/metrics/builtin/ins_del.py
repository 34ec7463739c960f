"""Insertion less deletion."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from suffice.metrics.curves import CurveChoices, trace
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome, combined
from suffice.metrics.trial import Trial


@dataclass(frozen=True)
class InsDelChoices(CurveChoices):
    """Every choice behind both curves.

    Attributes:
        deletion_baseline: Of the deletion curve; None: the same as of insertion.
    """

    deletion_baseline: Any = None


@metric(
    "ins-del",
    higher_is_better=True,
    range=(-1, 1),
    needs=("maps", "model"),
    reference="Zhang, Rao, Yang, Group-CAM, 2021 (the overall score)",
    choices=InsDelChoices(),
)
def ins_del(trial: Trial, choices: InsDelChoices) -> Outcome:
    """Insertion less deletion; both are found in the parts."""
    same: dict[str, Any] = {f.name: getattr(choices, f.name) for f in fields(CurveChoices)}
    other = {**same, "baseline": choices.baseline if choices.deletion_baseline is None else choices.deletion_baseline}
    parts = {
        "insertion": trace(trial, CurveChoices(**same), "insert"),
        "deletion": trace(trial, CurveChoices(**other), "remove"),
    }
    return combined(parts, "difference")
