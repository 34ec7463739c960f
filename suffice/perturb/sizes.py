"""To how many inputs an incomplete batch is filled up.

A compiled model takes full batches only. On GPUs cuDNN chooses and builds kernels anew for each number of inputs: 0.08
s for a forward of ResNet-50, and 5 s for the backward pass of MobileNetV2, whose filters see one channel each (H200,
half precision). So networks with convolutions get few different numbers there, too. Which ones, depends on the batch
size alone and not on what ran before, so that the same work gives the same bits.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

Sizes = Literal["any", "few", "doubled", "full"]

STEPS = 16  # of a batch, between its sizes where they are few


def sizes_of(module: nn.Module, device: torch.device) -> Sizes:
    """Which sizes of batches a model that is not compiled should get."""
    if device.type != "cuda" or not has_convolutions(module):
        return "any"
    convolutions = (part for part in module.modules() if isinstance(part, nn.Conv2d))
    one_channel = any(part.groups == part.in_channels > 1 for part in convolutions)
    return "doubled" if one_channel else "few"


def has_convolutions(module: nn.Module) -> bool:
    """Whether a model has convolutions beyond the one that cuts patches."""
    return sum(isinstance(part, nn.Conv2d) for part in module.modules()) > 1


def size_for(count: int, batch_size: int, sizes: Sizes) -> int:
    """How many inputs go through a model for so many.

    Example:
        >>> [size_for(count, 128, "few") for count in (1, 17, 128)]
        [8, 24, 128]
        >>> [size_for(count, 128, "doubled") for count in (1, 17, 128)]
        [1, 32, 128]
        >>> size_for(17, 128, "any"), size_for(17, 128, "full")
        (17, 128)
    """
    if sizes == "any" or count >= batch_size:
        return count
    if sizes == "full":
        return batch_size
    if sizes == "doubled":
        return min(batch_size, 1 << (count - 1).bit_length())
    step = max(1, batch_size // STEPS)
    return min(batch_size, -(-count // step) * step)


def filled(rows: Tensor, size: int) -> Tensor:
    """The rows, the last repeated until there are so many."""
    missing = size - len(rows)
    return torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing > 0 else rows
