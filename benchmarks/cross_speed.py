"""How fast cross-testing asks its questions, against the bare models: the curves of all maps on all models.

    python benchmarks/cross_speed.py --images 500 --batch 1024 --precision fp16 --compile

What maps show does not change how long curves take, so they are random, and making them is not counted. Efficiency is
the time that the bare models would take for the same forwards, over the time that cross-testing takes, with decoding,
most of which goes on meanwhile. ``--trace`` lists what the GPU does when all is done once more, and for how much of that
time it does anything. The last line has the hours that the curves of thirteen models on 5,000 images would take at this
rate; the maps come on top of it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import torch

import suffice
from benchmarks import real_models
from suffice.bench.bare import BareModel, seconds_of
from suffice.compare.cross import shown_to
from suffice.perturb import Runner
from suffice.vision.stream import stream

MODELS = ("resnet50_v1", "mobilenet_v2", "efficientnet_lite0", "vit_tiny")
LARGE = 13**2 * 5000  # curves of thirteen models: every image in the order of each map, to every model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--maps", type=int, default=4, help="shown to each model")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    photographs = real_models.photographs()[: options.images]
    names = options.models.split(",")
    maps = [
        torch.rand(len(photographs), 28, 28, generator=torch.Generator().manual_seed(i)) for i in range(options.maps)
    ]
    rows = [tested(name, photographs, maps, options) for name in names]
    whole: dict[str, Any] = {key: sum(row[key] for row in rows) for key in ("forwards", "seconds", "bare seconds")}
    whole |= {"efficiency": round(whole["bare seconds"] / whole["seconds"], 3)}
    whole |= {
        "hours for 13 models, 5,000 images": whole["seconds"]
        / (len(photographs) * len(names) * len(maps))
        * LARGE
        / 3600
    }
    print(json.dumps({"images": len(photographs), "models": len(names), **whole}))


def tested(name: str, photographs: suffice.Images, maps: list[torch.Tensor], options: Any) -> dict[str, Any]:
    """Show one model all maps; its line is printed."""
    net = getattr(real_models, name)(options.device)
    runner = Runner(net, batch_size=options.batch, precision=options.precision, compile=options.compile)
    targets = net.predict(photographs).targets.cpu()

    def show(count: int) -> None:
        shown_to(
            net, photographs[:count], [one[:count] for one in maps], [targets[:count]] * len(maps),
            ["insertion", "deletion"], "jiang", seed=0, runner=runner, steps=options.steps,
        )  # fmt: skip

    show(8)  # what is compiled but once
    bare = BareModel(runner)
    before = bare.forwards_per_second(rounds=2)
    asked = runner.counters.forwards
    waited = seconds_of(lambda: decode(net, photographs, runner), net.device)
    seconds = seconds_of(lambda: show(len(photographs)), net.device)
    forwards = runner.counters.forwards - asked
    speed = (before + bare.forwards_per_second(rounds=2)) / 2
    row = {"model": net.name, "forwards": forwards, "seconds": seconds, "bare forwards/s": speed}
    row |= {"bare seconds": forwards / speed, "efficiency": forwards / speed / seconds, "decoding alone": waited}
    print(json.dumps(row), flush=True)
    if options.trace:
        trace(lambda: show(len(photographs)), net.device)
    return row


def decode(net: suffice.Classifier, photographs: suffice.Images, runner: Runner) -> None:
    """Decode photographs as fast as it goes, and do nothing with them."""
    for _ in stream(photographs, net.geometry, batch_size=runner.batch_size):
        pass


def trace(work: Callable[[], None], device: torch.device) -> None:
    """List what takes the GPU's time, and the share of the time in which it does anything."""
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds if device.type == "cuda" else kinds[:1]) as profile:
        seconds = seconds_of(work, device)
    table = profile.key_averages()
    by = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    print(table.table(sort_by=by, row_limit=20, max_name_column_width=70))
    print(json.dumps({"traced seconds": seconds, "busy": sum(getattr(one, by) for one in table) / 1e6 / seconds}))


if __name__ == "__main__":
    main()
