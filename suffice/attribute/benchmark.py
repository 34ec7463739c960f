"""How fast methods are, beside the same methods of other packages on the same model in the same run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from suffice.attribute.call import attribute
from suffice.attribute.method import find_method
from suffice.perturb.forwarder import Precision
from suffice.vision import Classifier

# Options under which both sides do the same work.
SAME_WORK: dict[str, dict[str, Any]] = {
    "integrated-gradients": {"steps": 50},
    "smoothgrad": {"samples": 50},
    "occlusion": {"window": 32, "stride": 16},
}


@dataclass(frozen=True)
class MethodTiming:
    """Speed of one method.

    Attributes:
        method: Its name.
        images_per_second: Ours.
        forwards: Inputs put through the model for each image.
        backwards: Of these, with a way back.
        peer: The package compared with; None where there is none or it is not installed.
        peer_images_per_second: Its speed on the same images.
        speed_up: Ours / theirs.
    """

    method: str
    images_per_second: float
    forwards: float
    backwards: float
    peer: str | None
    peer_images_per_second: float | None
    speed_up: float | None


def benchmark_methods(
    net: Classifier,
    names: Sequence[str],
    pixels: Tensor,
    *,
    batch_size: int = 32,
    precision: Precision = "fp32",
    compile: bool = False,
    rounds: int = 3,
    options: dict[str, dict[str, Any]] | None = None,
) -> Iterator[MethodTiming]:
    """Time methods and their peers.

    Args:
        net: The classifier.
        names: Methods.
        pixels: Images [N, 3, H, W] in [0, 1].
        batch_size: Inputs per forward, for both sides where the peer has such an option.
        precision: Of the model, for our methods without gradients; peers have none.
        compile: Compile the model, likewise.
        rounds: Timings; the best counts, after one to warm up.
        options: Of methods, by name, beside those under which peers do the same work.

    Yields:
        One timing for each method.
    """
    pixels = pixels.to(net.device)
    targets = net(pixels).argmax(dim=1)
    for name in names:
        method = find_method(name)
        chosen = {**SAME_WORK.get(method.name, {}), **(options or {}).get(method.name, {})}
        fast: dict[str, Any] = {} if "gradients" in method.needs else {"precision": precision, "compile": compile}

        def ours(name: str = method.name, chosen: dict[str, Any] = chosen, fast: dict[str, Any] = fast) -> None:
            attribute(net, pixels, name, targets, batch_size=batch_size, **fast, **chosen)

        with counting(net.module) as passes:
            attribute(net, pixels, method, targets, batch_size=batch_size, **chosen)
        own = len(pixels) / _best(ours, rounds, net.device)
        peer = _peer(method.name, net, pixels, targets, batch_size, chosen)
        theirs = None if peer is None else len(pixels) / _best(peer[1], rounds, net.device)
        yield MethodTiming(
            method.name,
            own,
            passes["forwards"] / len(pixels),
            passes["backwards"] / len(pixels),
            None if peer is None else peer[0],
            theirs,
            None if theirs is None else own / theirs,
        )


@contextlib.contextmanager
def counting(module: nn.Module) -> Iterator[dict[str, int]]:
    """Count the inputs that go through a module, and those whose gradients come back."""
    passes = {"forwards": 0, "backwards": 0}

    def note(_module: nn.Module, _inputs: Any, output: Any) -> None:
        found = output if isinstance(output, Tensor) else next(iter(getattr(output, "values", lambda: output)()))
        passes["forwards"] += len(found)
        if found.requires_grad:

            def back(gradient: Tensor) -> None:
                passes["backwards"] += len(gradient)

            found.register_hook(back)

    handle = module.register_forward_hook(note)
    try:
        yield passes
    finally:
        handle.remove()


def _peer(
    name: str, net: Classifier, pixels: Tensor, targets: Tensor, batch_size: int, options: dict[str, Any]
) -> tuple[str, Callable[[], Any]] | None:
    """A package with the same method, and a call that does the same work with it."""
    inputs, count = net.normalise(pixels), len(pixels)
    if find_spec("captum") and name in ("gradient", "integrated-gradients", "smoothgrad", "occlusion"):
        import captum.attr as captum

        leaf = inputs.clone().requires_grad_()
        if name == "gradient":
            return "captum", lambda: captum.Saliency(net.logits).attribute(leaf, targets)
        if name == "integrated-gradients":
            algorithm = captum.IntegratedGradients(net.logits)
            steps = {"n_steps": options["steps"], "internal_batch_size": max(batch_size, count)}
            return "captum", lambda: algorithm.attribute(leaf, target=targets, **steps)
        if name == "smoothgrad":
            tunnel = captum.NoiseTunnel(captum.Saliency(net.logits))
            at_once = {"nt_samples": options["samples"], "nt_samples_batch_size": max(1, batch_size // count)}
            return "captum", lambda: tunnel.attribute(leaf, target=targets, stdevs=0.15, **at_once)
        window, stride = (3, options["window"], options["window"]), (3, options["stride"], options["stride"])
        at_once = {"perturbations_per_eval": max(1, batch_size // count)}
        occlusion = captum.Occlusion(lambda x: net.scores(net.logits(x)))
        return "captum", lambda: occlusion.attribute(inputs, window, stride, target=targets, **at_once)
    if find_spec("torchcam") and name in ("grad-cam", "score-cam") and net.anatomy.kind == "cnn":
        import torchcam.methods as torchcam

        kind: Any = torchcam.GradCAM if name == "grad-cam" else torchcam.ScoreCAM
        layer, more = net.anatomy.target_layer, {} if name == "grad-cam" else {"batch_size": batch_size}

        def cam() -> None:
            with net.evaluating(), kind(net.module, target_layer=layer, **more) as extractor:
                scores = net.module(inputs.clone().requires_grad_())
                extractor(targets.tolist(), scores, normalized=False)

        return "torchcam", cam
    return None


def _best(call: Callable[[], Any], rounds: int, device: torch.device) -> float:
    seconds = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])
