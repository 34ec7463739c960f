"""Tokens, scored by what the model says when it sees only sets of tokens that belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from torch import Tensor

from suffice.attribution.channels import Emptied, k_means, precise
from suffice.attribution.method import method
from suffice.attribution.tokens.dropping import can_drop_tokens, token_dropping
from suffice.errors import OptionError
from suffice.options import Count, Range
from suffice.perturb import FloatMasks
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch
from suffice.perturb.memory import distinct
from suffice.perturb.regions import pack_bits
from suffice.vision.anatomy import Anatomy

Mode = Literal["tokens", "pixels"]
Ratio = Annotated[float, Range(0, 1, above=True)]


@method(
    "tis",
    aliases=("transformer-input-sampling",),
    reference="Englebert et al., Explaining through Transformer Input Sampling, ICCV workshops 2023",
    needs=("tokens",),
    cost=8,  # the channels of all blocks, and what clustering them takes
    questions=lambda net, options: options["masks"] * len(_ratios(options["ratio"])) + 2,
)
def tis(
    batch: Batch,
    *,
    masks: Count = 1024,
    ratio: Ratio | Sequence[Ratio] = 0.5,
    mode: Mode = "tokens",
    baseline: Baseline = "noise",
    iterations: Count = 100,
    emptied: Emptied = "zero",
) -> Tensor:
    """Mean score of token subsets, sampled by clustering activations, in which a token is kept.

    The channels of all block outputs, as maps over the tokens, are clustered by k-means; each centroid keeps the
    tokens where it is highest. Equal sets are asked about once and count as often as they occur.

    Args:
        batch: The images.
        masks: Number of clusters, each of which makes a mask; no more than there are channels in all blocks. Clusters
            left without a channel make none.
        ratio: Share of the tokens that a mask keeps, rounded down, at least one token; with several shares, every
            cluster makes a mask for each.
        mode: ``"tokens"`` leaves tokens out of the network, which ViT and DeiT allow. ``"pixels"`` hides the pixels of
            the tokens, for any transformer; where blocks differ in their grid, on the grid that most of them have.
        baseline: What shows in place of hidden pixels. The authors' code takes uniform noise in ImageNet's units,
            ``"tis-noise"``; ``"noise"`` is uniform over colors.
        iterations: Most iterations of k-means.
        emptied: Where a cluster goes that loses all its channels. ``"zero"``: to the origin, as in the authors'
            library, where it gains channels that are small. ``"left"``: it stays where it was. One that ends without a
            channel makes no mask; in the authors' code, one of arbitrary tokens.

    Returns:
        [B, h, w] on the grid of tokens; 0 for tokens that no mask keeps.
    """
    ratios = _ratios(ratio)
    if not ratios:
        raise OptionError(f"ratio={ratio!r}; give one share of the tokens or more.")
    if mode == "tokens" and not can_drop_tokens(batch.net.module):
        raise OptionError(
            f"tis cannot leave tokens out of {batch.net.name}: only plain vision transformers (ViT, DeiT) of timm, "
            "torchvision and transformers take any number of tokens; write mode='pixels' to hide pixels instead."
        )
    channels, (height, width) = _channels(batch)
    centroids, sizes = k_means(
        channels, min(masks, channels.shape[1]), batch.seeds, iterations=iterations, emptied=emptied
    )
    image, cluster = (sizes > 0).nonzero(as_tuple=True)
    # Stable, so that tied tokens come in the same order on every device.
    order = centroids[image, cluster].sort(dim=1, descending=True, stable=True).indices
    exact = precise(order.device)
    total = torch.zeros(len(batch), order.shape[1], dtype=exact, device=order.device)
    kept = torch.zeros_like(total)
    for share in ratios:
        count = max(1, int(share * order.shape[1]))
        shown = torch.zeros_like(order, dtype=torch.bool).scatter_(1, order[:, :count], True)
        questions, number = distinct(image, pack_bits(shown))
        asked = torch.empty(len(questions.hash), dtype=torch.long, device=number.device)
        asked[number] = torch.arange(len(number), device=number.device)  # any of the equal ones
        if mode == "tokens":
            scores = _scores_of_kept(batch, image[asked], shown[asked].nonzero()[:, 1].view(-1, count))
        else:
            pixels = FloatMasks(shown[asked].view(-1, height, width).float(), "nearest")
            scores = batch.probe(baseline).ask(image[asked], pixels)
        total.index_add_(0, image, scores[number].to(exact)[:, None] * shown)
        kept.index_add_(0, image, shown.to(exact))
    return (total / kept.clamp(min=1)).view(-1, height, width)


def _ratios(ratio: Ratio | Sequence[Ratio]) -> tuple[float, ...]:
    return tuple(ratio) if isinstance(ratio, Sequence) else (ratio,)


def _channels(batch: Batch) -> tuple[Tensor, tuple[int, int]]:
    """Channels of all blocks that work on one grid, each as a map over its tokens, [B, channels, h*w]; and the grid."""
    anatomy = batch.net.anatomy
    grid = working_grid(anatomy)
    blocks = [block for block in anatomy.blocks if anatomy.grid(block) == grid]
    seen = batch.activations(blocks)
    return torch.cat([anatomy.tokens(block, seen[block]).mT for block in blocks], dim=1), grid


def working_grid(anatomy: Anatomy) -> tuple[int, int]:
    """The grid of tokens on which most blocks work; the finer of two that are as common."""
    grids = Counter(anatomy.grid(block) for block in anatomy.blocks)
    return max(grids, key=lambda grid: (grids[grid], grid))


def _scores_of_kept(batch: Batch, image: Tensor, kept: Tensor) -> Tensor:
    """Scores [K] of images of which only some tokens are kept, [K, n]."""
    with token_dropping(batch.runner, batch.inputs) as ask:

        def some(rows: slice) -> Tensor:
            scores = batch.net.scores(ask(image[rows], kept[rows]))
            return scores.gather(1, batch.targets[image[rows]][:, None])[:, 0]

        return torch.cat(list(batch.runner.run(len(image), some)))
