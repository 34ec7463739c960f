"""Batch and group normalization for tensors whose channels come last, ``[N, …, C]``, as transformers keep them.

torch's own layers want channels second. These wrap them rather than derive from them: whatever looks for batch
normalization in a model (conversion to synchronized statistics, recomputing statistics, freezing) finds torch's own
layer inside and may exchange it, and the channels are still the right ones.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class TokenNorm(nn.Module):
    """One of torch's layers inside, as :attr:`norm`, whose factors and offsets are its own."""

    norm: nn.BatchNorm1d | nn.GroupNorm

    @property
    def weight(self) -> Tensor:
        """The factor of each channel [C]; timm reads device and number format of a block from it."""
        return self.norm.weight

    @property
    def bias(self) -> Tensor:
        """The offset of each channel [C]."""
        return self.norm.bias


class TokenBatchNorm(TokenNorm):
    """Normalizes each channel by its statistics over the batch and all positions; by running ones in evaluation.

    Args:
        channels: Size of the last dimension.
        **options: Arguments of :class:`torch.nn.BatchNorm1d`.

    Example:
        >>> import torch
        >>> seen = TokenBatchNorm(8)(torch.rand(4, 7, 7, 8))
        >>> bool(seen.mean(dim=(0, 1, 2)).abs().max() < 1e-5)
        True
    """

    def __init__(self, channels: int, **options: Any) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels, **options)

    def forward(self, tokens: Tensor) -> Tensor:
        """Normalized tokens, of the same shape [N, …, C]."""
        return self.norm(tokens.flatten(0, -2)).reshape(tokens.shape)


class TokenGroupNorm(TokenNorm):
    """Normalizes each image by itself: every group of channels over the group and all positions.

    Args:
        channels: Size of the last dimension.
        groups: Number of groups; must divide the channels.
        **options: Arguments of :class:`torch.nn.GroupNorm`.

    Example:
        >>> import torch
        >>> seen = TokenGroupNorm(8, groups=2)(torch.rand(4, 7, 7, 8))
        >>> bool(seen[..., :4].mean(dim=(1, 2, 3)).abs().max() < 1e-5)
        True
    """

    def __init__(self, channels: int, groups: int = 32, **options: Any) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels, **options)

    def forward(self, tokens: Tensor) -> Tensor:
        """Normalized tokens, of the same shape [N, …, C]."""
        # As a picture of one column in torch's channels-last format, for which there are fast kernels.
        picture = tokens.reshape(len(tokens), -1, 1, tokens.shape[-1]).movedim(-1, 1)
        return self.norm(picture).movedim(1, -1).reshape(tokens.shape)
