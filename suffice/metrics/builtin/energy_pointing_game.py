"""Energy-based pointing game."""

from __future__ import annotations

from typing import Literal

import torch

from suffice.errors import OptionError
from suffice.metrics.boxes import judged_masks
from suffice.metrics.maps import resized
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial
from suffice.perturb.masks import Enlargement


@metric(
    "energy-pointing-game",
    higher_is_better=True,
    range=(0, 1),
    needs=("maps", "boxes"),
    reference="Wang et al., Score-CAM, CVPR Workshops 2020",
)
def energy_pointing_game(
    trial: Trial,
    *,
    values: Literal["positive", "absolute"] = "positive",
    largest: float | None = None,
    enlargement: Enlargement = "bilinear",
) -> Outcome:
    """Which share of the map lies in the boxes.

    Args:
        trial: The images, maps and boxes.
        values: ``"positive"`` values count, or ``"absolute"`` ones.
        largest: Images whose boxes together cover this share or more are not judged; None judges all.
        enlargement: How maps are enlarged to the image.

    Returns:
        Values [B]; for a map that is nowhere above zero the share of the image that the boxes cover; NaN for images
        that are not judged.
    """
    if values not in ("positive", "absolute"):
        raise OptionError(f"values={values!r}; they can be 'positive' or 'absolute'.")
    masks, judged = judged_masks(trial.boxes, trial.net.size, trial.pixels.device, largest)
    maps = resized(trial.maps, trial.net.size, enlargement).double()
    energy = maps.abs() if values == "absolute" else maps.clamp(min=0)
    energy = torch.where(energy.sum(dim=(1, 2), keepdim=True) > 0, energy, 1.0)
    share = (energy * masks).sum(dim=(1, 2)) / energy.sum(dim=(1, 2))
    return Outcome(torch.where(judged, share, torch.nan))
