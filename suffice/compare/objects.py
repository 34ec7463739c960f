"""Where the objects of images are: on the grid of a model's evidence, by their masks or their boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.compare.pairwise import Numbers
from suffice.errors import OptionError
from suffice.metrics.boxes import boxes_of
from suffice.vision import Classifier, Images, Picture


def covered_cells(net: Classifier, images: Images, side: int) -> Numbers:
    """How much of each cell objects cover, [N, cells] from 0 to 1, as a model sees the images.

    Masks are more exact than boxes, and are taken where an image has both. NaN where it has neither, or where nothing
    of the object is in sight.

    Args:
        net: The model, of which the geometry moves masks and boxes along with the pixels.
        images: With masks or boxes.
        side: Cells per side.

    Example:
        >>> import suffice
        >>> net, images = suffice.load("zoo/resnet", device="cpu"), suffice.open_images("scenes:test[:2]")
        >>> covered_cells(net, images, 7).shape
        (2, 49)
    """
    covered = np.full((len(images), side * side), np.nan)
    masked = [place for place, picture in enumerate(images) if picture.read_mask is not None]
    for place in masked:
        mask = _mask(net, images[place])
        if mask.any():
            covered[place] = masks_on_grid(mask[None], side)[0]
    boxed = [place for place, picture in enumerate(images) if picture.boxes and picture.read_mask is None]
    if boxed:
        covered[boxed] = objects_on_grid(boxes_of(net, images[boxed]), net.size, side)
    return covered


def _mask(net: Classifier, picture: Picture) -> Tensor:
    """Which pixels of a model's input are of an object, bool [H, W]."""
    assert picture.read_mask is not None
    mask, raster = picture.read_mask(), picture.decode()
    height, width = raster.shape[-2:] if isinstance(raster, Tensor) else (raster.height, raster.width)
    if tuple(mask.shape) != (height, width):
        sides = "×".join(map(str, mask.shape))
        raise OptionError(f"The mask of {picture.name} has {sides} pixels; expected {height}×{width}, as the image.")
    painted = mask.float().expand(3, -1, -1)
    # A geometry may take a tensor as it is, where it would resize an image: a mask has to come as its picture does.
    if isinstance(raster, Image.Image):
        seen = net.geometry(Image.fromarray(painted.mul(255).byte().permute(1, 2, 0).numpy()))
    else:
        seen = net.geometry(painted.clone())
    return seen.mean(dim=0) > 0.5  # resizing leaves traces beside the object


def objects_on_grid(boxes: Sequence[Tensor], size: tuple[int, int], side: int) -> Numbers:
    """How much of each cell objects cover, [N, cells] from 0 to 1; NaN where no object is known, or can be seen.

    Args:
        boxes: Objects of each image, [n, 4] as (x0, y0, x1, y1) in pixels of the model's input.
        size: Height and width of the input.
        side: Cells per side.

    Example:
        >>> objects_on_grid([torch.tensor([[0.0, 0.0, 12.0, 8.0]])], (16, 16), 2)
        array([[1. , 0.5, 0. , 0. ]])
    """
    height, width = size
    covered = np.full((len(boxes), side * side), np.nan)
    for image, objects in enumerate(boxes):
        if not len(objects):
            continue
        mask = torch.zeros(1, 1, height, width)
        for x0, y0, x1, y1 in objects.round().long().tolist():
            mask[..., max(y0, 0) : y1, max(x0, 0) : x1] = 1
        if mask.any():  # else they were cropped away
            covered[image] = masks_on_grid(mask[0], side)[0]
    return covered


def masks_on_grid(masks: Tensor, side: int) -> Numbers:
    """How much of each cell objects cover, [N, cells], from masks of pixels [N, H, W], 1 on the object."""
    return torch.nn.functional.adaptive_avg_pool2d(masks[:, None].double(), side).flatten(1).numpy()
