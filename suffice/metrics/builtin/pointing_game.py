"""Pointing game."""

from __future__ import annotations

import torch

from suffice.errors import OptionError
from suffice.metrics.boxes import judged_masks
from suffice.metrics.maps import resized
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial
from suffice.perturb.masks import Enlargement


@metric(
    "pointing-game",
    higher_is_better=True,
    range=(0, 1),
    needs=("maps", "boxes"),
    reference="Zhang et al., Top-down Neural Attention by Excitation Backprop, ECCV 2016",
)
def pointing_game(
    trial: Trial, *, tolerance: float = 0.0, largest: float | None = None, enlargement: Enlargement = "bilinear"
) -> Outcome:
    """Whether the highest pixel of the map lies in a box.

    Args:
        trial: The images, maps and boxes. Of several highest pixels, the first from left to right and top to bottom
            counts.
        tolerance: It is a hit, too, if a pixel of a box is at most as many pixels away; the paper has 15.
        largest: Images whose boxes together cover this share or more are not judged; None judges all.
        enlargement: How maps are enlarged to the image.

    Returns:
        Values [B], 1 or 0; NaN for images that are not judged.
    """
    if tolerance < 0:
        raise OptionError(f"tolerance={tolerance}; it is a number of pixels, 0 or more.")
    masks, judged = judged_masks(trial.boxes, trial.net.size, trial.pixels.device, largest)
    height, width = trial.net.size
    highest = resized(trial.maps, (height, width), enlargement).flatten(1).argmax(dim=1)
    down = torch.arange(height, device=masks.device) - (highest // width)[:, None]
    across = torch.arange(width, device=masks.device) - (highest % width)[:, None]
    near = down[:, :, None] ** 2 + across[:, None, :] ** 2 <= tolerance**2
    hit = (masks & near).flatten(1).any(dim=1)
    return Outcome(torch.where(judged, hit.float(), torch.nan))
