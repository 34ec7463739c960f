"""What deletions cost: their amount, and how rough they are."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from suffice.perturb import enlarge

Edges = Literal["gray", "channels", "asymmetric"]

# The contrast of neighboring pixels, squared and in normalized units, beyond which a mask may have edges.
CONTRAST = 0.01


def amount(deleted: Tensor) -> Tensor:
    """Mean deletion [K] of [K, s, s]."""
    # The absolute value matters at 0, where every deletion begins: its gradient is 0 there, and not 1.
    return deleted.abs().mean(dim=(1, 2))


def total_variation(deleted: Tensor) -> Tensor:
    """Mean squared difference of vertical plus that of horizontal neighbors, [K] of [K, s, s]."""
    return _mean(deleted.diff(dim=1).square()) + _mean(deleted.diff(dim=2).square())


class BilateralVariation:
    """Total variation, half of it in cells and half in pixels, where edges of a mask along edges of the image are free.

    The half in pixels is the mean over neighbors of w·(difference of the enlarged mask)², with
    w = exp(-(difference of the image)² / 0.01), and images in normalized units.

    Args:
        inputs: Normalized images [N, 3, H, W].
        edges: What the difference of an image is. ``"gray"``: of the mean of its channels. ``"channels"``: of each
            channel, and w is the mean over channels. ``"asymmetric"``: the first between vertical neighbors and the
            second between horizontal ones, as the published code has it.
    """

    def __init__(self, inputs: Tensor, edges: Edges = "gray") -> None:
        self.size = (inputs.shape[2], inputs.shape[3])
        self.vertical = _smoothness(inputs.diff(dim=2), gray=edges != "channels")
        self.horizontal = _smoothness(inputs.diff(dim=3), gray=edges == "gray")

    def __call__(self, index: Tensor, deleted: Tensor) -> Tensor:
        """Variation [K] of deletions [K, s, s] from images [K]."""
        fine = enlarge(deleted, self.size, "bilinear-corners")
        vertical = _mean(self.vertical[index] * fine.diff(dim=1).square())
        horizontal = _mean(self.horizontal[index] * fine.diff(dim=2).square())
        return 0.5 * (total_variation(deleted) + vertical + horizontal)


def _smoothness(difference: Tensor, gray: bool) -> Tensor:
    """How alike neighbors are [N, a, b], from differences [N, 3, a, b]; 1 = the same."""
    if gray:
        return torch.exp(-difference.mean(dim=1).square() / CONTRAST)
    return torch.exp(-difference.square() / CONTRAST).mean(dim=1)


def _mean(values: Tensor) -> Tensor:
    """Mean of each map [K, a, b]; 0 where it has no values, as the differences within a map of one cell."""
    return values.sum(dim=(1, 2)) / max(values[0].numel(), 1)
