"""Metrics of the confidence in an image that is seen through its own map: average drop and increase."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.metrics.map_batch import MapBatch
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.perturb.masks import Enlargement

Mask = Literal["min-max", "raw"]
_through_map = partial(
    metric, bounds=(0, 1), needs=("maps", "model"), reference="Chattopadhay et al., Grad-CAM++, WACV 2018"
)


@_through_map("adp", higher_is_better=False)
def adp(
    given: MapBatch,
    *,
    mask: Mask = "min-max",
    baseline: Any = "black",
    enlargement: Enlargement = "bilinear",
    scale: float = 1.0,
) -> Outcome:
    """Average drop: share of the score that is lost when the image is masked by its map; 0 where there is none to lose.

    Args:
        given: The images and their maps.
        mask: How a map becomes a mask: ``"min-max"``, or ``"raw"`` for maps in [0, 1].
        baseline: What shows where the map is low.
        enlargement: How maps are enlarged to the image.
        scale: The number is multiplied by this; papers print percent.
    """
    whole, seen = given.whole.score, _score_through_map(given, mask, baseline, enlargement)
    lost = (whole - seen).clamp(min=0) / torch.where(whole > 0, whole, 1)
    return Outcome(scale * torch.where(whole > 0, lost, 0))


@_through_map("pic", higher_is_better=True)
def pic(
    given: MapBatch,
    *,
    mask: Mask = "min-max",
    baseline: Any = "black",
    enlargement: Enlargement = "bilinear",
    scale: float = 1.0,
) -> Outcome:
    """Increase in confidence: whether the score rises when the image is masked by its map; options as in ``adp``."""
    seen = _score_through_map(given, mask, baseline, enlargement)
    return Outcome(scale * (seen > given.whole.score).float())


def _score_through_map(given: MapBatch, mask: Mask, baseline: Any, enlargement: Enlargement) -> Tensor:
    """Scores [B] of images multiplied by their maps; one that is constant shows nothing."""
    maps = given.resized_maps(enlargement)
    if mask == "raw":
        if maps.min() < 0 or maps.max() > 1:
            raise OptionError(
                f"mask='raw' takes maps in [0, 1] as they are; these range from {maps.min():.3g} to {maps.max():.3g}. "
                "Write mask='min-max'."
            )
    else:
        low, high = maps.amin(dim=(1, 2), keepdim=True), maps.amax(dim=(1, 2), keepdim=True)
        span = high - low
        maps = torch.where(span > 0, (maps - low) / torch.where(span > 0, span, 1), 0)
    return given.respond_through(baseline, maps, (mask, enlargement)).score
