"""What to fine-tune of an explainer for each image: its head, low-rank updates of its trunk, or everything.

OMP_NUM_THREADS=1 nice -n 15 python benchmarks/explainer_fine_tuning.py zoo/deit zoo/resnet --images 16

For each way and learning rate: seconds of processor time an image, the loss of the best mask, and metrics of it.
The package keeps the head alone (suffice/attribution/learned/fine_tuning.py); the two others live here.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

import suffice
from suffice.attribution.learned import Explainer, load_explainer, ready_explainer
from suffice.attribution.learned.fine_tuning import HeadOfEach
from suffice.perturb import Runner
from suffice.vision.anatomy.preserve import preserved

METRICS = ("pos", "neg", "lerf", "deletion", "adp", "pic")
Masks = Callable[[], Tensor]


def head_only(explainer: Explainer, pixels: Tensor) -> tuple[list[Tensor], Masks]:
    """The head of each image."""
    with torch.no_grad():
        features = explainer.trunk(pixels)
    heads = HeadOfEach(explainer.head, len(pixels))
    return heads.parameters, lambda: heads(features)[..., 0].sigmoid().unflatten(1, explainer.grid)


def everything(explainer: Explainer, pixels: Tensor) -> tuple[list[Tensor], Masks]:
    """All parameters of each image, stacked."""
    trained = {id(p) for p in explainer.trained_parameters()}
    named = {name: p for name, p in explainer.named_parameters() if id(p) in trained}
    stacked = {name: p.detach().expand(len(pixels), *p.shape).clone().requires_grad_() for name, p in named.items()}

    def one(own: dict[str, Tensor], image: Tensor) -> Tensor:
        return functional_call(explainer, own, (image[None],))[0]

    return list(stacked.values()), lambda: vmap(one)(stacked, pixels)


def low_rank(explainer: Explainer, pixels: Tensor, rank: int = 2) -> tuple[list[Tensor], Masks]:
    """The head of each image, and an update of low rank to each linear layer and 1×1 convolution of the trunk."""
    count = len(pixels)
    heads = HeadOfEach(explainer.head, count)
    generator = torch.Generator().manual_seed(0)
    updates: dict[nn.Module, tuple[Tensor, Tensor]] = {}
    for name, part in explainer.trunk.module.named_modules():
        if f"{name}.weight" in explainer.trunk.unused:
            continue
        if isinstance(part, nn.Linear) or (isinstance(part, nn.Conv2d) and part.kernel_size == (1, 1)):
            outs, ins = part.weight.shape[:2]
            down = (torch.randn(ins, rank, generator=generator) / ins**0.5).expand(count, -1, -1).clone()
            updates[part] = (down.requires_grad_(), torch.zeros(count, rank, outs).requires_grad_())

    def add(part: nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
        (given,), (down, up) = inputs, updates[part]
        rows = given.movedim(1, -1) if isinstance(part, nn.Conv2d) else given
        if isinstance(part, nn.Conv2d) and part.stride != (1, 1):
            rows = rows[:, :: part.stride[0], :: part.stride[1]]
        found = (rows.reshape(count, -1, rows.shape[-1]) @ down @ up).view(*rows.shape[:-1], -1)
        return output + (found.movedim(-1, 1) if isinstance(part, nn.Conv2d) else found)

    def masks() -> Tensor:
        with ExitStack() as stack:
            for part in updates:
                stack.callback(part.register_forward_hook(add).remove)
            return heads(explainer.trunk(pixels))[..., 0].sigmoid().unflatten(1, explainer.grid)

    return [*heads.parameters, *(t for pair in updates.values() for t in pair)], masks


WAYS = {"head": head_only, "low-rank": low_rank, "everything": everything}
RATES = {"head": (0.0005, 0.002, 0.01), "low-rank": (0.0005, 0.002), "everything": (0.0001, 0.0005)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=list(WAYS))
    parser.add_argument("--explainer", help="a file; default: the one that comes with the package")
    options = parser.parse_args()
    print("model", "way", "rate", "s/image", "loss", "first", *METRICS, sep="\t")
    for name in options.models:
        net = suffice.load(name, device="cpu")
        loaded = load_explainer(options.explainer or ready_explainer(net), net)
        images = suffice.open_images(f"scenes:validation[:{options.images}]")
        pixels, objective = net.prepare(images), loaded.recipe.objective
        with torch.no_grad():
            targets = net(pixels).argmax(dim=1)
        for way in options.ways:
            for rate in RATES[way]:
                runner, began = Runner(net).variant("gradients"), time.process_time()
                with preserved(net.module, frozen=True):
                    parameters, masks = WAYS[way](loaded.explainer, pixels)
                    optimizer = torch.optim.Adam(parameters, lr=rate)
                    best, kept, first = None, None, 0.0
                    for _ in range(options.steps + 1):
                        made = masks()
                        losses = objective(runner, pixels, targets, made).total
                        slopes = torch.autograd.grad(losses.sum(), parameters)
                        for parameter, slope in zip(parameters, slopes, strict=True):
                            parameter.grad = slope
                        optimizer.step()
                        now, made = losses.detach(), made.detach()
                        if best is None:
                            best, kept, first = now, made, float(now.mean())
                        kept = torch.where((now < best)[:, None, None], made, kept)
                        best = torch.minimum(now, best)
                seconds = (time.process_time() - began) / len(pixels)
                maps = suffice.given_maps(kept, targets, method=way)
                scores = suffice.measure(net, pixels, maps, METRICS, protocol="eea", targets=targets)
                values = [f"{float(scores[metric].values.mean()):.3f}" for metric in METRICS]
                print(
                    name,
                    way,
                    rate,
                    f"{seconds:.3f}",
                    f"{best.mean():.3f}",
                    f"{first:.3f}",
                    *values,
                    sep="\t",
                    flush=True,
                )


if __name__ == "__main__":
    main()
