"""How fast methods are, beside the same methods of other packages on the same model in the same run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from suffice.attribution.call import Forwarders, attribute, explain, forwarder_for
from suffice.attribution.method import find_method
from suffice.attribution.peers import Work, peers
from suffice.perturb.benchmark import bare_forwards_per_second
from suffice.perturb.forwarder import Precision
from suffice.vision import Classifier

# Passes are counted on so many images; the model is not compiled for it.
COUNTED = 4
# Work that takes so many seconds need not be timed again.
LONG = 5.0
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
        precision: Of the model, ours.
        images_per_second: Ours.
        forwards: Inputs put through the model for each image.
        backwards: Of these, with a way back.
        efficiency: Forwards per second inside the method / of the bare model, for methods without gradients. A method
            that leaves out tokens can exceed 1.
        peer: The fastest package that has it too; None where there is none or it is not installed.
        peer_images_per_second: Its speed on the same images.
        speed_up: Ours / theirs.
    """

    method: str
    precision: str
    images_per_second: float
    forwards: float
    backwards: float
    efficiency: float | None
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
    peer_images: int | None = None,
) -> Iterator[MethodTiming]:
    """Time methods and their peers.

    Args:
        net: The classifier.
        names: Methods.
        pixels: Images [N, 3, H, W] in [0, 1].
        batch_size: Inputs per forward, for both sides where the peer has such an option.
        precision: Of the model, for ours; peers have none. Methods that take fp32 only have it.
        compile: Compile the model, for those of ours that allow it; the time that takes does not count.
        rounds: Timings; the best counts, after one to warm up. Long work is timed fewer times.
        options: Of methods, by name, beside those under which peers do the same work.
        peer_images: Time peers on the first so many images only; default: on all.

    Yields:
        One timing for each method.
    """
    pixels = pixels.to(net.device)
    targets = net(pixels).argmax(dim=1)
    ids = [str(number) for number in range(len(pixels))]
    forwarders = Forwarders(net, batch_size, precision, compile)
    bare = bare_forwards_per_second(forwarders.fast)
    for name in names:
        method = find_method(name)
        chosen = {**SAME_WORK.get(method.name, {}), **(options or {}).get(method.name, {})}
        forwarder = forwarders.of(method)
        if "gradients" in method.needs and "relevance" not in method.needs:
            forwarder = forwarder_for(method, net, batch_size, precision, compile and method.needs == ("gradients",))

        def ours() -> None:
            explain(method, net, pixels, targets, ids, 0, forwarder, chosen)  # noqa: B023

        some = pixels[:COUNTED]
        with counting(net.module) as passes:
            attribute(net, some, method, targets[:COUNTED], batch_size=batch_size, **chosen)
        forwards, backwards = (passes[way] / len(some) for way in ("forwards", "backwards"))
        own = len(pixels) / _best(ours, rounds, net.device)
        peer, theirs = None, None
        first = slice(0, peer_images or len(pixels))
        work = Work(net, net.normalize(pixels[first]), targets[first], batch_size, {**method.options, **chosen})
        for package, call in peers(method.name, work).items():
            speed = len(work.inputs) / _best(call, rounds, net.device)
            peer, theirs = (package, speed) if theirs is None or speed > theirs else (peer, theirs)
        yield MethodTiming(
            method=method.name,
            precision=forwarder.precision,
            images_per_second=own,
            forwards=forwards,
            backwards=backwards,
            efficiency=None if "gradients" in method.needs else own * forwards / bare,
            peer=peer,
            peer_images_per_second=theirs,
            speed_up=None if theirs is None else own / theirs,
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


def _best(call: Callable[[], Any], rounds: int, device: torch.device) -> float:
    """Seconds of the fastest call after the first; long ones need fewer rounds, and in the end none but two."""
    seconds: list[float] = []
    while len(seconds) < 2 or (len(seconds) <= rounds and sum(seconds[1:]) < LONG):
        started = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])
