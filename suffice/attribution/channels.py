"""What methods share that make masks of feature channels: clustering, and masks on the grid of the channels.

Channels are stretched, compared and merged on their own small grid, and enlarged only when used. Bilinear enlargement
is linear and keeps constants, so what is asked of enlarged channels (their extremes, the angles between them, their
means) follows exactly from the channels as they are.

Clustering is agglomerative up to a distance, or k-means, for many images at once and on their device. An image's
clusters depend on the image alone, never on those it shares a batch with.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.perturb import FloatMasks, enlarge
from suffice.vision.noise import uniform_noise

Linkage = Literal["complete", "average", "single"]
Representative = Literal["mean", "stretched"]
Emptied = Literal["zero", "left"]

# Numbers that the distances of one portion of images may take during k-means: one gigabyte.
_AT_ONCE = 1 << 28


def agglomerate(distances: Tensor, threshold: float, linkage: Linkage = "complete") -> Tensor:
    """Merge the two nearest clusters again and again, until none are nearer than a threshold.

    For these linkages, merging two clusters never brings them nearer to a third. Clusters that are each other's nearest
    therefore end up merged whatever happens elsewhere, and all such pairs of all images can be merged at once. That
    takes a few dozen rounds rather than one for each merge, and gives the same clusters.

    Distances between items are symmetric [B, n, n], and infinite for items that are to stay alone. That of two clusters
    is the distance of their farthest members (``"complete"``), of their nearest (``"single"``), or the mean over all
    pairs (``"average"``). Returns for each item the first item of its cluster, [B, n] int64.

    Example:
        >>> places = torch.tensor([[0.0], [0.1], [5.0], [5.2], [0.3]])
        >>> agglomerate(torch.cdist(places, places)[None], threshold=1.0)
        tensor([[0, 0, 2, 2, 0]])
    """
    images, count, _ = distances.shape
    first_of = torch.arange(count, device=distances.device).repeat(images, 1)
    # Clusters still at work stand in slots, in order of their first items.
    item, size = first_of.clone(), torch.ones_like(first_of, dtype=distances.dtype)
    apart = distances.clone()
    apart.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    while apart.shape[1] > 1:
        near, partner = apart.min(dim=2)
        slot = torch.arange(apart.shape[1], device=apart.device)
        mutual = (partner.gather(1, partner) == slot) & (near <= threshold) & (slot < partner)
        image, kept = mutual.nonzero(as_tuple=True)
        if not len(image):
            break
        gone = partner[image, kept]
        share = size[image, kept] / (size[image, kept] + size[image, gone])
        apart[image, kept] = _joined(apart[image, kept], apart[image, gone], share, linkage)
        apart[image, :, kept] = _joined(apart[image, :, kept], apart[image, :, gone], share, linkage)
        if linkage == "average":
            # Rows and columns were averaged in different orders; without the same last bit, nobody might be mutual.
            apart = (apart + apart.mT) / 2
        apart[image, gone] = torch.inf
        apart[image, :, gone] = torch.inf
        apart[image, kept, kept] = torch.inf
        size[image, kept] += size[image, gone]
        successor = torch.arange(count, device=apart.device).repeat(images, 1)
        successor[image, item[image, gone]] = item[image, kept]
        first_of = successor.gather(1, first_of)

        # One without a near neighbor will never have one.
        busy = near <= threshold
        busy[image, gone] = False
        most = int(busy.sum(dim=1).max())
        if most <= apart.shape[1] * 3 // 4:
            stay = busy.sort(dim=1, descending=True, stable=True).indices[:, :most]
            apart = apart.gather(1, stay[:, :, None].expand(-1, -1, apart.shape[2]))
            apart = apart.gather(2, stay[:, None].expand(-1, most, -1))
            item, size = item.gather(1, stay), size.gather(1, stay)
    return first_of


def k_means(
    samples: Tensor,
    count: int,
    seeds: Tensor,
    *,
    iterations: int = 100,
    tolerance: float = 1e-4,
    emptied: Emptied = "left",
) -> tuple[Tensor, Tensor]:
    """Euclidean k-means of samples [B, n, features] by Lloyd's algorithm, one clustering an image.

    It begins at distinct samples: those with the lowest numbers in the first draw of uniform noise of the image's seed.
    It ends when the centroids together moved by no more than the tolerance (sum of squares), image by image. A cluster
    that loses all its samples is ``"left"`` where it was, and hardly ever gains any again; or it moves to ``"zero"``,
    where it gains those samples that are small.

    Returns centroids [B, count, features], and how many samples each was last the nearest of, [B, count] int64.

    Example:
        >>> places = torch.tensor([[[0.0], [0.2], [5.0], [5.2]]])
        >>> centroids, sizes = k_means(places, 2, torch.tensor([7]))
        >>> centroids.flatten().sort().values, sizes
        (tensor([0.1000, 5.1000]), tensor([[2, 2]]))
    """
    if not 1 <= count <= samples.shape[1]:
        raise OptionError(f"{count} clusters of {samples.shape[1]} samples; expected from 1 to {samples.shape[1]}.")
    at_once = max(1, _AT_ONCE // (samples.shape[1] * count))
    start = first_samples(seeds, samples.shape[1], count)
    parts = zip(samples.split(at_once), start.split(at_once), strict=True)
    centroids, sizes = zip(*(_k_means(*part, iterations, tolerance, emptied) for part in parts), strict=True)
    return torch.cat(centroids), torch.cat(sizes)


def first_samples(seeds: Tensor, available: int, count: int) -> Tensor:
    """The samples at which :func:`k_means` begins, [B, count] int64."""
    chance = uniform_noise(seeds, torch.zeros_like(seeds), (available,))
    return chance.sort(dim=1, stable=True).indices[:, :count]


def precise(device: torch.device) -> torch.dtype:
    """The precision for sums that must not depend on their order: float64 where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def _joined(one: Tensor, other: Tensor, share: Tensor, linkage: Linkage) -> Tensor:
    """Distances [P, n] of joined clusters to all others, from those of their two parts."""
    if linkage == "complete":
        return torch.maximum(one, other)
    if linkage == "single":
        return torch.minimum(one, other)
    return share[:, None] * one + (1 - share)[:, None] * other


