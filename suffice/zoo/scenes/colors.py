"""Colors chosen where the eye measures evenly: lightness, chroma and hue of OKLab."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def color(lightness: Tensor, chroma: Tensor | float, hue: Tensor) -> Tensor:
    """The sRGB values of a color in OKLCh.

    Args:
        lightness: 0 (black) to 1 (white), […].
        chroma: 0 (gray) to about 0.3, […] or a number.
        hue: In turns, […].

    Returns:
        float32 […, 3] in [0, 1]; what a screen cannot show is clipped.

    Example:
        >>> color(torch.tensor([1.0]), 0.0, torch.tensor([0.0])).round(decimals=2).tolist()
        [[1.0, 1.0, 1.0]]
    """
    # In float64, so that the last bit of cos on another device is lost when rounding to float32.
    lightness, angle = lightness.double(), hue.double() * (2 * math.pi)
    a, b = chroma * angle.cos(), chroma * angle.sin()
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = torch.stack(
        [
            4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
            -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
            -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
        ],
        dim=-1,
    ).clamp(0, 1)
    encoded = torch.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear.clamp_min(1e-9) ** (1 / 2.4) - 0.055)
    return encoded.clamp(0, 1).float()
