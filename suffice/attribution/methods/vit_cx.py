"""Clusters of feature maps as masks, each weighted by what seeing only it does to the model's decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.attribution.channel_masks import Representative, TokenMasks, token_masks
from suffice.attribution.clusters import Linkage, few_at_a_time
from suffice.attribution.method import method
from suffice.attribution.methods.rise import RandomMasks
from suffice.attribution.task import Task
from suffice.errors import OptionError
from suffice.perturb import Masks
from suffice.vision.anatomy import Layout, record
from suffice.vision.noise import normal_noise

Source = Literal["clustered", "all", "random"]
Impact = Literal["debiased", "plain"]
Coverage = Literal["corrected", "summed"]

# As published, for plain transformers and for those whose stages differ in their grid (Swin).
THRESHOLD, THRESHOLD_OF_STAGES = 0.1, 0.05
# Less than rounding leaves of a mask that is 0 at a pixel.
_UNSEEN = 1e-6


@method(
    "vit-cx",
    aliases=("vitcx",),
    reference="Xie et al., ViT-CX, IJCAI 2023",
    needs=("feature maps",),
)
def vit_cx(
    task: Task,
    *,
    masks: Source = "clustered",
    impact: Impact = "debiased",
    coverage: Coverage = "corrected",
    layer: str = "attention-output",
    threshold: float | None = None,
    linkage: Linkage = "complete",
    representative: Representative = "mean",
    sigma: float = 0.1,
    random_masks: int = 5000,
) -> Tensor:
    """Clusters of feature maps as masks, weighted by what the model says of the image seen through each.

    Channels of one layer, enlarged bilinearly to the image and stretched to [0, 1], are masks; similar ones become
    one. Constant channels count for nothing. The defaults are the paper's; the authors' code is
    ``layer="norm1-last", representative="stretched"``, up to a positive factor an image.

    Args:
        task: The images.
        masks: ``"clustered"`` channels, ``"all"`` channels, or ``"random"`` ones, those of RISE.
        impact: Weight of a mask M of image X with noise Z. ``"debiased"``: what the model says of X·M + (1-M)·Z, plus
            what (1-M)·Z alone takes away when added to X. ``"plain"``: what it says of X·M.
        coverage: ``"corrected"`` divides the weighted sum of masks by their mean, pixel by pixel; pixels that no mask
            shows get 0. ``"summed"`` does not.
        layer: ``"attention-output"``, what the attention of the last block puts out; in transformers whose grid
            shrinks from stage to stage, of the last block before the last grid, as the paper does for Swin; in a
            model without attention its usual target layer, see :class:`suffice.vision.Anatomy`. ``"norm1-last"``, the
            normalization before the attention of the last block. Or the name of any layer that the anatomy knows.
        threshold: Merge clusters up to this distance, 1 - cosine of masks; default: 0.1, and 0.05 for transformers
            whose grid shrinks.
        linkage: ``"complete"`` as in the code (the paper does not say), ``"average"`` or ``"single"``.
        representative: A cluster's mask is the ``"mean"`` of its members, or their sum ``"stretched"`` to [0, 1].
        sigma: Standard deviation of the noise, in normalized units. Every mask of every image has its own.
        random_masks: How many, where ``masks="random"``.

    Returns:
        [B, H, W], as coverage is a matter of pixels.
    """
    _check(masks, impact, coverage, representative, threshold, sigma)
    maps = []
    for part in few_at_a_time(task):
        made: TokenMasks | RandomMasks
        if masks == "random":
            made = RandomMasks(random_masks, 7, 0.5, task.seed, len(part))
            image = torch.arange(len(part), device=task.pixels.device).repeat(random_masks)
            draw = torch.arange(random_masks, device=task.pixels.device).repeat_interleave(len(part))
        else:
            features, stages = _features(part, layer)
            limit = threshold if threshold is not None else THRESHOLD_OF_STAGES if stages else THRESHOLD
            tokens, image, draw = token_masks(
                features, part.net.size, limit if masks == "clustered" else None, linkage, representative
            )
            made = TokenMasks(tokens.to(part.inputs.dtype))
        weights = _impacts(part, made, image, draw, impact, sigma)
        maps.append(_combined(part, made, image, weights, coverage))
    return torch.cat(maps)


def _features(task: Task, layer: str) -> tuple[Tensor, bool]:
    """Feature maps [B, C, h, w] of a layer, and whether the model is a transformer whose grid shrinks."""
    name, layout, stages = _source(task, layer)
    with record(task.net.module, activations=[name]) as seen:
        task.net.logits(task.inputs)
    found = seen.activations[name]
    if not layout.fits(tuple(found.shape)):
        raise OptionError(
            f"vit-cx cannot read {name!r} of {task.net.name} as maps of {layout.grid}: it puts out "
            f"{tuple(found.shape)}; write the name of another layer, such as layer={task.net.anatomy.target_layer!r}."
        )
    return layout.maps(found), stages


def _source(task: Task, layer: str) -> tuple[str, Layout, bool]:
    anatomy, name = task.net.anatomy, task.net.name
    grids = [anatomy.grid(block) for block in anatomy.blocks]
    stages = len(set(grids)) > 1
    if layer == "norm1-last":
        norm = anatomy.norms[-1] if anatomy.norms else None
        if norm is None:
            raise OptionError(
                f"vit-cx with layer='norm1-last' does not fit {name}, which has no normalization before its last "
                f"attention; write layer='attention-output' or layer={anatomy.target_layer!r}."
            )
        return norm, anatomy.layout(norm), stages
    if layer != "attention-output":
        return layer, anatomy.layout(layer), stages
    if not grids:
        return anatomy.target_layer, anatomy.layout(anatomy.target_layer), False
    number = max((i for i, grid in enumerate(grids) if grid != grids[-1]), default=len(grids) - 1)
    attention, block = anatomy.attention[number], anatomy.blocks[number]
    if attention in anatomy.layouts and attention != block:
        return attention, anatomy.layout(attention), stages
    # Windows: what the attention puts out is back in its place where it is about to be added to the block's input.
    inside = dict(task.net.module.get_submodule(block).named_children())
    for path in ("drop_path1", "drop_path"):
        if path in inside:
            return f"{block}.{path}", anatomy.layout(block), stages
    raise OptionError(
        f"vit-cx cannot tell what the attention {attention!r} of {name} puts out at which place; write "
        f"layer='norm1-last' or the name of a layer, such as layer={anatomy.target_layer!r}."
    )


def _impacts(task: Task, made: Masks, image: Tensor, draw: Tensor, impact: Impact, sigma: float) -> Tensor:
    """The weight of each mask, [K] float32."""
    if impact == "plain":
        return _said(task, made, image, lambda rows, shown, mask: [shown * mask], 1)[0]
    # The whole image is what is seen through a mask of ones, so it is asked about along with the others.
    whole = torch.arange(len(task), device=image.device)
    every, draws = torch.cat([image, whole]), torch.cat([draw, torch.zeros_like(whole)])
    over_noise = task.forwarder.fused(_over_noise)

    def show(rows: Tensor, shown: Tensor, mask: Tensor) -> list[Tensor]:
        return over_noise(shown, mask, task.seeds[every[rows]], draws[rows], sigma)

    seen, disturbed = _said(task, made, every, show, 2)
    return seen[: len(image)] + seen[len(image) :][image] - disturbed[: len(image)]


def _over_noise(shown: Tensor, mask: Tensor, seeds: Tensor, draws: Tensor, sigma: float) -> list[Tensor]:
    """Images seen through masks over noise, and whole images with that noise; one pass where it is compiled."""
    noise = normal_noise(seeds, draws, tuple(shown.shape[1:])).to(shown.dtype) * sigma * (1 - mask)
    return [shown * mask + noise, shown + noise]


def _said(
    task: Task, made: Masks, image: Tensor, show: Callable[[Tensor, Tensor, Tensor], list[Tensor]], versions: int
) -> Tensor:
    """What the model says of the targets of images [K] shown through masks, [versions, K] float32.

    Args:
        task: The images.
        made: Masks; where there are more questions than masks, the others are all ones.
        image: Which image each question is about.
        show: From rows [n], images [n, 3, H, W] and masks [n, 1, H, W] to versions of the images.
        versions: How many it makes.
    """
    forwarder, count = task.forwarder, len(image)
    at_once = max(1, forwarder.batch_size // versions)
    found = []
    for start in range(0, count, at_once):
        known = min(at_once, count - start)
        # What is compiled is best called with one shape only, so the last question is repeated there.
        rows = torch.arange(start, start + (at_once if forwarder.compiled else known), device=image.device)
        rows = rows.clamp(max=count - 1)
        mask = task.inputs.new_ones(len(rows), 1, *task.net.size)
        if start < len(made):
            some = made.rows(slice(start, min(start + known, len(made))), task.net.size, mask.device)
            mask[: len(some), 0] = some
        shown = torch.cat(show(rows, task.inputs[image[rows]], mask))
        targets = task.targets[image[rows]].repeat(versions)
        scores = torch.cat(
            [
                task.net.scores(forwarder.logits(forwarder.laid_out(forwarder.padded(part)))[: len(part)])
                for part in shown.split(forwarder.batch_size)
            ]
        )
        found.append(scores.gather(1, targets[:, None]).view(versions, -1)[:, :known])
    return torch.cat(found, dim=1)


def _combined(task: Task, made: TokenMasks | RandomMasks, image: Tensor, weights: Tensor, coverage: Coverage) -> Tensor:
    """Maps [B, H, W] from masks and their weights."""
    total, seen = made.sums(weights, image, len(task), task.net.size)
    if coverage == "summed":
        return total
    share = seen / torch.bincount(image, minlength=len(task)).clamp(min=1)[:, None, None]
    return torch.where(share > _UNSEEN, total / share.clamp(min=_UNSEEN), 0)


def _check(masks: Any, impact: Any, coverage: Any, representative: Any, threshold: float | None, sigma: float) -> None:
    for name, value, choices in (
        ("masks", masks, ("clustered", "all", "random")),
        ("impact", impact, ("debiased", "plain")),
        ("coverage", coverage, ("corrected", "summed")),
        ("representative", representative, ("mean", "stretched")),
    ):
        if value not in choices:
            raise OptionError(f"{name}={value!r}; it can be {', '.join(map(repr, choices))}.")
    if sigma < 0 or (threshold is not None and not 0 <= threshold < float("inf")):
        raise OptionError(f"sigma={sigma}, threshold={threshold}; expected 0 or more.")
