"""Baselines: the image that shows through where pixels are hidden.

Always defined in pixel space [0, 1] and normalized like the image afterwards, so that ``"black"`` is black for every
model. A baseline is a function of a batch; the registered ones are the choices found in the literature, which are not
interchangeable (see ``docs/perturb.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Union

import numpy as np
import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.plugins import matching
from suffice.vision.geometry import Geometry
from suffice.vision.identity import image_seed
from suffice.vision.images import open_images
from suffice.vision.images.arrays import fingerprint
from suffice.vision.noise import uniform_noise
from suffice.vision.stream import stream
from suffice.vision.units import IMAGENET_MEAN, imagenet_normalized, pixels_of_imagenet_normalized

Border = Literal["reflect", "zero"]
Baseline = Union[str, Callable[[Tensor], Tensor], Tensor, Any]


@dataclass(frozen=True)
class BaselineInput:
    """What a baseline may depend on.

    Attributes:
        pixels: Images [N, 3, H, W] in [0, 1].
        mean: The model's mean color.
        seeds: One seed an image, for random baselines.
    """

    pixels: Tensor
    mean: Sequence[float]
    seeds: Sequence[int]

    def per_channel(self, values: Sequence[float]) -> Tensor:
        """One number a channel, [1, 3, 1, 1]."""
        return torch.tensor(values).to(self.pixels).view(1, 3, 1, 1)


_baselines: dict[str, Callable[[BaselineInput], Tensor]] = {}


def register_baseline(*names: str) -> Callable[[Callable[[BaselineInput], Tensor]], Callable[[BaselineInput], Tensor]]:
    """Make a function from :class:`BaselineInput` to baselines [N, 3, H, W] in [0, 1] known under one or more names."""

    def register(function: Callable[[BaselineInput], Tensor]) -> Callable[[BaselineInput], Tensor]:
        _baselines.update(dict.fromkeys(names, function))
        return function

    return register


def list_baselines(pattern: str = "*") -> list[str]:
    """List the names of registered baselines that match a shell-style pattern.

    Example:
        >>> list_baselines("blur*")
        ['blur', 'blur-rise', 'blur-tis']
    """
    return matching(sorted(_baselines), pattern)


def make_baseline(
    baseline: Baseline,
    pixels: Tensor,
    *,
    mean: Sequence[float] = IMAGENET_MEAN,
    ids: Sequence[str] | None = None,
    seed: int = 0,
) -> Tensor:
    """Make the baseline of each image, [N, 3, H, W] in [0, 1].

    Args:
        baseline: A registered name; a function from pixels [N, 3, H, W] to the same shape; or an image: a tensor
            [3, H, W] or [N, 3, H, W] in [0, 1], or anything else that :func:`suffice.open_images` takes, of the
            images' size.
        pixels: Images [N, 3, H, W] in [0, 1].
        mean: Mean color of the model's normalization.
        ids: Identity of each image; random baselines depend on it, and not on its place in the batch. Default: by its
            pixels.
        seed: Seed of random baselines.

    Example:
        >>> make_baseline("image-mean", torch.rand(2, 3, 8, 8)).shape
        torch.Size([2, 3, 8, 8])
    """
    if isinstance(baseline, str) and baseline in _baselines:
        # Seeds are made from identities, and identities from content, only for a baseline that looks at them.
        made = _baselines[baseline](BaselineInput(pixels, mean, _Seeds(pixels, ids, seed)))
    elif isinstance(baseline, Tensor):
        made = baseline.to(pixels)
    elif callable(baseline):
        made = baseline(pixels.clone())  # it may write into them
    else:
        made = _opened(baseline, pixels)
    fits = isinstance(made, Tensor) and made.shape[-3:] == pixels.shape[-3:]
    if not fits or not (made.dim() == 3 or (made.dim() == 4 and len(made) in (1, len(pixels)))):
        seen = list(made.shape) if isinstance(made, Tensor) else type(made).__name__
        raise OptionError(f"The baseline has shape {seen}; expected {list(pixels.shape)} or {list(pixels.shape[1:])}.")
    if not (made.min() >= -1e-4 and made.max() <= 1 + 1e-4):
        raise OptionError("The baseline has values outside [0, 1]; baselines are pixels, before normalization.")
    return made.expand_as(pixels).to(pixels).clamp(0, 1)


@register_baseline("blur")
def blur(given: BaselineInput) -> Tensor:
    """Gaussian blur as in I-GOS and iGOS++: kernel 51, sigma 50; 151 from 500 pixels on, 201 from 800 on."""
    longest = max(given.pixels.shape[-2:])
    kernel = 51 if longest < 500 else 151 if longest < 800 else 201
    return separable_blur(given.pixels, gaussian_kernel(kernel, kernel - 1), "reflect")


@register_baseline("blur-tis")
def blur_tis(given: BaselineInput) -> Tensor:
    """Gaussian blur as in the evaluation of TIS: kernel 11, sigma 5."""
    return separable_blur(given.pixels, gaussian_kernel(11, 5), "reflect")


@register_baseline("blur-rise")
def blur_rise(given: BaselineInput) -> Tensor:
    """The blur of RISE's insertion: called Gaussian 11/5, but almost a box, with the mean color around the image."""
    mean = given.per_channel(given.mean)
    return separable_blur(given.pixels - mean, rise_kernel(), "zero") + mean


