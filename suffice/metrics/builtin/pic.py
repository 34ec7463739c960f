"""Percentage of increase in confidence."""

from __future__ import annotations

from typing import Any

from suffice.metrics.confidence import Mask, seen_through_map
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial
from suffice.perturb.masks import Enlargement


@metric(
    "pic",
    higher_is_better=True,
    range=(0, 1),
    needs=("maps", "model"),
    reference="Chattopadhay et al., Grad-CAM++, WACV 2018",
)
def pic(
    trial: Trial,
    *,
    mask: Mask = "min-max",
    baseline: Any = "black",
    enlargement: Enlargement = "bilinear",
    scale: float = 1.0,
) -> Outcome:
    """Whether the score rises when the image is seen through its map.

    Args:
        trial: The images and their maps.
        mask: How a map becomes a mask: ``"min-max"``, or ``"raw"`` for maps in [0, 1].
        baseline: What shows where the map is low.
        enlargement: How maps are enlarged to the image.
        scale: The number is multiplied by this; papers print percent.

    Returns:
        Values [B].
    """
    whole, seen = seen_through_map(trial, mask, baseline, enlargement)
    return Outcome(scale * (seen > whole).float())
