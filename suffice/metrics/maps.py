"""Maps as metrics use them: checked, brought to another size by a named rule, and ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from suffice.errors import OptionError
from suffice.options import Count
from suffice.perturb import enlarge
from suffice.perturb.masks import Enlargement

Units = Union[Count, Literal["pixels", "cells"]]


def checked(maps: Tensor, count: int) -> Tensor:
    """Maps [N, h, w] as float32; what is not finite, or not one map an image, is an error."""
    if maps.dim() != 3 or len(maps) != count:
        raise OptionError(
            f"Maps have shape {list(maps.shape)}; expected [{count}, h, w], one for each of {count} images."
        )
    if not maps.is_floating_point():
        maps = maps.float()
    broken = (~maps.isfinite()).flatten(1).any(dim=1).nonzero().flatten().tolist()
    if broken:
        raise OptionError(
            f"The maps of images {broken[:5]} hold NaN or infinite values; what they mean cannot be guessed. "
            "Replace them first, for example with torch.nan_to_num."
        )
    return maps.detach().float()


def resized(maps: Tensor, size: tuple[int, int], rule: Enlargement = "bilinear") -> Tensor:
    """Maps [B, h, w] at another size, [B, H, W].

    Smaller ones are enlarged by the ``rule`` of :func:`suffice.perturb.enlarge`, larger ones averaged over areas.
    """
    if tuple(maps.shape[1:]) == tuple(size):
        return maps
    # In double, so that equal values stay equal: rounding must not decide in which order pixels are taken.
    exact = maps.double()
    if maps.shape[1] >= size[0] and maps.shape[2] >= size[1]:
        return adaptive_avg_pool2d(exact[:, None], size)[:, 0].to(maps.dtype)
    return enlarge(exact, size, rule).to(maps.dtype)


@dataclass(frozen=True, eq=False)
class Ranking:
    """The order in which pixels or cells are inserted or removed.

    Attributes:
        ranks: [B, h, w] int32, 0 = most important.
        masks: How a mask of these cells becomes one of pixels.
        key: What it depends on.
    """

    ranks: Tensor
    masks: Enlargement
    key: tuple[object, ...]

    @property
    def count(self) -> int:
        """Pixels, or cells, of one image."""
        return self.ranks[0].numel()


def ranks_of(maps: Tensor) -> Tensor:
    """Rank of each position of maps [B, h, w], highest first; ties go from left to right and from top to bottom.

    Example:
        >>> ranks_of(torch.tensor([[[0.0, 2.0], [2.0, 3.0]]]))
        tensor([[[3, 1],
                 [2, 0]]], dtype=torch.int32)
    """
    flat = maps.flatten(1)
    order = flat.argsort(dim=1, descending=True, stable=True)
    numbers = torch.arange(flat.shape[1], dtype=torch.int32, device=maps.device).expand_as(order)
    return torch.empty_like(numbers, memory_format=torch.contiguous_format).scatter(1, order, numbers).view(maps.shape)
