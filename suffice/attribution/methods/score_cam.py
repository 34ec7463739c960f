"""Feature maps, weighted by what the model says when it sees only where they are high."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from suffice.attribution.method import method
from suffice.perturb import FloatMasks
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch
from suffice.perturb.masks import Enlargement

Reading = Literal["softmax", "original", "mask-sum"]


@method(
    "score-cam",
    aliases=("scorecam",),
    reference="Wang et al., Score-CAM, CVPR workshops 2020",
    needs=("feature maps",),
)
def score_cam(
    batch: Batch,
    *,
    reading: Reading = "softmax",
    layer: str | None = None,
    baseline: Baseline = "mean",
    enlargement: Enlargement = "bilinear",
) -> Tensor:
    """Feature maps weighted by the score of the image masked by each of them.

    Three formulas go by this name. All show the image through each channel of the layer, enlarged and stretched to
    [0, 1], over the baseline; constant channels count for nothing.

    Args:
        batch: The images.
        reading: ``"softmax"``, as the paper defines it: the channels' logits, softmaxed over the channels, weigh the
            channels. ``"original"``, as its authors' code does: the class's probabilities weigh the channels.
            ``"mask-sum"``, as others describe it: the probabilities weigh the masks.
        layer: Whose feature maps (or tokens) to read.
        baseline: What shows where the mask is low; ``"mean"`` is zero after normalization, as published.
        enlargement: How channels become masks; ``"bilinear-corners"`` aligns their corners.

    Returns:
        [B, h, w] at the resolution of the layer; of the image for ``"mask-sum"``.
    """
    anatomy = batch.net.anatomy
    name = layer or anatomy.target_layer
    maps = anatomy.maps(name, batch.activations([name])[name]).float()
    count, channels = maps.shape[:2]
    masks = ChannelMasks(maps.flatten(0, 1), enlargement)
    image = torch.arange(count, device=maps.device).repeat_interleave(channels)
    probe = batch.probe(baseline, output="logit" if reading == "softmax" else "score")
    scores = probe.ask(image, masks).view(count, channels)
    varies = masks.varies().view(count, channels)

    if reading == "softmax":
        weights = scores.masked_fill(~varies, -torch.inf).softmax(dim=1).nan_to_num(0.0)  # none varies: no weights
    else:
        weights = scores * varies
    if reading == "mask-sum":
        return _sum_of_masks(masks, weights, batch.net.size)
    return (weights[:, :, None, None] * maps).sum(dim=1).relu()


class ChannelMasks(FloatMasks):
    """Channels [K, h, w] of all images as masks: enlarged to the image and stretched to [0, 1], some at a time."""

    def varies(self) -> Tensor:
        """Whether each channel has more than one value, bool [K]."""
        flat = self.values.flatten(1)
        return flat.amax(dim=1) > flat.amin(dim=1)

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """Some of the masks, [B, H, W]; see :class:`suffice.perturb.Masks`."""
        large = super().rows(rows, size, device)
        low, high = large.amin(dim=(1, 2), keepdim=True), large.amax(dim=(1, 2), keepdim=True)
        return (large - low) / (high - low).clamp(min=torch.finfo(large.dtype).tiny)


def _sum_of_masks(masks: ChannelMasks, weights: Tensor, size: tuple[int, int]) -> Tensor:
    """Σ weight · mask of each image, [B, H, W], image by image: all masks at once would not fit."""
    channels = weights.shape[1]
    sums = []
    for number, own in enumerate(weights):
        total = torch.zeros(size, device=weights.device)
        for start in range(0, channels, 256):
            stop = min(start + 256, channels)
            rows = masks.rows(slice(number * channels + start, number * channels + stop), size, weights.device)
            total += torch.einsum("k,khw->hw", own[start:stop], rows)
        sums.append(total)
    return torch.stack(sums)
