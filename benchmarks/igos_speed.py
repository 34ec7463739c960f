"""Seconds of iGOS++ an image: many images at once, against one image at a time.

The slow side does what the published loop does: for each image alone, four integrated scores an iteration in four calls
that keep their graphs, then back-tracking one step after the other, with the loss before the step computed again and
noise drawn anew in every call.

How often a line search shortens its step depends on the model, and with noise drawn anew also on luck, so the number of
inputs is printed beside the time: ``inputs_per_second`` is the gain by batches alone. Random weights say little about
the number of trials; with ``--real`` both sides work on a trained model.

*Efficiency* is the time that the bare model would take for the same inputs, with and without gradient, over the time
that was taken. ``--twin-images 0`` leaves the slow side out. What could make the bare model faster is tried without
touching the package: ``--cudnn-benchmark``, and ``--inductor`` with settings of ``torch._inductor.config``; with
``--profile`` the kernels of one forward and backward of the bare model are listed. ``--variants`` tries several such
settings one after the other, a line of JSON for the bare model with each, and goes on with the one that should be
fastest for iGOS++ (1,200 inputs with gradient and 2,800 without).

python benchmarks/igos_speed.py --images 64 --twin-images 4 --device cuda
python benchmarks/igos_speed.py --real --images 128 --batch 640 --precision fp16 --compile --variants usual cudnn
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch._inductor import config as inductor

import suffice
from benchmarks.real_models import photographs, resnet50_v1, sharpened
from suffice.attribution.igos.objective import BilateralVariation
from suffice.bench.bare import BareModel
from suffice.perturb import Counters, Runner, enlarge, make_baseline
from suffice.vision.units import imagenet_unit


class OneAtATime:
    """iGOS++ of one image, one call after the other."""

    def __init__(self, net: suffice.Classifier, pixels: Tensor, counters: Counters, *, steps: int, size: int) -> None:
        self.net, self.steps, self.size = net, steps, size
        self.counters = counters
        self.x = net.normalize(pixels)
        self.b = net.normalize(make_baseline("blur", pixels, mean=net.mean))
        with torch.no_grad():
            self.target = int(net(pixels).argmax())
        self.variation = BilateralVariation(pixels, "asymmetric")
        self.noise = 0.2 * torch.tensor(imagenet_unit(net.std), device=pixels.device)[:, None, None]
        self.fractions = torch.arange(1, steps + 1, device=pixels.device).view(-1, 1, 1, 1) / steps

    def integrated(self, image: Tensor, other: Tensor, mask: Tensor) -> Tensor:
        part = self.fractions * mask
        inputs = image * part + other * (1 - part)
        self.counters.forwards += len(inputs)
        self.counters.backwards += len(inputs) * torch.is_grad_enabled()
        scores = self.net.scores(self.net.logits(inputs + self.noise * torch.randn_like(inputs)))
        return scores[:, self.target].mean()

    def enlarged(self, mask: Tensor) -> Tensor:
        return enlarge(mask, self.net.size, "bilinear-corners")

    def penalty(self, mask: Tensor) -> Tensor:
        index = torch.zeros(1, dtype=torch.long, device=mask.device)
        return ((1 - mask).abs().mean() + 20 * self.variation(index, mask)).sum()

    def terms(self, d: Tensor, i: Tensor) -> list[Callable[[], Tensor]]:
        both = self.enlarged(d) * self.enlarged(i)
        return [
            lambda: self.integrated(self.x, self.b, both),
            lambda: -self.integrated(self.b, self.x, both),
            lambda: self.integrated(self.x, self.b, self.enlarged(d)),
            lambda: -self.integrated(self.b, self.x, self.enlarged(i)),
        ]

    @torch.no_grad()
    def loss(self, d: Tensor, i: Tensor) -> float:
        return float(sum(term() for term in self.terms(d, i)) + self.penalty(d * i))

    def run(self, iterations: int) -> Tensor:
        masks = [torch.ones(1, self.size, self.size, device=self.x.device) for _ in range(2)]
        for _ in range(iterations):
            leaves = [m.clone().requires_grad_() for m in masks]
            gradients = list(torch.autograd.grad(self.penalty(leaves[0] * leaves[1]), leaves))
            for term in self.terms(*leaves):
                found = torch.autograd.grad(term() / 2, leaves, retain_graph=True, allow_unused=True)
                gradients = [g if f is None else g + f for g, f in zip(gradients, found, strict=True)]
            squared = float(sum(g.square().sum() for g in gradients))
            before, step = self.loss(*masks), 1000.0
            while step >= 1e-5:
                tried = [(m - step * g).clamp(0, 1) for m, g in zip(masks, gradients, strict=True)]
                if self.loss(*tried) <= before - step * 1e-4 * squared:
                    break
                step *= 0.2
            masks = [(m - step * g).clamp(0, 1) for m, g in zip(masks, gradients, strict=True)]
        return 1 - masks[0] * masks[1]


def measure(device: torch.device, counters: Counters, images: int, work: Callable[[], object]) -> dict[str, float]:
    """Time of some work, and how many inputs the model got for it, by the counters that the work fills."""
    before = replace(counters)
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    forwards, backwards = counters.forwards - before.forwards, counters.backwards - before.backwards
    return {
        "images": images,
        "seconds_per_image": seconds / images,
        "inputs_with_gradient_per_image": backwards / images,
        "inputs_without_gradient_per_image": (forwards - backwards) / images,
        "inputs_per_second": forwards / seconds,
    }


class BareGradient(BareModel):
    """The module of a runner on one batch of inputs, forward and back to them."""

    def run(self, forwards: int = 1) -> None:
        leaf = self.inputs.detach().requires_grad_()
        with torch.enable_grad(), self.runner.arithmetic():
            for _ in range(forwards):
                torch.autograd.grad(self._forward(leaf).float().logsumexp(dim=1).sum(), leaf)


# What is asked of a runner, of cuDNN, and of torch._inductor.config.
VARIANTS: dict[str, tuple[dict[str, Any], bool, dict[str, Any]]] = {
    "usual": ({}, False, {}),
    "contiguous": ({"channels_last": False}, False, {}),
    "cudnn": ({}, True, {}),
    "graphs": ({}, False, {"triton.cudagraphs": True}),
    "products": ({}, False, {"conv_1x1_as_mm": True, "max_autotune_gemm": True}),
    "autotuned": ({}, True, {"max_autotune": True}),
}
IGOS_INPUTS = {"gradients_per_second": 1200, "forwards_per_second": 2800}


@contextmanager
def variant(name: str) -> Iterator[dict[str, Any]]:
    """Within it, torch is set as a variant wants; gives what to ask of a runner."""
    asked, by_timing, settings = VARIANTS[name]
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = before or by_timing
    try:
        with inductor.patch(settings):
            yield asked
    finally:
        torch.backends.cudnn.benchmark = before


def fastest(names: list[str], batches: list[int], seconds: float, made: Callable[..., Runner]) -> tuple[str, int]:
    """Print how fast the bare model is in each variant and batch size; the two best for iGOS++."""
    expected = {}
    for name, batch in itertools.product(names, batches):
        started = time.perf_counter()
        line: dict[str, Any] = {"variant": name, "batch": batch}
        try:
            with variant(name) as asked:
                runner = made(batch, **asked).variant("gradients")
                kinds = {"forwards_per_second": BareModel, "gradients_per_second": BareGradient}
                line |= {key: kind(runner).forwards_per_second(seconds=seconds) for key, kind in kinds.items()}
            expected[name, batch] = sum(count / line[key] for key, count in IGOS_INPUTS.items())
            line["igos_seconds_at_bare_speed"] = expected[name, batch]
        except Exception as error:  # one that does not work must not end the others
            line["error"] = f"{type(error).__name__}: {error}"[:500]
        line["seconds_in_all"] = time.perf_counter() - started
        print(json.dumps(line), flush=True)
    if not expected:
        raise SystemExit("No variant worked.")
    return min(expected, key=lambda key: expected[key])


def kernels(model: BareGradient) -> str:
    """Where the time of one forward and backward goes."""
    from torch.profiler import ProfilerActivity, profile

    on_gpu = model.runner.device.type == "cuda"
    model.run()
    with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]) as seen:
        model.run()
    by = "self_cuda_time_total" if on_gpu else "self_cpu_time_total"
    return seen.key_averages().table(sort_by=by, row_limit=30, max_name_column_width=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="timm/resnet50", help="with random weights, made sure of random pictures")
    parser.add_argument("--real", action="store_true", help="the original ResNet-50 with its weights, on photographs")
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--twin-images", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--size", type=int, default=28)
    parser.add_argument("--batch", type=int, default=None, help="inputs per forward; default by device")
    parser.add_argument("--precision", default="fp32", help="of ours: fp32, tf32, bf16 or fp16; the other's is fp32")
    parser.add_argument("--compile", action="store_true", help="ours; compiling is not timed")
    parser.add_argument("--cudnn-benchmark", action="store_true", help="let cuDNN choose convolutions by timing them")
    parser.add_argument("--inductor", nargs="*", default=[], help="settings to switch on, such as max_autotune")
    parser.add_argument("--variants", nargs="*", default=[], choices=list(VARIANTS), help="to try on the bare model")
    parser.add_argument("--batches", nargs="*", type=int, default=[], help="to try them with; default: --batch")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each timing of a variant")
    parser.add_argument("--profile", action="store_true", help="list the kernels of the bare model")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = options.cudnn_benchmark
    for name in options.inductor:
        setattr(inductor, name, True)

    if options.real:
        net = resnet50_v1(options.device)
        pixels = net.prepare(photographs()[: options.images])
    else:
        coarse = torch.rand(options.images, 3, 9, 9, generator=torch.Generator().manual_seed(0))
        pixels = torch.nn.functional.interpolate(coarse, 224, mode="bicubic").clamp(0, 1).to(options.device)
        net = sharpened(options.model, options.device, pixels)
    net.module.eval().requires_grad_(False)

    def made(batch: int | None, **asked: Any) -> Runner:
        return Runner(net, batch_size=batch or "auto", precision=options.precision, compile=options.compile, **asked)

    chosen, asked = "usual", dict[str, Any]()
    with ExitStack() as stack:
        if options.variants:
            batches = options.batches or [options.batch or 128]
            chosen, options.batch = fastest(options.variants, batches, options.seconds, made)
            asked = stack.enter_context(variant(chosen))
        time_igos(options, net, pixels, made(options.batch, **asked), chosen)


def time_igos(options: argparse.Namespace, net: suffice.Classifier, pixels: Tensor, runner: Runner, name: str) -> None:
    """Time iGOS++ by a runner, and one image at a time, and print both."""
    slow = Counters()

    def ours(count: int = options.images, iterations: int = options.iterations) -> Tensor:
        return suffice.attribute(
            net,
            pixels[:count],
            "igos++",
            steps=options.steps,
            iterations=iterations,
            size=options.size,
            btv="asymmetric",
            runner=runner,
        ).maps

    def theirs(iterations: int = options.iterations) -> None:
        torch.manual_seed(0)
        for index in range(options.twin_images):
            one = OneAtATime(net, pixels[index : index + 1], slow, steps=options.steps, size=options.size)
            one.run(iterations)

    if options.device != "cpu" or options.compile:  # kernels are chosen and memory is taken at first use
        ours(iterations=1)
        theirs(iterations=1)
    gradients = runner.variant("gradients")
    bare = {
        "forwards_per_second": BareModel(gradients).forwards_per_second(),
        "gradients_per_second": BareGradient(gradients).forwards_per_second(),
    }
    if options.profile:
        print(kernels(BareGradient(gradients)))
    ours_now = measure(net.device, runner.counters, options.images, ours)
    at_bare_speed = (
        ours_now["inputs_with_gradient_per_image"] / bare["gradients_per_second"]
        + ours_now["inputs_without_gradient_per_image"] / bare["forwards_per_second"]
    )
    found: dict[str, Any] = {
        "model": net.name,
        "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device,
        "settings": {"variant": name}
        | {
            key: getattr(options, key)
            for key in ("iterations", "steps", "size", "batch", "precision", "compile", "cudnn_benchmark", "inductor")
        },
        "bare": bare,
        "many_at_once": ours_now,
        "images_per_second": 1 / ours_now["seconds_per_image"],
        "efficiency": at_bare_speed / ours_now["seconds_per_image"],
    }
    if options.twin_images:
        found["one_at_a_time"] = measure(net.device, slow, options.twin_images, theirs)
        found["times_faster"] = found["one_at_a_time"]["seconds_per_image"] / ours_now["seconds_per_image"]
    print(json.dumps(found, indent=None if options.variants else 2))


if __name__ == "__main__":
    main()
