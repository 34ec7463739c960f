"""Average drop."""

from __future__ import annotations

from typing import Any

import torch

from suffice.metrics.confidence import Mask, seen_through_map
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial
from suffice.perturb.masks import Enlargement


@metric(
    "adp",
    higher_is_better=False,
    range=(0, 1),
    needs=("maps", "model"),
    reference="Chattopadhay et al., Grad-CAM++, WACV 2018",
)
def adp(
    trial: Trial,
    *,
    mask: Mask = "min-max",
    baseline: Any = "black",
    enlargement: Enlargement = "bilinear",
    scale: float = 1.0,
) -> Outcome:
    """Which share of the score is lost when the image is seen through its map; a rise counts as no loss.

    Args:
        trial: The images and their maps.
        mask: How a map becomes a mask: ``"min-max"``, or ``"raw"`` for maps in [0, 1].
        baseline: What shows where the map is low.
        enlargement: How maps are enlarged to the image.
        scale: The number is multiplied by this; papers print percent.

    Returns:
        Values [B]; 0 where there is no score to lose.
    """
    whole, seen = seen_through_map(trial, mask, baseline, enlargement)
    lost = (whole - seen).clamp(min=0) / torch.where(whole > 0, whole, 1)
    return Outcome(scale * torch.where(whole > 0, lost, 0))
