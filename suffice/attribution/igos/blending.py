"""Inputs of a model, blended of images and their baselines by masks of few cells, in one function to compile."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from suffice.perturb import enlarge
from suffice.vision.noise import normal_noise


def masked_inputs(
    shown: Tensor,
    hidden: Tensor,
    index: Tensor,
    deleted: Tensor,
    inserts: Tensor,
    fraction: Tensor,
    seeds: Tensor,
    draws: Tensor,
    deviations: Tensor | None,
    dtype: torch.dtype,
    channels_last: bool,
) -> Tensor:
    """Show images where cells are kept and baselines where they are deleted, or the other way round.

    Args:
        shown: Normalized images, [N, 3, H, W], or where ``channels_last`` [N, H, W, 3].
        hidden: Their baselines.
        index: Which image each row is about, [B].
        deleted: What planes of cells delete, [B, P, s, s]; a plane of zeros deletes nothing.
        inserts: Whether images show where they are deleted, [B] bool.
        fraction: Of what the planes keep together, how much, [B].
        seeds: Of each row's noise, [B].
        draws: Which draw of it, [B].
        deviations: Standard deviation of the noise on each channel, [3, 1, 1]; None for none.
        dtype: Of the inputs.
        channels_last: Memory layout, of the inputs as well.

    Returns:
        [B, 3, H, W]
    """
    size = (shown.shape[1], shown.shape[2]) if channels_last else (shown.shape[2], shown.shape[3])
    kept = fraction[:, None, None]
    for plane in deleted.unbind(dim=1):
        kept = kept * (1 - enlarged(plane, size))
    visible = torch.where(inserts[:, None, None], 1 - kept, kept).unsqueeze(3 if channels_last else 1)
    inputs = torch.lerp(hidden[index], shown[index], visible)
    inputs = inputs.permute(0, 3, 1, 2) if channels_last else inputs
    if deviations is not None:
        inputs = inputs + deviations * normal_noise(seeds, draws, (3, *size))
    return inputs.to(dtype)


def enlarged(cells: Tensor, size: tuple[int, int]) -> Tensor:
    """Enlarge cells [K, s, s] to a height and width with corners aligned; [K, H, W].

    The gradient goes back by matrix products: a pixel's share in each of its four cells need not be added to memory
    that thousands of others add to, in an order which GPUs leave open.
    """
    enlargement: Tensor = _Enlarged.apply(cells, size)
    return enlargement


class _Enlarged(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cells: Tensor, size: tuple[int, int]) -> Tensor:
        ctx.cells = tuple(cells.shape[1:])
        return enlarge(cells, size, "bilinear-corners")

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        # What a cell contributes to each pixel of a line, [s, H] and [s, W].
        down, across = (
            interpolate(
                torch.eye(cells, dtype=gradient.dtype, device=gradient.device)[None],
                pixels,
                mode="linear",
                align_corners=True,
            )[0]
            for cells, pixels in zip(ctx.cells, gradient.shape[1:], strict=True)
        )
        return down @ gradient @ across.T, None
