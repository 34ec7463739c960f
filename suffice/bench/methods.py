"""How fast methods are, beside the same methods of other packages on the same model in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from suffice.attribution import explain, find_method
from suffice.bench.bare import BareModel, seconds_of
from suffice.bench.peers import Work, peers
from suffice.perturb import Batch, Runner
from suffice.perturb.runner import Precision
from suffice.vision import Classifier

OURS = "suffice"
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
    """Speed of one method, ours and that of its peers, of which the fastest is named.

    Efficiency is that of forwards alone: None for methods with gradients. One that leaves out tokens can exceed 1.
    """

    method: str
    precision: str  # of our model
    images_per_second: float
    forwards: float  # inputs put through the model for each image
    backwards: float  # of these, with a backward pass
    efficiency: float | None  # forwards per second inside the method / of the bare model
    peer: str | None  # None where no package has it, or none is installed
    peer_images_per_second: float | None  # on the same images
    speed_up: float | None  # ours / theirs
    speed_ups: Mapping[str, float]  # the same beside each peer, by its name


def benchmark_methods(
    net: Classifier,
    names: Sequence[str],
    pixels: Tensor,
    *,
    batch_size: int = 32,
    precision: Precision = "fp32",
    compile: bool = False,
    rounds: int = 3,
    options: Mapping[str, Mapping[str, Any]] | None = None,
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
    runner = Runner(net, batch_size=batch_size, precision=precision, compile=compile)
    ids = [str(number) for number in range(len(pixels))]
    batch = Batch(net, pixels, targets, ids, 0, runner)
    bare = BareModel(runner).forwards_per_second()
    for name in names:
        method = find_method(name)
        chosen = {**SAME_WORK.get(method.name, {}), **(options or {}).get(method.name, {})}

        def ours() -> None:
            explain(replace(batch, runner=runner), method, **chosen)  # noqa: B023

        first = slice(0, peer_images or len(pixels))
        work = Work(net, net.normalize(pixels[first]), targets[first], batch_size, {**method.options, **chosen})
        before = replace(runner.counters)
        seconds = _in_turns({OURS: ours, **peers(method.name, work)}, rounds, net.device)
        own_seconds = seconds.pop(OURS)
        done = len(own_seconds) * len(pixels)
        forwards = (runner.counters.forwards - before.forwards) / done
        own = len(pixels) / min(own_seconds[1:])
        speeds = {package: len(work.inputs) / min(each[1:]) for package, each in seconds.items()}
        theirs, peer = max(((speed, package) for package, speed in speeds.items()), default=(None, None))
        yield MethodTiming(
            method=method.name,
            precision=runner.variant(method.work).precision,
            images_per_second=own,
            forwards=forwards,
            backwards=(runner.counters.backwards - before.backwards) / done,
            efficiency=None if "gradients" in method.needs else own * forwards / bare,
            peer=peer,
            peer_images_per_second=theirs,
            speed_up=None if theirs is None else own / theirs,
            speed_ups={package: own / speed for package, speed in speeds.items()},
        )


def _in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int, device: torch.device) -> dict[str, list[float]]:
    """Seconds of each call, one after the other in turns, as machines change; the first of each is to warm up.

    Long ones need fewer rounds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    while True:
        wanted = [
            name for name, each in seconds.items() if len(each) < 2 or (len(each) <= rounds and sum(each[1:]) < LONG)
        ]
        if not wanted:
            return seconds
        for name in wanted:
            seconds[name].append(seconds_of(calls[name], device))
