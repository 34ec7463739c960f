"""What any method must beat: maps that know nothing of the model."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.attribution.method import method
from suffice.options import Count
from suffice.perturb.batch import Batch
from suffice.vision.noise import uniform_noise


@method("random", reference="a control, not a method", questions=0)
def random(batch: Batch, *, grid: Count = 7) -> Tensor:
    """Chance: a value for each cell that depends on nothing but image and seed.

    Args:
        batch: The images.
        grid: Cells along each side.

    Returns:
        [B, grid, grid], in [0, 1).
    """
    return uniform_noise(batch.seeds, torch.zeros_like(batch.seeds), (grid, grid))


@method("center", reference="a control, not a method", questions=0)
def center(batch: Batch) -> Tensor:
    """The middle of the image, where photographers put things; the same map for all images.

    Args:
        batch: The images.

    Returns:
        [B, H, W], exp(-x² - y²) with x and y from -1 to 1.
    """
    down, across = (torch.linspace(-1, 1, length, device=batch.pixels.device) for length in batch.net.size)
    return (-(down[:, None] ** 2) - across**2).exp().expand(len(batch), -1, -1)
