"""Geometry: from a picture of any size to the model's input size, still in pixel space [0, 1].

Preprocessing is split in two. *Geometry* (resize, crop) happens once per image, before anything is masked.
*Normalization* (subtract mean, divide by std) happens on the device, after masking, inside
:class:`~suffice.vision.classifier.Classifier`. So a baseline such as black means black pixels for every model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Union

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.errors import ImageTooLarge, OptionError
from suffice.options import Count, check_fields

Rule = Literal["crop", "squash"]
Box = tuple[float, float, float, float]
Raster = Union[Image.Image, Tensor]

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]

# So far out of [0, 1] may a bicubic resize of a tensor step at edges; normalization goes much farther.
OVERSHOOT = 0.25


@dataclass(frozen=True)
class Geometry:
    """Resize, then center crop.

    Args:
        size: Input height and width of the model.
        rule: ``"crop"`` resizes the short side and keeps the aspect ratio; ``"squash"`` resizes both sides
            and does not.
        resize: Length of the short side (``crop``) or of the sides (``squash``) before the center crop;
            default: ``size``, so that nothing more than needed is cut off.
        interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"lanczos"``.
        halves: Where the crop begins when half a pixel is left over: ``"even"`` rounds as torchvision and timm do,
            ``"down"`` as transformers does.

    Example:
        >>> from PIL import Image
        >>> geometry = Geometry((224, 224), resize=(256, 256))
        >>> geometry(Image.new("RGB", (640, 480))).shape
        torch.Size([3, 224, 224])
        >>> geometry.boxes([(0, 0, 640, 480)], width=640, height=480)
        [(0.0, 0.0, 224.0, 224.0)]
    """

    size: tuple[Count, Count]
    rule: Rule = "crop"
    resize: tuple[Count, Count] | None = None
    interpolation: Interpolation = "bicubic"
    halves: Literal["even", "down"] = "even"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("size", "resize"):  # lists, as files have them, are compared with shapes
            if isinstance(sides := getattr(self, name), Sequence):
                object.__setattr__(self, name, tuple(map(int, sides)))

    def __call__(self, picture: Raster) -> Tensor:
        """Bring a picture (PIL in mode RGB, or float [3, h, w] in [0, 1]) to float32 [3, H, W] in [0, 1].

        A tensor that already has the input size is taken as it is: whoever gives pixels at the model's own size
        has done the geometry. Files and PIL images always go through it, as the weights' authors meant.
        """
        return as_pixels(self.decoded(picture))

    def decoded(self, picture: Raster) -> Tensor:
        """The same, [3, H, W], still in bytes where it was: a quarter of the memory, until a batch is needed."""
        if isinstance(picture, Tensor) and tuple(picture.shape[-2:]) == self.size:
            return picture.float()

        from torchvision.transforms import InterpolationMode
        from torchvision.transforms import functional as transform

        height, width = picture.shape[-2:] if isinstance(picture, Tensor) else (picture.height, picture.width)
        resized = self._resized(width=width, height=height)
        limit = Image.MAX_IMAGE_PIXELS
        if limit is not None and math.prod(resized) > limit:
            raise ImageTooLarge(
                f"{width} × {height} pixels would be {resized[1]} × {resized[0]} before the center is cut out; the "
                f"limit is {limit} pixels. Crop it first, or squash it: resize='squash'."
            )
        interpolation = InterpolationMode(self.interpolation)
        picture = transform.resize(picture, list(resized), interpolation=interpolation, antialias=True)
        cropped = transform.crop(picture, *self._corner(resized), *self.size)
        if isinstance(cropped, Image.Image):
            # By numpy: the threads that decode images would each get all of torch's threads.
            return torch.from_numpy(np.array(np.asarray(cropped, dtype=np.uint8).transpose(2, 0, 1), order="C"))
        return cropped.float().clamp(0, 1)  # bicubic overshoots

    def boxes(self, boxes: Sequence[Box], *, width: int, height: int) -> list[Box]:
        """Move boxes (x0, y0, x1, y1) along with the pixels: from a picture of some size to the model's input.

        They are clipped to the input; one that was cropped away has no area.
        """
        resized = self._resized(width=width, height=height)
        top, left = self._corner(resized)

        def x(value: float) -> float:
            return float(min(max(value * (resized[1] / width) - left, 0.0), self.size[1]))

        def y(value: float) -> float:
            return float(min(max(value * (resized[0] / height) - top, 0.0), self.size[0]))

        return [(x(x0), y(y0), x(x1), y(y1)) for x0, y0, x1, y1 in boxes]

    def with_rule(self, rule: Rule) -> Geometry:
        """The same input size under another resize rule, with nothing more than needed cut off."""
        return self if rule == self.rule else replace(self, rule=rule, resize=None)

    def _resized(self, *, width: int, height: int) -> tuple[int, int]:
        """Height and width after resizing, before the crop."""
        target_height, target_width = self.resize or self.size
        if self.rule == "squash":
            return target_height, target_width
        # torchvision's arithmetic for a single number, and its natural extension to oblong inputs: the smallest
        # picture of this aspect ratio that covers the target.
        if target_height * width >= target_width * height:
            return target_height, max(int(target_height * width / height), target_width)
        return max(int(target_width * height / width), target_height), target_width

    def _corner(self, resized: tuple[int, int]) -> tuple[int, int]:
        """Top and left of the center crop."""
        spare = (resized[0] - self.size[0], resized[1] - self.size[1])
        return (spare[0] // 2, spare[1] // 2) if self.halves == "down" else (round(spare[0] / 2), round(spare[1] / 2))


def as_pixels(decoded: Tensor) -> Tensor:
    """Pixels [..., 3, H, W] in [0, 1], float32, of bytes or of such pixels; the same bits on every device.

    Example:
        >>> as_pixels(torch.tensor([0, 51, 255], dtype=torch.uint8))
        tensor([0.0000, 0.2000, 1.0000])
    """
    if decoded.dtype != torch.uint8:
        return decoded
    # By a tensor: GPUs multiply by the inverse of a number instead, which rounds differently.
    return decoded.float().div_(torch.full((), 255.0, device=decoded.device))


class GivenPreprocessing:
    """Geometry by a callable that the user brings: PIL image in, float tensor [3, H, W] in [0, 1] out."""

    def __init__(self, function: Callable[[Any], Any], size: tuple[int, int] | None = None) -> None:
        self.function = function
        picture = Image.new("RGB", (320, 240))
        picture.paste((255, 255, 255), (160, 0, 320, 240))  # black and white, which normalization takes out of [0, 1]
        trial = self._run(picture)
        self.size = size or (trial.shape[-2], trial.shape[-1])

    def __call__(self, picture: Raster) -> Tensor:
        """Bring one picture to the input size; see :meth:`Geometry.__call__`."""
        if isinstance(picture, Tensor):
            if tuple(picture.shape[-2:]) == self.size:
                return picture.float()
            array = picture.mul(255).round().byte().permute(1, 2, 0).cpu().numpy()
            picture = Image.fromarray(array)
        return self._run(picture)

    def _run(self, picture: Image.Image) -> Tensor:
        out = self.function(picture)
        if not isinstance(out, Tensor) or out.dim() != 3 or out.shape[0] != 3 or not out.is_floating_point():
            seen = f"{out.dtype} {list(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
            gray = isinstance(out, Tensor) and out.dim() == 3 and out.shape[0] == 1
            hint = " For a model of gray images write size=, and one number each as mean= and std=." if gray else ""
            raise OptionError(f"preprocess= returned {seen}; it must return a float tensor [3, H, W] in [0, 1].{hint}")
        low, high = out.min().item(), out.max().item()
        if not (low >= -OVERSHOOT and high <= 1 + OVERSHOOT):  # also catches NaN
            raise OptionError(
                f"preprocess= returned values from {low:.2f} to {high:.2f}, so it seems to normalize. Masks act in "
                "pixel space [0, 1]: leave the normalization out of the callable and give it as mean= and std=."
            )
        return out.float().clamp(0, 1)


def split_preprocessing(
    preprocess: Callable[[Any], Any], size: tuple[int, int] | None = None
) -> tuple[Geometry | GivenPreprocessing, Sequence[float] | None, Sequence[float] | None]:
    """Split a preprocessing callable into geometry, mean and std; these are None where it does not normalize.

    Understood are torchvision's classification presets (``weights.transforms()``) and any ``Compose`` that ends
    in ``Normalize`` (such as timm's ``create_transform``). Another callable is geometry only, and is checked to
    stay in [0, 1]. The input size is found by a trial run where neither the callable nor ``size`` tells.
    """
    if hasattr(preprocess, "crop_size") and hasattr(preprocess, "resize_size") and hasattr(preprocess, "mean"):
        preset: Any = preprocess
        # One number resizes the short side; two are a squash.
        rule: Rule = "squash" if len(preset.resize_size) == 2 else "crop"
        crop, resize = ((sides[0], sides[-1]) for sides in (preset.crop_size, preset.resize_size))
        return Geometry(crop, rule, resize, preset.interpolation.value), preset.mean, preset.std
    steps = getattr(preprocess, "transforms", None)
    if steps and type(steps[-1]).__name__ == "Normalize":
        from torchvision.transforms import Compose

        given = (torch.as_tensor(v, dtype=torch.float64).flatten().tolist() for v in (steps[-1].mean, steps[-1].std))
        mean, std = (v * 3 if len(v) == 1 else v for v in given)  # one number is for all three channels
        return GivenPreprocessing(Compose(steps[:-1]), size), mean, std
    return GivenPreprocessing(preprocess, size), None, None


def resize_for(size: tuple[int, int], crop_pct: float) -> tuple[int, int]:
    """The length before a center crop that keeps ``crop_pct`` of the side, rounded down as timm does."""
    return math.floor(size[0] / crop_pct), math.floor(size[1] / crop_pct)
