"""Performance information curves: AIC and SIC."""

from __future__ import annotations

from functools import partial

from suffice.metrics.information import InformationChoices, information_curves
from suffice.metrics.map_batch import MapBatch
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome

_curve = partial(
    metric,
    higher_is_better=True,
    bounds=(0, 1),
    needs=("maps", "model"),
    reference="Kapishnikov et al., XRAI, ICCV 2019",
    choices=InformationChoices(),
)


@_curve("aic")
def aic(given: MapBatch, choices: InformationChoices) -> Outcome:
    """Accuracy information curve: accuracy against the information that the most important pixels bring back."""
    return information_curves(given, choices, "accuracy")


@_curve("sic")
def sic(given: MapBatch, choices: InformationChoices) -> Outcome:
    """Softmax information curve: score against the information that the most important pixels bring back."""
    return information_curves(given, choices, "score")