@register_baseline("black")
def black(given: BaselineInput) -> Tensor:
    """Black pixels."""
    return torch.zeros_like(given.pixels)


@register_baseline("gray", "mean")
def gray(given: BaselineInput) -> Tensor:
    """The mean color of the model's normalization, so zero after it."""
    return given.per_channel(given.mean).expand_as(given.pixels)


@register_baseline("image-mean")
def image_mean(given: BaselineInput) -> Tensor:
    """The mean color of each image."""
    return given.pixels.mean(dim=(2, 3), keepdim=True).expand_as(given.pixels)


@register_baseline("noise")
def noise(given: BaselineInput) -> Tensor:
    """Uniform noise, each image its own by its seed; the same on every device."""
    shape = given.pixels.shape[1:]
    drawn = [torch.rand(shape, generator=torch.Generator().manual_seed(seed)) for seed in given.seeds]
    return torch.stack(drawn).to(given.pixels)


@register_baseline("tis-noise")
def tis_noise(given: BaselineInput) -> Tensor:
    """Uniform noise in [0, 1) in ImageNet's units, as in the evaluation of TIS; each image its own."""
    seeds = torch.tensor(list(given.seeds), device=given.pixels.device)
    values = uniform_noise(seeds, torch.zeros_like(seeds), tuple(given.pixels.shape[1:]))
    return pixels_of_imagenet_normalized(values.to(given.pixels))


@register_baseline("tis-mean")
def tis_mean(given: BaselineInput) -> Tensor:
    """One number in ImageNet's units, the mean over pixels and channels, as in the evaluation of TIS."""
    values = imagenet_normalized(given.pixels)
    return pixels_of_imagenet_normalized(values.mean(dim=(1, 2, 3), keepdim=True).expand_as(values))


def separable_blur(pixels: Tensor, kernel: np.ndarray, border: Border) -> Tensor:
    """Blur the rows and columns of images [N, C, H, W] with the same kernel, of odd length and sum 1.

    Each direction is one matrix product with a banded matrix that holds the border rule too, so images smaller than
    the kernel are no special case. ``"reflect"`` mirrors without repeating the edge pixel; ``"zero"`` pads with zeros.
    """
    height, width = pixels.shape[-2:]
    down = _blur_matrix(height, tuple(kernel), border).to(pixels)
    across = _blur_matrix(width, tuple(kernel), border).to(pixels)
    return down @ pixels @ across.T


def gaussian_kernel(length: int, sigma: float) -> np.ndarray:
    """A truncated Gaussian [length] that sums to 1."""
    offset = np.arange(length) - (length - 1) / 2
    weights = np.exp(-(offset**2) / (2 * sigma**2))
    return weights / weights.sum()


def rise_kernel() -> np.ndarray:
    """A unit impulse in 11 places smoothed with sigma 5 and reflecting borders, which leaves almost a box."""
    from scipy.ndimage import gaussian_filter1d

    impulse = np.zeros(11)
    impulse[5] = 1
    return gaussian_filter1d(impulse, 5)


@lru_cache(maxsize=32)
def _blur_matrix(length: int, kernel: tuple[float, ...], border: Border) -> Tensor:
    """The blur of a line of pixels as a matrix [length, length]."""
    from scipy.ndimage import correlate1d

    rule = "mirror" if border == "reflect" else "constant"  # what scipy calls reflect repeats the edge pixel
    return torch.from_numpy(correlate1d(np.eye(length), np.asarray(kernel), axis=0, mode=rule))


class _Seeds(Sequence[int]):
    """One seed an image, made when first looked at."""

    def __init__(self, pixels: Tensor, ids: Sequence[str] | None, seed: int) -> None:
        self._pixels, self._ids, self._seed = pixels, ids, seed

    def __len__(self) -> int:
        return len(self._pixels)

    def __getitem__(self, position: Any) -> Any:
        if self._ids is None:
            self._ids = [fingerprint(image) for image in self._pixels.cpu()]
        return image_seed(self._seed, self._ids[position])


def _opened(baseline: Any, pixels: Tensor) -> Tensor:
    if isinstance(baseline, str) and not Path(baseline).exists():
        raise OptionError(
            f"There is no baseline {baseline!r}; there are {', '.join(list_baselines())}, "
            "or give a function, an image or a file."
        )
    size = (pixels.shape[-2], pixels.shape[-1])
    opened = [batch.pixels for batch in stream(open_images(baseline), Geometry(size))]
    return torch.cat(opened).squeeze(0).to(pixels)
