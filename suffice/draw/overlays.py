"""Maps as pictures: colors for people, over a faded image."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.draw.palettes import COOL, WARM
from suffice.draw.pictures import as_image, resampling

# Single pixels that stand far out would leave the rest of a map dark, so colors end at this quantile.
BRIGHTEST = 0.995


def map_colors(values: Tensor, ramp: np.ndarray = WARM) -> np.ndarray:
    """Colors, uint8 [H, W, 3], of values [H, W] in [0, 1]."""
    position = values.clamp(0, 1).double().cpu().numpy() * (len(ramp) - 1)
    channels = [np.interp(position, np.arange(len(ramp)), ramp[:, c]) for c in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def levels(values: Tensor) -> Tensor:
    """How strongly to draw each value, [H, W] in [-1, 1].

    A map without negative values goes from its smallest value at 0 to about its largest at 1. One with both signs keeps
    0 at 0, and the larger magnitude at 1 or -1. A constant map is 0.
    """
    values = values.float()
    low, high = color_range(values)
    values = values - max(low, 0.0)
    scale = high - max(low, 0.0)
    return (values / scale).clamp(-1, 1) if scale > 0 else torch.zeros_like(values)


def color_range(values: Tensor) -> tuple[float, float]:
    """The values that the first and the last color of a map stand for: of one with both signs, as far from 0.

    Example:
        >>> color_range(torch.tensor([[0.25, 0.75, 0.75]])), color_range(torch.tensor([[-2.0, -2.0, 1.0]]))
        ((0.25, 0.75), (-2.0, 2.0))
    """
    values = values.float()
    low = float(values.min())
    distance = (values - low if low >= 0 else values).abs()
    # Sorting a few ten thousand numbers is quick, and quantile() takes no more than 16 million.
    far = float(distance.flatten().quantile(BRIGHTEST)) if values.numel() < 1 << 24 else float(distance.max())
    far = far if far > 0 else float(distance.max())
    return (low, low + far) if low >= 0 else (-far, far)


def overlay(values: Tensor, image: Image.Image | Tensor | None = None) -> Image.Image:
    """A map in colors, RGB of the map's size, over an image where one is given.

    Args:
        values: [H, W], any range; see :func:`suffice.draw.overlays.levels`.
        image: What the map is about, as decoded or as pixels [3, H, W], uint8 or float in [0, 1]; resized to the map.
    """
    level = levels(values)
    strength = level.abs()
    drawn = np.where((level < 0).cpu().numpy()[..., None], map_colors(strength, COOL), map_colors(strength, WARM))
    if image is None:
        return Image.fromarray(drawn)
    height, width = values.shape
    image = as_image(image)
    gray = np.asarray(image.convert("L").resize((width, height), resampling(image)), dtype=np.float32)
    weight = (0.2 + 0.5 * strength.cpu().numpy())[..., None]
    mixed = drawn * weight + gray[..., None] * (1 - weight)
    return Image.fromarray(mixed.round().clip(0, 255).astype(np.uint8))
