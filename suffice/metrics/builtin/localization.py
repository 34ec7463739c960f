"""Metrics that compare maps with the boxes of objects: pointing games, and localization."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.metrics.map_batch import MapBatch
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.options import Amount, Share
from suffice.perturb.masks import Enlargement

_of_boxes = partial(metric, higher_is_better=True, bounds=(0, 1), needs=("maps", "boxes"))


@_of_boxes("pointing-game", reference="Zhang et al., Top-down Neural Attention by Excitation Backprop, ECCV 2016")
def pointing_game(
    given: MapBatch, *, tolerance: Amount = 0.0, largest: float | None = None, enlargement: Enlargement = "bilinear"
) -> Outcome:
    """Whether the highest pixel of the map lies in a box of the object.

    1 or 0, and NaN for images that are not judged.

    Args:
        given: The images, maps and boxes. Of several highest pixels, the first from left to right and top to bottom
            counts.
        tolerance: It is a hit, too, if a pixel of a box is at most as many pixels away; the paper has 15.
        largest: Images whose boxes together cover this share or more are not judged; None judges all.
        enlargement: How maps are enlarged to the image.
    """
    _, masks, judged = _judged(given, largest)
    height, width = given.size
    highest = given.resized_maps(enlargement).flatten(1).argmax(dim=1)
    down = torch.arange(height, device=masks.device) - (highest // width)[:, None]
    across = torch.arange(width, device=masks.device) - (highest % width)[:, None]
    near = down[:, :, None] ** 2 + across[:, None, :] ** 2 <= tolerance**2
    hit = (masks & near).flatten(1).any(dim=1)
    return Outcome(torch.where(judged, hit.float(), torch.nan))


@_of_boxes("energy-pointing-game", reference="Wang et al., Score-CAM, CVPR Workshops 2020")
def energy_pointing_game(
    given: MapBatch,
    *,
    values: Literal["positive", "absolute"] = "positive",
    largest: float | None = None,
    enlargement: Enlargement = "bilinear",
) -> Outcome:
    """Share of the map that lies in the boxes of the object.

    Of its ``"positive"`` values, or of ``"absolute"`` ones; other options as in ``pointing-game``. A map that is
    nowhere above zero gets the share of the image that the boxes cover.
    """
    _, masks, judged = _judged(given, largest)
    maps = given.resized_maps(enlargement).double()
    energy = maps.abs() if values == "absolute" else maps.clamp(min=0)
    energy = torch.where(energy.sum(dim=(1, 2), keepdim=True) > 0, energy, 1.0)
    share = (energy * masks).sum(dim=(1, 2)) / energy.sum(dim=(1, 2))
    return Outcome(torch.where(judged, share, torch.nan))


@_of_boxes("localization", reference="Zhou et al., Learning Deep Features for Discriminative Localization, CVPR 2016")
def localization(
    given: MapBatch,
    *,
    threshold: Share | Literal["mean"] = 0.2,
    overlap: float | None = 0.5,
    enlargement: Enlargement = "bilinear",
) -> Outcome:
    """Whether a box around the brightest part of the map overlaps an object's box enough.

    Args:
        given: The images, maps and boxes.
        threshold: Bright is what lies at least this share of the way from the lowest to the highest value, or at least
            at the ``"mean"``. A constant map is bright everywhere.
        overlap: Intersection over union with the best of the boxes that is enough; None: that number itself.
        enlargement: How maps are enlarged to the image.
    """
    boxes, _, judged = _judged(given)
    maps = given.resized_maps(enlargement)
    low, high = maps.amin(dim=(1, 2), keepdim=True), maps.amax(dim=(1, 2), keepdim=True)
    level = maps.mean(dim=(1, 2), keepdim=True) if threshold == "mean" else low + float(threshold) * (high - low)
    bright = (maps >= torch.minimum(level, high)).cpu().numpy()
    found = [
        max((_overlap(_largest_part(part), tuple(box)) for box in own.tolist()), default=0.0)
        for part, own in zip(bright, boxes, strict=True)
    ]
    values = torch.tensor(found, device=judged.device)
    if overlap is not None:
        values = (values >= overlap).float()
    return Outcome(torch.where(judged, values, torch.nan))


def _judged(given: MapBatch, largest: float | None = None) -> tuple[Sequence[Tensor], Tensor, Tensor]:
    """Boxes, their unions, bool [B, H, W], and which images can be judged by them, bool [B].

    Images without a pixel in a box are not judged, nor those whose boxes cover the share ``largest`` or more.
    """
    if given.boxes is None:
        raise OptionError("This metric needs boxes=, or images that come with boxes.")
    masks = box_masks(given.boxes, given.size, given.device)
    share = masks.flatten(1).double().mean(dim=1)
    judged = share > 0
    return given.boxes, masks, judged if largest is None else judged & (share < largest)


def box_masks(boxes: Sequence[Tensor], size: tuple[int, int], device: torch.device) -> Tensor:
    """The union of each image's boxes, [n, 4] an image: bool [B, H, W], true for pixels whose center lies in one.

    Example:
        >>> box_masks([torch.tensor([[1.0, 0.0, 3.0, 1.0]])], (2, 4), torch.device("cpu")).int()
        tensor([[[0, 1, 1, 0],
                 [0, 0, 0, 0]]], dtype=torch.int32)
    """
    down, across = (torch.arange(n) + 0.5 for n in size)
    masks = torch.zeros(len(boxes), *size, dtype=torch.bool)
    for mask, own in zip(masks, boxes, strict=True):
        for x0, y0, x1, y1 in own.tolist():
            mask |= ((down >= y0) & (down < y1))[:, None] & ((across >= x0) & (across < x1))
    return masks.to(device)


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
