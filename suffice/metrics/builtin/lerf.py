"""Least relevant first."""

from __future__ import annotations

from suffice.metrics.curves import CurveChoices, trace
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial


@metric(
    "lerf",
    higher_is_better=True,
    range=(0, 1),
    needs=("maps", "model"),
    reference="Samek et al., Evaluating the Visualization of What a Deep Neural Network Has Learned, TNNLS 2017",
    choices=CurveChoices(units=14, steps=None, step_size=1),
)
def lerf(trial: Trial, choices: CurveChoices) -> Outcome:
    """What is left of the class on average while the least relevant regions are hidden first."""
    return trace(trial, choices, "remove least")
