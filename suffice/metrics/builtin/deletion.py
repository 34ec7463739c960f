"""What the model says while the most important pixels go."""

from __future__ import annotations

from suffice.metrics.curves import CurveChoices, trace
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial


@metric(
    "deletion",
    higher_is_better=False,
    range=(0, 1),
    needs=("maps", "model"),
    reference="Petsiuk, Das, Saenko, RISE, BMVC 2018",
    choices=CurveChoices(),
)
def deletion(trial: Trial, choices: CurveChoices) -> Outcome:
    """How soon the class is lost when the most important pixels are hidden first."""
    return trace(trial, choices, "remove")
