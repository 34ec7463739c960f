"""One unit for amounts of noise and of contrast, whatever the normalization of a model's weights.

Papers name such amounts for inputs that were normalized by ImageNet's mean and standard deviation, where 0.2 is about
0.045 of the range of pixels. The same number of the inputs of weights that want pixels from 0 to 255 would be next to
nothing. So here every amount that is not in pixels is in ImageNet's units: a number times ImageNet's standard deviation
is a difference of pixels, the same one for all models.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def imagenet_normalized(pixels: Tensor) -> Tensor:
    """Pixels [N, C, H, W] in [0, 1] in ImageNet's units, as a model with ImageNet's normalization would get them.

    Example:
        >>> imagenet_normalized(torch.full((1, 3, 1, 1), 0.5)).flatten()
        tensor([0.0655, 0.1964, 0.4178])
    """
    mean, std = _statistics(pixels)
    return (pixels - mean) / std


def pixels_of_imagenet_normalized(values: Tensor) -> Tensor:
    """The inverse of :func:`imagenet_normalized`; values that no pixel can have are cut off."""
    mean, std = _statistics(values)
    return (values * std + mean).clamp(0, 1)


def imagenet_std(channels: int) -> tuple[float, ...]:
    """What one of ImageNet's units is in pixels, by channel: where there are not three, the mean of the three for each.

    Example:
        >>> imagenet_std(3), round(*imagenet_std(1), 3)
        ((0.229, 0.224, 0.225), 0.226)
    """
    return _by_channel(IMAGENET_STD, channels)


def imagenet_unit(std: Sequence[float]) -> tuple[float, ...]:
    """What one of ImageNet's units is in the inputs of a model that divides its channels by ``std``.

    Example:
        >>> imagenet_unit((0.229, 0.224, 0.225)), imagenet_unit((1.0, 1.0, 1.0))
        ((1.0, 1.0, 1.0), (0.229, 0.224, 0.225))
    """
    return tuple(one / own for one, own in zip(imagenet_std(len(std)), std, strict=True))


def _by_channel(values: Sequence[float], channels: int) -> tuple[float, ...]:
    return tuple(values) if channels == len(values) else (sum(values) / len(values),) * channels


def _statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel of images [N, C, H, W], both [C, 1, 1]."""
    both = (_by_channel(values, images.shape[1]) for values in (IMAGENET_MEAN, IMAGENET_STD))
    mean, std = (torch.tensor(values).to(images).view(-1, 1, 1) for values in both)
    return mean, std
