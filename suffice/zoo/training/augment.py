"""Augmentation of whole batches on the device: no loop over images, everything random from one generator.

All work on pixels in [0, 1] before normalization, so that a teacher with another normalization sees the same images.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from suffice.zoo.training.recipe import Recipe

ERASED_AREA = (0.02, 0.25)  # share of the image
ERASED_ASPECT = (0.3, 1 / 0.3)  # height over width
ZOOMED_ASPECT = (3 / 4, 4 / 3)  # width over height


def augmented(
    pixels: Tensor, recipe: Recipe, color: Tensor, generator: Generator, size: tuple[int, int] | None = None
) -> Tensor:
    """All that a recipe does to single images.

    Args:
        pixels: uint8 [B, 3, H, W].
        recipe: Says what to do.
        color: What erased rectangles get, float [3] in [0, 1].
        generator: On the device of the pixels.
        size: Height and width that they are brought to; default: their own.

    Returns:
        float32 [B, 3, *size] in [0, 1].
    """
    height, width = size or (pixels.shape[-2], pixels.shape[-1])
    if recipe.crop:
        pixels = shift(pixels, recipe.crop, generator)
    if recipe.flip:
        pixels = flip(pixels, generator)
    images = pixels.float() / 255
    if recipe.zoom < 1:
        images = zoom(images, recipe.zoom, generator, (height, width))
    else:
        images = shrunk(images, (height, width))
    if recipe.jitter:
        images = jitter(images, recipe.jitter, generator)
    if recipe.erase:
        images = erase(images, recipe.erase, color, generator)
    return images


def shift(pixels: Tensor, most: int, generator: Generator) -> Tensor:
    """Move each image by up to so many pixels in each direction; what comes in is a reflection of the border.

    Args:
        pixels: [B, 3, H, W], any type.
        most: Pixels; below the height and width.
        generator: On the same device.
    """
    batch, channels, height, width = pixels.shape
    device = pixels.device
    rows, columns = (
        _reflected(
            torch.randint(-most, most + 1, (batch, 1), generator=generator, device=device)
            + torch.arange(length, device=device),
            length,
        )
        for length in (height, width)
    )
    images = torch.arange(batch, device=device).view(-1, 1, 1, 1)
    planes = torch.arange(channels, device=device).view(1, -1, 1, 1)
    return pixels[images, planes, rows.view(batch, 1, height, 1), columns.view(batch, 1, 1, width)]


def _reflected(position: Tensor, length: int) -> Tensor:
    """Positions outside 0 … length - 1 thrown back at the borders, which are not repeated."""
    return (length - 1) - ((length - 1) - position.abs()).abs()


def flip(pixels: Tensor, generator: Generator) -> Tensor:
    """Mirror each image of [B, 3, H, W] left to right with probability one half."""
    turned = torch.rand(len(pixels), 1, 1, 1, generator=generator, device=pixels.device) < 0.5
    return torch.where(turned, pixels.flip(-1), pixels)


def shrunk(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Images float [B, 3, H, W] made smaller by taking means; as they are where they have the size already."""
    return images if images.shape[-2:] == size else F.adaptive_avg_pool2d(images, size)


def zoom(images: Tensor, least: float, generator: Generator, size: tuple[int, int] | None = None) -> Tensor:
    """Enlarge a part of each image to the whole.

    Args:
        images: float [B, 3, H, W].
        least: Smallest share of the area that a part has; the largest is 1. It is up to a third wider or higher.
        generator: On the same device.
        size: Height and width of the result; default: those of the images. Of larger images, parts stay sharp.
    """
    draws = torch.rand(4, len(images), generator=generator, device=images.device)
    area = least + (1 - least) * draws[0]
    low, high = ZOOMED_ASPECT
    aspect = low * (high / low) ** draws[1]
    wide, tall = (area * aspect).sqrt().clamp(max=1), (area / aspect).sqrt().clamp(max=1)
    x, y = (2 * draws[2] - 1) * (1 - wide), (2 * draws[3] - 1) * (1 - tall)
    none = torch.zeros_like(x)
    where = torch.stack([torch.stack([wide, none, x], dim=1), torch.stack([none, tall, y], dim=1)], dim=1)
    grid = F.affine_grid(where, [*images.shape[:2], *(size or images.shape[-2:])], align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def jitter(images: Tensor, strength: float, generator: Generator) -> Tensor:
    """Multiply the brightness of each image, then its contrast around its own mean, by up to 1 ± strength."""
    draws = torch.rand(2, len(images), 1, 1, 1, generator=generator, device=images.device)
    bright, contrast = 1 + strength * (2 * draws - 1)
    images = images * bright
    center = images.mean((1, 2, 3), keepdim=True)
    return ((images - center) * contrast + center).clamp(0, 1)


def erase(images: Tensor, probability: float, color: Tensor, generator: Generator) -> Tensor:
    """Paint over one rectangle of each image with a plain color.

    Args:
        images: float [B, 3, H, W].
        probability: Of an image to be painted on.
        color: Of the rectangle, float [3], on the same device.
        generator: On the same device.

    Returns:
        New images. A rectangle covers 2 to 25 % of an image, or less where it would stick out.
    """
    batch, _, height, width = images.shape
    device = images.device
    draws = torch.rand(5, batch, generator=generator, device=device)
    area = ERASED_AREA[0] + (ERASED_AREA[1] - ERASED_AREA[0]) * draws[0]
    low, high = ERASED_ASPECT
    aspect = low * (high / low) ** draws[1]
    tall = (height * (area * aspect).sqrt()).round().clamp(1, height)
    wide = (width * (area / aspect).sqrt()).round().clamp(1, width)
    top = (draws[2] * (height - tall + 1)).floor()
    left = (draws[3] * (width - wide + 1)).floor()
    y = torch.arange(height, device=device)
    x = torch.arange(width, device=device)
    rows = (y >= top[:, None]) & (y < (top + tall)[:, None])
    columns = (x >= left[:, None]) & (x < (left + wide)[:, None])
    chosen = draws[4] < probability
    inside = rows[:, None, :, None] & columns[:, None, None, :] & chosen[:, None, None, None]
    return torch.where(inside, color.view(-1, 1, 1), images)


def mix(images: Tensor, targets: Tensor, share: float | Tensor) -> tuple[Tensor, Tensor]:
    """Mix each image with its opposite in the batch, and their targets alike.

    Args:
        images: [B, 3, H, W].
        targets: [B, K].
        share: How much of its own an image keeps; a scalar.

    Returns:
        Images and targets, mixed.

    Example:
        >>> mix(torch.zeros(2, 3, 1, 1), torch.eye(2), 0.75)[1]
        tensor([[0.7500, 0.2500],
                [0.2500, 0.7500]])
    """
    return images.flip(0).lerp(images, share), targets.flip(0).lerp(targets, share)
