"""Accuracy information curve."""

from __future__ import annotations

from suffice.metrics.information import InformationChoices, information_curves
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial


@metric(
    "aic",
    higher_is_better=True,
    range=(0, 1),
    needs=("maps", "model"),
    reference="Kapishnikov et al., XRAI, ICCV 2019",
    choices=InformationChoices(),
)
def aic(trial: Trial, choices: InformationChoices) -> Outcome:
    """How little information from the most important pixels is enough for the class to win."""
    return information_curves(trial, choices, "accuracy")
