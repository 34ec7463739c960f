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


def margin(ratio: float, threshold: float) -> float:
    """How far a ratio lies above a threshold: 0 where it lies on it.

    Example:
        >>> margin(0.8999999761581421, 0.9)
        0.0
    """
    return round(ratio - threshold, 6) + 0.0  # which is never −0.0
