"""Pictures in and out: any image to draw on, small copies to keep, PNG bytes, data URIs."""

from __future__ import annotations

import base64
import io
from typing import Any, Union

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.errors import OptionError
from suffice.vision.images import open_images

Drawable = Union[Image.Image, Tensor, Any]

TINY = 96  # pixels a side; images up to this are shown with sharp pixels
SMALL = 128  # longest side of a copy to keep
LONGEST = 400  # enough for the largest size a picture is shown at, printed at twice the density of a screen


def as_image(picture: Drawable) -> Image.Image:
    """One picture, a tensor [3, H, W] or whatever else :func:`suffice.open_images` takes, as an RGB image."""
    if isinstance(picture, Tensor) and picture.dim() == 4:
        raise OptionError(f"One picture is [3, H, W]; got {list(picture.shape)}. Write picture[0].")
    images = open_images(picture)
    if len(images) != 1:
        raise OptionError(f"Expected one picture, and got {len(images)}.")
    decoded = images[0].decode()
    if isinstance(decoded, Image.Image):
        return decoded
    return Image.fromarray(_as_bytes(decoded.cpu()).permute(1, 2, 0).numpy())


def small_picture(pixels: Tensor, longest: int = SMALL) -> Tensor:
    """Copies of images that are small enough to be kept beside results.

    Args:
        pixels: [3, H, W] or [N, 3, H, W], uint8 or float in [0, 1].
        longest: Most pixels of the longest side; smaller images stay as they are.

    Returns:
        uint8 [3, h, w] or [N, 3, h, w], on the CPU.

    Example:
        >>> small_picture(torch.rand(3, 224, 448)).shape
        torch.Size([3, 64, 128])
    """
    shrink = longest / max(pixels.shape[-2:])
    if shrink < 1:
        size = [max(1, round(length * shrink)) for length in pixels.shape[-2:]]
        batch = pixels.reshape(-1, *pixels.shape[-3:]).float() / (1 if pixels.is_floating_point() else 255)
        batch = torch.nn.functional.interpolate(batch, size, mode="bilinear", antialias=True, align_corners=False)
        pixels = batch.clamp(0, 1).reshape(*pixels.shape[:-2], *size)
    small = _as_bytes(pixels).cpu()
    return small.clone() if small.data_ptr() == pixels.data_ptr() else small


def to_png(picture: Drawable) -> bytes:
    """A picture as the bytes of a PNG file."""
    data = io.BytesIO()
    as_image(picture).save(data, "PNG", compress_level=1)  # 5 % larger than by default, in a third of the time
    return data.getvalue()


def from_png(data: bytes) -> Tensor:
    """The pixels in the bytes of a PNG file, uint8 [3, H, W]."""
    return torch.from_numpy(np.array(as_image(data))).permute(2, 0, 1).contiguous()


def data_uri(picture: Drawable) -> str:
    """The picture, made smaller where it is large, for use inside a document.

    Where it is tiny, each pixel becomes a sharp square: viewers would blur it, and JPEG would show its artifacts.
    """
    small = as_image(picture).copy()
    small.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    lossless = max(small.size) <= TINY
    data = io.BytesIO()
    if lossless:
        times = max(1, LONGEST // max(small.size))
        small.resize((times * small.width, times * small.height), Image.Resampling.NEAREST).save(data, "PNG")
    else:
        small.save(data, "JPEG", quality=86, optimize=True)
    kind = "png" if lossless else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data.getvalue()).decode('ascii')}"


def resampling(image: Image.Image) -> Image.Resampling:
    """How to enlarge an image to be looked at: where it is tiny, with sharp pixels."""
    return Image.Resampling.NEAREST if max(image.size) <= TINY else Image.Resampling.BICUBIC


def _as_bytes(pixels: Tensor) -> Tensor:
    return (pixels * 255).round().to(torch.uint8) if pixels.is_floating_point() else pixels
