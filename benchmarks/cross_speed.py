"""How fast cross-testing asks its questions, against the bare models: the curves of all maps on all models.

    python benchmarks/cross_speed.py --images 500 --batch 1024 --precision fp16 --compile

What maps show does not change how long curves take, so they are random, and making them is not counted. Efficiency is
the time that the bare models would take for the same forwards, over the time that cross-testing takes, with decoding,
most of which goes on meanwhile. ``--trace`` lists what the GPU does when all is done once more, and for how much of
that time it does anything. The last lines have the hours that the curves of thirteen models on 5,000 images would take
at these rates; the maps come on top of it.
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
from suffice.perturb import Runner, keep_freed_memory
from suffice.vision.stream import stream

MODELS = ("resnet50_v1", "mobilenet_v2", "efficientnet_lite0", "vit_tiny")
LARGE = 13**2 * 5000  # sets of curves: every image in the order of each map, to every model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--maps", type=int, nargs="+", default=[4, 13], help="shown to each model; each is timed")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    keep_freed_memory()  # as the command line does

    photographs = real_models.photographs()[: options.images]
    names = options.models.split(",")
    maps = [
        torch.rand(len(photographs), 28, 28, generator=torch.Generator().manual_seed(i))
        for i in range(max(options.maps))
    ]
    rows = [row for name in names for row in tested(name, photographs, maps, options)]
    for count in options.maps:
        some = [row for row in rows if row["maps"] == count]
        seconds, bare = (sum(row[key] for row in some) for key in ("seconds", "bare seconds"))
        hours = seconds / (len(photographs) * len(names) * count) * LARGE / 3600
        whole = {"maps": count, "seconds": seconds, "efficiency": round(bare / seconds, 3)}
        print(json.dumps({"images": len(photographs), "models": len(names), **whole, "hours for 13 models": hours}))


def tested(name: str, photographs: suffice.Images, maps: list[torch.Tensor], options: Any) -> list[dict[str, Any]]:
    """Show one model so many maps; the line of each number of them is printed."""
    net = getattr(real_models, name)(options.device)
    runner = Runner(net, batch_size=options.batch, precision=options.precision, compile=options.compile)
    targets = net.predict(photographs).targets.cpu()

    def show(images: int, count: int) -> None:
        shown_to(
            net, photographs[:images], [one[:images] for one in maps[:count]], [targets[:images]] * count,
            ["insertion", "deletion"], "jiang", seed=0, runner=runner, steps=options.steps,
        )  # fmt: skip

    show(8, 2)  # what is compiled but once
    bare = BareModel(runner)
    waited = seconds_of(lambda: decode(net, photographs, runner), net.device)
    rows = []
    for count in options.maps:
        before, asked = bare.forwards_per_second(rounds=2), runner.counters.forwards
        seconds = seconds_of(lambda count=count: show(len(photographs), count), net.device)
        forwards = runner.counters.forwards - asked
        speed = (before + bare.forwards_per_second(rounds=2)) / 2
        row = {"model": net.name, "maps": count, "forwards": forwards, "seconds": seconds, "bare forwards/s": speed}
        row |= {"bare seconds": forwards / speed, "efficiency": forwards / speed / seconds, "decoding alone": waited}
        print(json.dumps(row), flush=True)
        rows.append(row)
    if options.trace:
        trace(lambda: show(len(photographs), options.maps[0]), net.device)
    return rows


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
