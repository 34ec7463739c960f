"""Localization by the largest bright part of a map."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from suffice.errors import OptionError
from suffice.metrics.boxes import judged_masks
from suffice.metrics.maps import resized
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial
from suffice.perturb.masks import Enlargement


@metric(
    "localization",
    higher_is_better=True,
    range=(0, 1),
    needs=("maps", "boxes"),
    reference="Zhou et al., Learning Deep Features for Discriminative Localization, CVPR 2016",
)
def localization(
    trial: Trial,
    *,
    threshold: float | Literal["mean"] = 0.2,
    overlap: float | None = 0.5,
    enlargement: Enlargement = "bilinear",
) -> Outcome:
    """Whether a box around the largest bright part of the map overlaps an object's box enough.

    Args:
        trial: The images, maps and boxes.
        threshold: Bright is what lies at least this share of the way from the lowest to the highest value, or at least
            at the ``"mean"``. A constant map is bright everywhere.
        overlap: Intersection over union with the best of the boxes that is enough; None: that number itself.
        enlargement: How maps are enlarged to the image.

    Returns:
        Values [B]; NaN for images without a box.
    """
    if threshold != "mean" and not (isinstance(threshold, (int, float)) and 0 <= threshold <= 1):
        raise OptionError(f"threshold={threshold!r}; it can be 'mean' or a share from 0 to 1.")
    _, judged = judged_masks(trial.boxes, trial.net.size, trial.pixels.device, None)
    assert trial.boxes is not None, "checked when masks were made"
    maps = resized(trial.maps, trial.net.size, enlargement)
    low, high = maps.amin(dim=(1, 2), keepdim=True), maps.amax(dim=(1, 2), keepdim=True)
    level = maps.mean(dim=(1, 2), keepdim=True) if threshold == "mean" else low + float(threshold) * (high - low)
    bright = (maps >= torch.minimum(level, high)).cpu().numpy()
    found = [
        max((_overlap(_largest_part(part), tuple(box)) for box in boxes.tolist()), default=0.0)
        for part, boxes in zip(bright, trial.boxes, strict=True)
    ]
    values = torch.tensor(found, device=judged.device)
    if overlap is not None:
        values = (values >= overlap).float()
    return Outcome(torch.where(judged, values, torch.nan))


def _largest_part(bright: np.ndarray) -> tuple[float, ...]:
    """The box (x0, y0, x1, y1) around the largest part connected by sides; of equals the first."""
    from scipy.ndimage import find_objects, label

    parts, _ = label(bright)
    largest = np.bincount(parts.ravel())[1:].argmax()
    rows, columns = find_objects(parts)[largest]
    return (columns.start, rows.start, columns.stop, rows.stop)


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Intersection over union of two boxes."""
    wide = max(0.0, min(one[2], other[2]) - max(one[0], other[0]))
    tall = max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (one, other)]
    return wide * tall / (sum(areas) - wide * tall)
