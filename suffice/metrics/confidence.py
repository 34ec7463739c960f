"""What the model says of an image seen through its own map, which average drop and increase share."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.metrics.maps import resized
from suffice.metrics.trial import Trial
from suffice.perturb.masks import Enlargement

Mask = Literal["min-max", "raw"]


def seen_through_map(trial: Trial, mask: Mask, baseline: Any, enlargement: Enlargement) -> tuple[Tensor, Tensor]:
    """Scores of the class on the whole image and on the image multiplied by its map.

    Args:
        trial: The images and their maps.
        mask: ``"min-max"`` scales each map to [0, 1]; a constant one shows nothing. ``"raw"`` takes maps in [0, 1] as
            they are.
        baseline: What shows where the map is low.
        enlargement: How maps are enlarged to the image.

    Returns:
        Two times [B] float32.
    """
    if mask not in ("min-max", "raw"):
        raise OptionError(f"mask={mask!r}; it can be 'min-max' or 'raw'.")
    maps = resized(trial.maps, trial.net.size, enlargement)
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
    return trial.whole.score, trial.see_through(baseline, maps, (mask, enlargement)).score
