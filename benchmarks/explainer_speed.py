"""Images a second of eea: many images at once, against one image at a time, in the same run.

python benchmarks/explainer_speed.py --out speed --device cuda

Random weights, which cost what trained ones cost. Two loops over single images, both in fp32:

* ``published``: what the published code does in each step, without its reloading of files: the explained model on the
  whole image (whose answer never changes), an explainer whose weights are all trained, the explained model on the
  masked image, and the metric POS, ten forwards one after the other.
* ``same work``: what eea does, the head alone, for one image. Both look at the masks before, between and after steps.

Their speed is that of the median image, of which the quicker loop has four times as many; the slowest and the fastest
are told beside it.

Efficiency of fine-tuning is the speed of the explained model's forwards with backward inside it, against that of the
same model by itself, at the same batch and precision. Writes DIR/explainer-speed.json and .md.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import suffice
from suffice.attribution import explain
from suffice.attribution.learned import Explainer, ExplainerRecipe, LoadedExplainer
from suffice.perturb import Batch, Runner, enlarge

LR, WEIGHT = 0.002, 50.0


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Time of some work, until the device has done all of it."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


class OneAtATime:
    """Fine-tuning of one image after the other, literally."""

    def __init__(self, net: suffice.Classifier, explainer: Explainer, steps: int) -> None:
        self.net, self.start, self.steps = net, explainer, steps

    def published(self, image: Tensor) -> Tensor:
        """All weights are trained, and every mask is scored by POS."""
        explainer = copy.deepcopy(self.start)
        parameters = explainer.trained_parameters()
        for parameter in parameters:
            parameter.requires_grad_()
        target = int(self.net(image).argmax())
        optimizer = torch.optim.AdamW(parameters, lr=LR)
        best, kept = float("inf"), image
        for _ in range(self.steps):
            with torch.no_grad():
                self.net(image)
            masks = explainer(image)
            self._take_step(optimizer, self._loss(image, target, masks))
            score = self._pos(image, target, masks.detach())
            if score < best:
                best, kept = score, masks.detach()
        return kept

    def same_work(self, image: Tensor) -> Tensor:
        """The head alone is trained, and the mask with the least loss is taken."""
        head = copy.deepcopy(self.start.head).requires_grad_()
        with torch.no_grad():
            features = self.start.trunk(image)
            target = int(self.net(image).argmax())
        optimizer = torch.optim.Adam(head.parameters(), lr=LR)
        best, kept = float("inf"), image
        for step in range(self.steps + 1):
            masks = head(features)[..., 0].sigmoid().unflatten(1, self.start.grid)
            loss = self._loss(image, target, masks)
            if float(loss.detach()) < best:
                best, kept = float(loss.detach()), masks.detach()
            if step < self.steps:
                self._take_step(optimizer, loss)
        return kept

    def _loss(self, image: Tensor, target: int, masks: Tensor) -> Tensor:
        shown = image * enlarge(masks, self.net.size, "bilinear")[:, None]
        logits = self.net.logits(self.net.normalize(shown)).float()
        wanted = torch.tensor([target], device=logits.device)
        size = -torch.log1p(-masks.clamp(max=1 - 1e-6)).mean()
        return torch.nn.functional.cross_entropy(logits, wanted) + WEIGHT * size

    def _take_step(self, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    @torch.no_grad()
    def _pos(self, image: Tensor, target: int, masks: Tensor) -> float:
        order = enlarge(masks, self.net.size).flatten().argsort(descending=True)
        right = []
        for tenth in range(10):
            hidden = image.flatten(2).clone()
            hidden[..., order[: tenth * len(order) // 10]] = 0
            right.append(float(self.net(hidden.view_as(image)).argmax() == target))
        return sum(right)


def bare_steps(runner: Runner, count: int, steps: int) -> Callable[[], None]:
    """So many forwards with backward to the inputs of the explained model by itself."""
    variant = runner.variant("gradients")
    inputs = torch.rand(count, 3, *runner.net.size, device=runner.device)

    def work() -> None:
        with variant.arithmetic():
            for _ in range(steps):
                leaf = inputs.clone().requires_grad_()
                torch.autograd.grad(variant.logits_with_graph(leaf).sum(), leaf)

    return work


def ours(net: suffice.Classifier, loaded: LoadedExplainer, pixels: Tensor, options: Any, precision: str) -> dict:
    """Images a second of both modes in a precision, and the efficiency of fine-tuning."""
    at_once = min(options.images, len(pixels))
    runner = Runner(net, batch_size=at_once, precision=precision, compile=options.compile)
    targets = net(pixels[:1]).argmax(dim=1).expand(len(pixels))

    def maps(some: Tensor, **how: Any) -> Callable[[], object]:
        ids = [str(number) for number in range(len(some))]
        batch = Batch(net, some, targets[: len(some)], ids, 0, runner)
        return lambda: explain(batch, "eea", explainer=loaded, any_weights=True, **how)

    tuned, quick = maps(pixels[:at_once], steps=options.steps), maps(pixels, mode="pretrained")
    bare = bare_steps(runner, at_once, 2)
    for work in (maps(pixels[:at_once], steps=1), quick, bare):
        work()
    alone = at_once * 2 / min(seconds_of(bare, net.device) for _ in range(3))
    fine_tuned = min(seconds_of(tuned, net.device) for _ in range(options.rounds))
    pretrained = min(seconds_of(quick, net.device) for _ in range(3))
    return {
        "precision": precision,
        "fine_tuned_images_per_second": at_once / fine_tuned,
        "pretrained_images_per_second": len(pixels) / pretrained,
        "bare_steps_per_second": alone,
        "efficiency": at_once * options.steps / fine_tuned / alone,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="timm/vit_base_patch16_224")
    parser.add_argument("--images", type=int, default=128, help="fine-tuned at once")
    parser.add_argument("--pretrained-images", type=int, default=2048)
    parser.add_argument("--single-images", type=int, default=4, help="for the published loop")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "tf32", "bf16", "fp16"])
    parser.add_argument("--compile", action="store_true", help="compile the explained model, for many at once")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("speed"))
    options = parser.parse_args()

    net = suffice.load(options.model, pretrained=False, device=options.device)
    net.module.eval().requires_grad_(False)
    facts = {"explained": {"name": net.name, "size": list(net.size)}}
    recipe = ExplainerRecipe(mask_weight=WEIGHT)
    loaded = LoadedExplainer(Explainer(net), recipe, facts, torch.zeros(0, dtype=torch.int64))
    pixels = torch.rand(max(options.images, options.pretrained_images), 3, *net.size, device=options.device)

    single = OneAtATime(net, loaded.explainer, options.steps)
    short = OneAtATime(net, loaded.explainer, 1)
    found: dict[str, Any] = {
        "model": net.name,
        "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device,
        "torch": torch.__version__,
        "steps": options.steps,
        "images_at_once": options.images,
        "compiled": options.compile,
        "one_at_a_time_images_per_second": {},
        "one_at_a_time_slowest_and_fastest": {},
        "many_at_once": [],
    }
    for name, work, warm_up, times in (
        ("published", single.published, short.published, 1),
        ("same work", single.same_work, short.same_work, 4),
    ):
        warm_up(pixels[:1])
        some = pixels[: times * options.single_images].split(1)
        rates = sorted(1 / seconds_of(lambda w=work, one=one: w(one), net.device) for one in some)
        found["one_at_a_time_images_per_second"][name] = statistics.median(rates)
        found["one_at_a_time_slowest_and_fastest"][name] = [rates[0], rates[-1]]
    for precision in options.precisions:
        found["many_at_once"].append(ours(net, loaded, pixels, options, precision))
        write(found, options.out)  # what is measured is kept, whatever comes after
    print(json.dumps(found, indent=2))


def write(found: dict[str, Any], out: Path) -> None:
    """As JSON and as a table."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "explainer-speed.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    alone = found["one_at_a_time_images_per_second"]
    lines = [
        "| precision | fine-tuned, images/s | efficiency | against same work one by one | against published loop "
        "| pretrained, images/s |",
        "|---|---|---|---|---|---|",
    ]
    for row in found["many_at_once"]:
        fast = row["fine_tuned_images_per_second"]
        lines.append(
            f"| {row['precision']} | {fast:.1f} | {row['efficiency']:.2f} | {fast / alone['same work']:.1f} × "
            f"| {fast / alone['published']:.1f} × | {row['pretrained_images_per_second']:,.0f} |"
        )
    (out / "explainer-speed.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
