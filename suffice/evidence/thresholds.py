"""Comparing ratios with thresholds."""

from __future__ import annotations

from torch import Tensor

# Ratios are rounded to this, and one that is as near as half of it to a threshold lies on it: so the last bits of a
# float32 sum, which depend on the batch that a question happens to be in, do not decide.
RESOLUTION = 1e-6


def rounded(ratio: Tensor) -> Tensor:
    """Ratios without the last bits."""
    return (ratio / RESOLUTION).round() * RESOLUTION


def least(threshold: float, strict: bool = False) -> float:
    """From where on ratios reach a threshold, or with ``strict`` lie above it.

    Example:
        >>> import torch
        >>> ratio = rounded(torch.tensor([0.71, 0.72, 0.73]))
        >>> ratio >= least(0.72), ratio >= least(0.72, strict=True)
        (tensor([False,  True,  True]), tensor([False, False,  True]))
    """
    return threshold + RESOLUTION / 2 if strict else threshold - RESOLUTION / 2


def margin(ratio: Tensor, threshold: float) -> Tensor:
    """How far ratios lie above a threshold, float64: 0 where they lie on it.

    Example:
        >>> import torch
        >>> margin(torch.tensor([0.9, 0.95]), 0.9)
        tensor([0.0000, 0.0500], dtype=torch.float64)
    """
    return ((ratio.double() - threshold) / RESOLUTION).round() * RESOLUTION + 0.0  # which is never −0.0