def _k_means(
    samples: Tensor, start: Tensor, iterations: int, tolerance: float, emptied: Emptied
) -> tuple[Tensor, Tensor]:
    images, count = start.shape
    features = samples.shape[2]
    centroids = samples.gather(1, start[:, :, None].expand(-1, -1, features))
    sizes = torch.zeros_like(start)
    active = torch.arange(images, device=samples.device)
    for _ in range(iterations):
        own, before = samples[active], centroids[active]
        # The squares of the samples are the same for all centroids, so they need not be added.
        nearest = torch.baddbmm(before.square().sum(dim=2)[:, None], own, before.mT, alpha=-2).argmin(dim=2)
        place = (nearest + count * torch.arange(len(active), device=samples.device)[:, None]).flatten()
        number = torch.bincount(place, minlength=len(active) * count).view(len(active), count)
        exact = precise(samples.device)
        sums = torch.zeros(number.numel(), features, dtype=exact, device=samples.device)
        sums.index_add_(0, place, own.flatten(0, 1).to(exact))
        means = (sums.view(len(active), count, features) / number.clamp(min=1)[:, :, None]).to(samples.dtype)
        # The sum over no samples is 0, and so is what stands for their mean.
        after = means if emptied == "zero" else torch.where(number[:, :, None] > 0, means, before)
        centroids[active], sizes[active] = after, number
        moves = (after - before).square().sum(dim=(1, 2)) > tolerance
        active = active[moves]
        if not len(active):
            break
    return centroids, sizes


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
    :func:`agglomerate`; None leaves every channel alone. A cluster's mask is the
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
