"""What the model says while the most important pixels come in."""

from __future__ import annotations

from suffice.metrics.curves import CurveChoices, trace
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial


@metric(
    "insertion",
    higher_is_better=True,
    range=(0, 1),
    needs=("maps", "model"),
    reference="Petsiuk, Das, Saenko, RISE, BMVC 2018",
    choices=CurveChoices(),
)
def insertion(trial: Trial, choices: CurveChoices) -> Outcome:
    """How soon the class appears when the most important pixels are shown first."""
    return trace(trial, choices, "insert")
