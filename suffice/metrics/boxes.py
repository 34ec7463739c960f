"""Boxes of objects: read as they are given or as images have them, in pixels of the model's input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.vision import Classifier, Images, Picture
from suffice.vision.geometry import Geometry


def boxes_of(net: Classifier, images: Images, given: Any = None) -> list[Tensor]:
    """The objects of each image, float [n, 4], in pixels of the model's input: as given, or as the images have them."""
    found = _of_images(net, images) if given is None else _as_given(given, len(images))
    if not any(len(own) for own in found):
        raise OptionError("No image has boxes; write boxes=, one list of (x0, y0, x1, y1) an image.")
    return found


def _as_given(boxes: Any, count: int) -> list[Tensor]:
    """Boxes as the user gave them: several an image or one, such as a list or tensor."""
    if len(boxes) != count:
        raise OptionError(f"Boxes of {len(boxes)} images were given for {count} images.")
    found = []
    for own in boxes:
        table = torch.as_tensor([] if own is None else own, dtype=torch.float32).cpu()
        table = table.reshape(-1, 4) if table.numel() in (0, 4) else table
        if table.dim() != 2 or table.shape[1] != 4:
            raise OptionError(f"The boxes of an image have shape {list(table.shape)}; expected (x0, y0, x1, y1) each.")
        found.append(table)
    return found


def _of_images(net: Classifier, images: Images) -> list[Tensor]:
    """The boxes that images come with, moved along with their pixels to the input of a model."""
    return [
        torch.tensor(_moved(net, picture) if picture.boxes else (), dtype=torch.float32).reshape(-1, 4)
        for picture in images
    ]


def _moved(net: Classifier, picture: Picture) -> Sequence[Sequence[float]]:
    """The boxes of a picture, in pixels of the model's input."""
    boxes, raster = picture.boxes or (), picture.decode()
    if isinstance(raster, Tensor):
        height, width = raster.shape[-2:]
        if (height, width) == net.size:
            return boxes  # it is taken as it is
    else:
        width, height = raster.size
    if not isinstance(net.geometry, Geometry):
        raise OptionError(
            f"What {net.name} does to an image is a callable, which cannot move boxes; give boxes= in pixels of its "
            "input."
        )
    return net.geometry.boxes(boxes, width=width, height=height)
