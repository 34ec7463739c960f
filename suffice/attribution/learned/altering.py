"""Images altered a little each time they are seen, so that few of them last for a longer training."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

LEAST = 0.5  # of the area of an image


def draw_alterations(count: int, seed: int) -> Tensor:
    """Alterations for so many images, affine maps [count, 2, 3]: a random part fills the frame, perhaps mirrored.

    Example:
        >>> draw_alterations(3, seed=0).shape
        torch.Size([3, 2, 3])
    """
    area, across, down, mirrored = torch.rand(4, count, generator=torch.Generator().manual_seed(seed))
    side = (LEAST + (1 - LEAST) * area).sqrt()
    made = torch.zeros(count, 2, 3)
    made[:, 0, 0] = side * torch.where(mirrored < 0.5, -1.0, 1.0)
    made[:, 1, 1] = side
    made[:, 0, 2], made[:, 1, 2] = (1 - side) * (2 * across - 1), (1 - side) * (2 * down - 1)
    return made


def alter(pixels: Tensor, alterations: Tensor) -> Tensor:
    """Images [B, 3, H, W], altered.

    Example:
        >>> image = torch.rand(1, 3, 4, 6)
        >>> mirror = torch.tensor([[[-1.0, 0, 0], [0, 1, 0]]])
        >>> torch.allclose(alter(image, mirror), image.flip(3), atol=1e-6)
        True
    """
    grid = affine_grid(alterations.to(pixels), list(pixels.shape), align_corners=False)
    return grid_sample(pixels, grid, mode="bilinear", padding_mode="border", align_corners=False)
