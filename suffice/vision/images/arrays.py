"""Arrays and tensors as pixels: which axis is what, which values mean what.

Everything ends as ``[3, H, W]``, either uint8 or float32 in [0, 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from suffice.errors import ImageError
from suffice.vision.identity import content_hash

# Rounding in half precision or in a resize may step this far out of [0, 1]; it is clipped.
SLACK = 1e-5


def pixels_of_tensor(tensor: Tensor, name: str = "the tensor") -> Tensor:
    """Pixels [H, W], [C, H, W] or [N, C, H, W] as a float32 copy in [0, 1] with 3 channels, on the same device."""
    pixels = as_float(unify(_tensor_batch(tensor, name), name))
    if tensor.dtype != torch.uint8:  # whose conversion copies every channel
        pixels = pixels.clone()
    return pixels if tensor.dim() == 4 else pixels[0]


def pixel_batch(pixels: Tensor | np.ndarray[Any, Any], name: str) -> Tensor | np.ndarray[Any, Any]:
    """View a tensor or an array as [N, C, H, W]; errors call it by the name."""
    return _tensor_batch(pixels, name) if isinstance(pixels, Tensor) else _array_batch(pixels, name)


def _tensor_batch(tensor: Tensor, name: str) -> Tensor:
    """View a tensor [H, W], [C, H, W] or [N, C, H, W], C = 1 or 3, as the last of these."""
    batch = tensor[(None,) * (4 - tensor.dim())] if 2 <= tensor.dim() <= 4 else tensor
    if batch.dim() != 4 or batch.shape[1] not in (1, 3):
        hint = " Its channels come last: write .movedim(-1, -3)." if tensor.dim() > 2 and tensor.shape[-1] == 3 else ""
        seen = f"{name} has shape {list(tensor.shape)}"
        raise ImageError(f"{seen}; expected [C, H, W] or [N, C, H, W], C = 1 or 3.{hint}")
    if 0 in batch.shape:
        raise ImageError(f"{name} has shape {list(tensor.shape)}, so it holds no pixels.")
    _check_type(str(tensor.dtype).removeprefix("torch."), tensor.is_floating_point(), name)
    return batch


def _array_batch(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """View an array H×W, H×W×C, N×H×W×C, C×H×W or N×C×H×W, C = 1, 3 or 4, as the last of these.

    Channels come last, as numpy users have them; they come first only where the last axis cannot be channels.
    """
    channels = (1, 3, 4)
    if array.ndim == 2:
        batch = array[None, None]
    elif array.ndim in (3, 4) and array.shape[-1] in channels:
        batch = np.moveaxis(array, -1, -3)
    elif array.ndim in (3, 4) and array.shape[-3] in channels:
        batch = array
    else:
        expected = "H×W, H×W×C or N×H×W×C with 1, 3 or 4 channels, or the same with channels first"
        raise ImageError(f"{name} has shape {array.shape}; expected {expected}.")
    if array.size == 0:
        raise ImageError(f"{name} has shape {array.shape}, so it holds no pixels.")
    _check_type(array.dtype.name, array.dtype.kind == "f", name)
    return batch if batch.ndim == 4 else batch[None]


def _check_type(dtype: str, floating: bool, name: str) -> None:
    if not floating and dtype not in ("uint8", "uint16"):
        raise ImageError(f"{name} has type {dtype}; expected uint8, uint16, or float in [0, 1].")


def check_range(values: Tensor | np.ndarray[Any, Any], name: str) -> tuple[float, float]:
    """The least and the greatest of some floating-point pixels; raise unless they lie in [0, 1]."""
    if isinstance(values, Tensor) and (values.device.type != "cpu" or values.dtype == torch.bfloat16):
        low, high = (extreme.item() for extreme in values.detach().aminmax())
    else:
        # By numpy: the threads that decode images would each get all of torch's threads.
        array = values.detach().numpy() if isinstance(values, Tensor) else values
        low, high = float(array.min()), float(array.max())
    if low >= -SLACK and high <= 1 + SLACK:
        return low, high
    seen = f"{name} has values from {low:.4g} to {high:.4g}"
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ImageError(f"{name} has values that are not finite numbers: give pixels in [0, 1].")
    if low >= 0 and 2 < high <= 255:
        raise ImageError(f"{seen}, which looks like 8 bits: give pixels in [0, 1] (divide by 255), or as uint8.")
    raise ImageError(f"{seen}, which looks normalized: give pixels in [0, 1] (undo mean and std, clip overshoot).")


def tensor_of_array(array: np.ndarray[Any, Any]) -> Tensor:
    """Copy an array to a tensor that torch can compute with, floats as float32."""
    target = np.float32 if array.dtype.kind == "f" else array.dtype.newbyteorder("=")
    return torch.from_numpy(np.array(array, dtype=target, order="C"))


def unify(pixels: Tensor, name: str) -> Tensor:
    """Pixels [..., C, H, W], C = 1, 3 or 4, as [..., 3, H, W]: uint8 where they were (without alpha), else float32."""
    if pixels.is_floating_point():
        pixels = pixels.detach().float()
        low, high = check_range(pixels, name)
        if low < 0 or high > 1:
            pixels = pixels.clamp(0, 1)
    elif pixels.dtype != torch.uint8:
        pixels = pixels.float() / 65535
    channels = pixels.shape[-3]
    if channels == 4:  # over white, for the reason given in decode.to_rgb
        rgb, alpha = as_float(pixels).split((3, 1), dim=-3)
        return rgb * alpha + (1 - alpha)
    if channels == 1:
        return pixels.expand(*pixels.shape[:-3], 3, *pixels.shape[-2:])
    return pixels


def as_float(pixels: Tensor) -> Tensor:
    """Uint8 as float32 in [0, 1]; float32 as it is."""
    return pixels.float() / 255 if pixels.dtype == torch.uint8 else pixels


def fingerprint(pixels: Tensor) -> str:
    """Content hash of unified pixels [3, H, W], wherever they came from."""
    data = pixels.cpu().contiguous().numpy()
    return content_hash(data.dtype.name, str(data.shape), data.tobytes())
