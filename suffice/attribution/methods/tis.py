"""Tokens, scored by what the model says when it sees only sets of tokens that belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from suffice.attribution.clusters import few_at_a_time, k_means, precise
from suffice.attribution.method import method
from suffice.attribution.task import Task
from suffice.attribution.token_dropping import can_drop_tokens, token_dropping
from suffice.errors import OptionError
from suffice.perturb import FloatMasks
from suffice.perturb.baselines import Baseline
from suffice.perturb.memory import distinct
from suffice.vision.anatomy import Anatomy, record

Mode = Literal["tokens", "pixels"]


@method(
    "tis",
    aliases=("transformer-input-sampling",),
    reference="Englebert et al., Explaining through Transformer Input Sampling, ICCV workshops 2023",
    needs=("tokens",),
)
def tis(
    task: Task,
    *,
    masks: int = 1024,
    ratio: float | Sequence[float] = 0.5,
    mode: Mode = "tokens",
    baseline: Baseline = "noise",
    iterations: int = 100,
) -> Tensor:
    """What the model says of sets of tokens that its own features group together, on average where a token is kept.

    The channels of all block outputs, as maps over the tokens, are clustered by k-means; each centroid keeps the
    tokens where it is highest. Equal sets are asked about once and count as often as they occur.

    Args:
        task: The images.
        masks: Number of clusters, each of which makes a mask; no more than there are channels in all blocks. Clusters
            left without a channel make none.
        ratio: Share of the tokens that a mask keeps, rounded down, at least one token; with several shares, every
            cluster makes a mask for each.
        mode: ``"tokens"`` leaves tokens out of the network, which ViT and DeiT allow. ``"pixels"`` hides the pixels of
            the tokens, for any transformer; where blocks differ in their grid, on the grid that most of them have.
        baseline: What shows in place of hidden pixels. The authors' code takes uniform noise in normalized units;
            ``"noise"`` is uniform over colors.
        iterations: Most iterations of k-means.

    Returns:
        [B, h, w] on the grid of tokens; 0 for tokens that no mask keeps.
    """
    ratios = (ratio,) if isinstance(ratio, (int, float)) else tuple(ratio)
    if masks < 1 or iterations < 1 or not ratios or not all(0 < share <= 1 for share in ratios):
        raise OptionError(
            f"masks={masks}, iterations={iterations}, ratio={ratio}; expected 1 or more, 1 or more, and above 0 to 1."
        )
    if mode not in ("tokens", "pixels"):
        raise OptionError(f"mode={mode!r}; it can be 'tokens' or 'pixels'.")
    if mode == "tokens" and not can_drop_tokens(task.net.module):
        raise OptionError(
            f"tis cannot leave tokens out of {task.net.name}: only plain vision transformers (ViT, DeiT) of timm, "
            "torchvision and transformers take any number of tokens; write mode='pixels' to hide pixels instead."
        )
    if mode == "tokens" and task.forwarder.compiled:
        raise OptionError("tis leaves tokens out inside the model and takes it as it is: no compile= in mode='tokens'.")
    return torch.cat([_maps(part, masks, ratios, mode, baseline, iterations) for part in few_at_a_time(task)])


def _maps(task: Task, masks: int, ratios: Sequence[float], mode: Mode, baseline: Baseline, iterations: int) -> Tensor:
    channels, (height, width) = _channels(task)
    centroids, sizes = k_means(channels, min(masks, channels.shape[1]), task.seeds, iterations=iterations)
    image, cluster = (sizes > 0).nonzero(as_tuple=True)
    # Stable, so that tied tokens come in the same order on every device.
    order = centroids[image, cluster].sort(dim=1, descending=True, stable=True).indices
    exact = precise(order.device)
    total = torch.zeros(len(task), order.shape[1], dtype=exact, device=order.device)
    kept = torch.zeros_like(total)
    for ratio in ratios:
        count = max(1, int(ratio * order.shape[1]))
        shown = torch.zeros_like(order, dtype=torch.bool).scatter_(1, order[:, :count], True)
        questions, place = distinct(image, _words(shown))
        asked = torch.empty(len(questions.hash), dtype=torch.long, device=place.device)
        asked[place] = torch.arange(len(place), device=place.device)  # any of the equal ones
        if mode == "tokens":
            said = _keeping(task, image[asked], shown[asked].nonzero()[:, 1].view(-1, count))
        else:
            seen = FloatMasks(shown[asked].view(-1, height, width).float(), "nearest")
            said = task.probe(baseline).ask(image[asked], seen)
        total.index_add_(0, image, said[place].to(exact)[:, None] * shown)
        kept.index_add_(0, image, shown.to(exact))
    return (total / kept.clamp(min=1)).view(-1, height, width)


def _channels(task: Task) -> tuple[Tensor, tuple[int, int]]:
    """Channels of all blocks that work on one grid, each as a map over its tokens, [B, channels, h*w]; and the grid."""
    anatomy = task.net.anatomy
    grid = working_grid(anatomy)
    blocks = [block for block in anatomy.blocks if anatomy.grid(block) == grid]
    with record(task.net.module, activations=blocks) as seen:
        task.net.logits(task.inputs)
    return torch.cat([anatomy.tokens(block, seen.activations[block]).mT for block in blocks], dim=1), grid


def working_grid(anatomy: Anatomy) -> tuple[int, int]:
    """The grid of tokens on which most blocks work; the finer of two that are as common."""
    grids = Counter(anatomy.grid(block) for block in anatomy.blocks)
    return max(grids, key=lambda grid: (grids[grid], grid))


def _keeping(task: Task, image: Tensor, kept: Tensor) -> Tensor:
    """Scores [K] of images of which only some tokens are kept, [K, n]."""
    said = torch.empty(len(image), device=image.device)
    with token_dropping(task.forwarder, task.inputs) as ask:
        for start in range(0, len(image), task.forwarder.batch_size):
            rows = slice(start, min(start + task.forwarder.batch_size, len(image)))
            scores = task.net.scores(ask(image[rows], kept[rows]))
            said[rows] = scores.gather(1, task.targets[image[rows]][:, None])[:, 0]
    return said


def _words(shown: Tensor) -> Tensor:
    """Sets of tokens, bool [K, n], as bits of int64 words, [K, words]."""
    padded = torch.nn.functional.pad(shown, (0, -shown.shape[1] % 64)).unflatten(1, (-1, 64))
    return (padded.long() << torch.arange(64, device=shown.device)).sum(dim=2)
