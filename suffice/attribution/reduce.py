"""From gradients of three channels to one map."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

Reduction = Literal["sum", "mean", "abs-sum", "sum-abs", "max-abs"]


def over_channels(values: Tensor, reduction: Reduction) -> Tensor:
    """Reduce channels to one number a pixel.

    Args:
        values: [B, 3, H, W].
        reduction: ``"sum"`` and ``"mean"`` keep the sign; ``"sum-abs"`` and ``"max-abs"`` take magnitudes first;
            ``"abs-sum"`` is the magnitude of the sum.

    Returns:
        [B, H, W].
    """
    if reduction == "sum":
        return values.sum(dim=1)
    if reduction == "mean":
        return values.mean(dim=1)
    if reduction == "abs-sum":
        return values.sum(dim=1).abs()
    if reduction == "sum-abs":
        return values.abs().sum(dim=1)
    return values.abs().amax(dim=1)
