"""Channels of a layer as masks: stretched, compared and merged on their own small grid, enlarged only when used.

Bilinear enlargement is linear and keeps constants. So what is asked of enlarged channels (their extremes, the angles
between them, their means) follows exactly from the channels as they are.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from suffice.attribution.channels.clusters import Linkage, agglomerate, precise
from suffice.perturb import FloatMasks, enlarge

Representative = Literal["mean", "stretched"]


class TokenMasks(FloatMasks):
    """Masks on the grid of tokens, [K, h, w]; within [0, 1] once enlarged bilinearly, but for rounding."""

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """Some of the masks, [B, H, W]; see :class:`suffice.perturb.Masks`."""
        return super().rows(rows, size, device).clamp(0, 1)

    def sums(self, weights: Tensor, image: Tensor, count: int, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Sums of the masks of each image, weighted [K] and plain, [count, H, W] float32 each.

        They are enlarged only once summed, which comes to the same.
        """
        values = self.values.to(precise(weights.device))
        both = torch.stack([weights[:, None, None] * values, values])
        sums = both.new_zeros(2, count, *values.shape[1:]).index_add_(1, image, both)
        total, seen = enlarge(sums.flatten(0, 1), size, "bilinear").float().unflatten(0, (2, count))
        return total, seen


def token_masks(
    features: Tensor, size: tuple[int, int], threshold: float | None, linkage: Linkage, representative: Representative
) -> tuple[Tensor, Tensor, Tensor]:
    """Masks from channels [B, C, h, w], alone or in clusters, on their own grid; ``size`` is that of the image.

    Channels are merged up to the threshold, by the linkage of
    :func:`suffice.attribution.channels.clusters.agglomerate`; None leaves every channel alone. A cluster's mask is the
    ``"mean"`` of its members, or their sum ``"stretched"`` to [0, 1]. Returns masks of all images one after the other,
    [K, h, w]; which image each is of, [K]; and its first channel, [K].
    """
    features = features.to(precise(features.device))
    channels, varies = stretched(features, size)
    count = channels.shape[1]
    if threshold is None:
        image, first = varies.nonzero(as_tuple=True)
        return channels[image, first], image, first
    apart = distances(channels, size).masked_fill(~(varies[:, :, None] & varies[:, None]), torch.inf)
    cluster = agglomerate(apart, threshold, linkage)
    image, first = ((cluster == torch.arange(count, device=cluster.device)) & varies).nonzero(as_tuple=True)
    place = (cluster + count * torch.arange(len(cluster), device=cluster.device)[:, None]).flatten()
    sums = torch.zeros_like(channels).flatten(0, 1).index_add_(0, place, channels.flatten(0, 1))
    chosen = image * count + first
    if representative == "mean":
        sizes = torch.bincount(place, minlength=len(sums))[chosen]
        return sums[chosen] / sizes[:, None, None], image, first
    masks, useful = stretched(sums[chosen], size)
    return masks[useful], image[useful], first[useful]


def stretched(maps: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Shift and scale maps [..., h, w] so that they fill [0, 1] just when enlarged; and say which are not constant.

    Between four centers of the grid the enlarged map is linear in each direction, so its extremes there are at the
    outermost of the pixels between them; no others are looked at. Constant maps become zeros.
    """
    down, across = (_outermost(*lengths, maps) for lengths in zip(size, maps.shape[-2:], strict=True))
    seen = down @ maps @ across.T
    low, high = seen.amin(dim=(-2, -1), keepdim=True), seen.amax(dim=(-2, -1), keepdim=True)
    plain = maps.flatten(-2)
    varies = plain.amax(dim=-1) > plain.amin(dim=-1)
    scaled = (maps - low) / (high - low).clamp(min=torch.finfo(maps.dtype).tiny)
    return torch.where(varies[..., None, None], scaled, 0), varies


def distances(maps: Tensor, size: tuple[int, int]) -> Tensor:
    """One minus the cosine between maps [B, C, h, w] once enlarged, exactly, though they never are.

    Symmetric, [B, C, C]; 1 to and from maps that are zero.
    """
    down, across = (_enlarging(*lengths, maps) for lengths in zip(size, maps.shape[-2:], strict=True))
    products = maps.flatten(2) @ ((down.T @ down) @ maps @ (across.T @ across)).flatten(2).mT
    products = (products + products.mT) / 2
    length = products.diagonal(dim1=1, dim2=2).sqrt().clamp(min=torch.finfo(maps.dtype).tiny)
    return 1 - products / length[:, :, None] / length[:, None]


def _enlarging(pixels: int, cells: int, like: Tensor) -> Tensor:
    """Bilinear enlargement of a line of cells as a matrix [pixels, cells]."""
    return (1 - (_position(pixels, cells, like)[:, None] - torch.arange(cells).to(like)).abs()).clamp(min=0)


def _outermost(pixels: int, cells: int, like: Tensor) -> Tensor:
    """The rows of :func:`_enlarging` that are the first or last between two centers of cells."""
    between = _position(pixels, cells, like).floor()
    change = between.diff() != 0
    edge = torch.ones_like(change[:1]) if len(change) else torch.ones(1, dtype=torch.bool, device=like.device)
    return _enlarging(pixels, cells, like)[torch.cat([edge, change]) | torch.cat([change, edge])]


def _position(pixels: int, cells: int, like: Tensor) -> Tensor:
    """Where the center of each pixel lies, in cells from the center of the first one to that of the last."""
    return ((torch.arange(pixels).to(like) + 0.5) * cells / pixels - 0.5).clamp(0, cells - 1)
