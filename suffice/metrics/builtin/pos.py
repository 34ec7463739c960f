"""Positive perturbation."""

from __future__ import annotations

from suffice.metrics.curves import CurveChoices, trace
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial


@metric(
    "pos",
    higher_is_better=False,
    range=(0, 1),
    needs=("maps", "model"),
    reference="Chefer, Gur, Wolf, Transformer Interpretability Beyond Attention Visualization, CVPR 2021",
    choices=CurveChoices(
        baseline="black", steps=None, fractions=tuple(i / 10 for i in range(1, 10)), value="accuracy"
    ),
)  # fmt: skip
def pos(trial: Trial, choices: CurveChoices) -> Outcome:
    """How often the class still wins while the most important 10 to 90 % of the pixels are hidden."""
    return trace(trial, choices, "remove")
