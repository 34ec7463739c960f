"""Methods as their authors published them: one image after the other, masks that lie ready in memory.

They find what ours find. What the originals do besides, copies of the model and gradients that nobody reads, is left
out, so that they are no slower than their structure makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from suffice.attribution.channels import k_means
from suffice.attribution.methods.rise import RandomMasks
from suffice.attribution.methods.tis import working_grid
from suffice.attribution.methods.vit_cx import usual_threshold
from suffice.attribution.tokens.block_layers import block_layer
from suffice.attribution.tokens.dropping import can_drop_tokens, token_dropping
from suffice.perturb import Runner, enlarge
from suffice.vision.units import imagenet_unit

if TYPE_CHECKING:
    from suffice.bench.peers import Work

ONE_AT_A_TIME = "one image at a time"


def published(method: str, work: Work) -> Callable[[], Tensor] | None:
    """A call of the published loop of a method, for models that it fits; None where there is none."""
    anatomy = work.net.anatomy
    if method == "rise":
        return _rise(work)
    if method == "vit-cx" and anatomy.blocks and work.options["masks"] == "clustered":
        return _each(work, _vit_cx)
    if method == "tis" and can_drop_tokens(work.net.module) and work.options["mode"] == "tokens":
        return _each(work, _tis)
    return None


def _each(work: Work, one: Callable[[Work, Tensor, int], Tensor]) -> Callable[[], Tensor]:
    """The map of one image after the other."""

    @torch.no_grad()
    def loop() -> Tensor:
        pairs = zip(work.inputs, work.targets.tolist(), strict=True)
        return torch.stack([one(work, image, target) for image, target in pairs])

    return loop


def _rise(work: Work) -> Callable[[], Tensor]:
    """The scores of all classes times all masks, which are made before."""
    count, share = work.options["masks"], work.options["share"]
    numbers = torch.arange(count, device=work.inputs.device)
    masks = RandomMasks(count, work.options["side"], share, 0, 1).make(numbers, work.net.size)

    def one(work: Work, image: Tensor, target: int) -> Tensor:
        scores = torch.cat([_scores(work, part[:, None] * image) for part in masks.split(work.batch_size)])
        return (scores.T @ masks.flatten(1))[target].view(work.net.size) / count / share

    return _each(work, one)


def _vit_cx(work: Work, image: Tensor, target: int) -> Tensor:
    """Channels compared pixel by pixel, two inputs for each cluster of them, and the sum for all classes."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    net = work.net
    name = block_layer(net, "attention-input")
    channels = net.anatomy.layout(name).maps(_outputs(work, image, [name])[name])[0]
    masks = _stretched(enlarge(channels, net.size, "bilinear"))
    directions = torch.nn.functional.normalize(masks.flatten(1), dim=1)
    distances = (1 - directions @ directions.T).clamp(min=0).cpu().double()
    distances = (distances + distances.T).fill_diagonal_(0) / 2
    limit = work.options["threshold"]
    limit = usual_threshold(net.anatomy) if limit is None else limit
    tree = linkage(squareform(distances.numpy()), work.options["linkage"])
    member = torch.from_numpy(fcluster(tree, limit, "distance")).to(masks.device).long() - 1
    clusters = int(member.max()) + 1
    summed = masks.new_zeros(clusters, *net.size).index_add_(0, member, masks)
    masks = _stretched(summed)
    sigma = work.options["sigma"] * torch.tensor(imagenet_unit(net.std), device=masks.device)[:, None, None]
    inputs = []
    for mask in masks:
        noise = sigma * torch.randn_like(image) * (1 - mask)
        inputs += [image * mask + noise, image + noise]
    scores = torch.cat([_scores(work, part) for part in torch.stack(inputs).split(work.batch_size)])
    seen, disturbed = scores[0::2], scores[1::2]
    impact = seen - disturbed + _scores(work, image[None])
    total = (impact.T @ masks.flatten(1))[target]
    return (total / masks.mean(dim=0).flatten()).nan_to_num(0).view(net.size)


def _tis(work: Work, image: Tensor, target: int) -> Tensor:
    """Channels of all blocks clustered for one image, and tokens gathered mask by mask."""
    net, anatomy = work.net, work.net.anatomy
    height, width = working_grid(anatomy)
    seen = _outputs(work, image, anatomy.blocks)
    channels = torch.cat([anatomy.tokens(block, seen[block]).mT for block in anatomy.blocks], dim=1)
    count = min(work.options["masks"], channels.shape[1])
    seeds = torch.zeros(1, dtype=torch.long, device=image.device)
    more = {"iterations": work.options["iterations"], "emptied": work.options["emptied"]}
    centroids, sizes = k_means(channels, count, seeds, **more)
    kept = max(1, int(work.options["ratio"] * height * width))
    chosen = [one.topk(kept).indices.sort().values for one in centroids[0][sizes[0] > 0]]
    masks = torch.stack([torch.zeros(height * width, device=image.device).index_fill(0, one, 1) for one in chosen])
    runner = Runner(net, batch_size=work.batch_size, fold=False, channels_last=False)
    with token_dropping(runner, image[None]) as ask:
        parts = torch.stack(chosen).split(work.batch_size)
        scores = torch.cat([net.scores(ask(torch.zeros_like(part[:, 0]), part))[:, target] for part in parts])
    return ((scores @ masks) / masks.sum(dim=0)).nan_to_num(0).view(height, width)


def _scores(work: Work, inputs: Tensor) -> Tensor:
    return work.net.scores(work.net.logits(inputs))


def _outputs(work: Work, image: Tensor, names: tuple[str, ...] | list[str]) -> dict[str, Tensor]:
    """What some layers put out for an image."""
    seen: dict[str, Tensor] = {}
    layers = [(name, work.net.module.get_submodule(name)) for name in names]

    def note(name: str) -> Callable[..., None]:
        return lambda _layer, _inputs, output: seen.update({name: output})

    hooks = [layer.register_forward_hook(note(name)) for name, layer in layers]
    try:
        work.net.logits(image[None])
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _stretched(masks: Tensor) -> Tensor:
    low, high = masks.amin(dim=(1, 2), keepdim=True), masks.amax(dim=(1, 2), keepdim=True)
    return (masks - low) / (high - low).clamp(min=torch.finfo(masks.dtype).tiny)
