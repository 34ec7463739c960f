"""How fast methods for transformers are, beside the bare model and beside a forward that merely records attention.

    python benchmarks/token_speed.py --images 64 --batch 512 --precision bf16 --compile

A *recorded* forward does no more than capture the attention of all blocks, by the same runner in the same precision;
for CGW1 and CGW2 it also has the backward pass to all of them. Beside it the share of a method's time that this takes.
CGW1 is timed in each of its dtypes; ``float64`` is beside a recorded forward and backward in float64, ``mixed`` and
``float32`` beside one in fp32, and ``tf32`` beside one in TF32. *Efficiency* is the time that the bare model would take
for the same forwards, over the time that was taken; methods with a backward pass have none. Times are the best of some
rounds, in turns, after one that warms up and compiles.

Random pixels stand for images unless ``--photos`` names a folder; what they show changes how many clusters ViT-CX finds
and nothing else. ``--profile`` lists what the GPU and the processor do during one more round, and the share of the time
in which the GPU does anything.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

import suffice
from suffice.attribution import explain, find_method
from suffice.bench.bare import BareModel, seconds_of
from suffice.perturb import Batch, Runner
from suffice.vision.anatomy import record

METHODS = "rollout,cgw2,cgw1,vit-cx,tis"
DTYPES = ("float32", "tf32", "mixed", "float64")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="timm/vit_base_patch16_224", help="with random weights")
    parser.add_argument("--photos", default=None, help="folder of images; default: random pixels")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="of cgw1")
    parser.add_argument("--masks", type=int, default=1024, help="of tis")
    parser.add_argument("--threshold", type=float, default=0.06, help="of vit-cx")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    net = suffice.load(options.model, pretrained=False, device=options.device)
    batch = _batch(net, options)
    bare = BareModel(batch.runner).forwards_per_second()
    about = {"model": net.name, "images": len(batch), "batch": options.batch, "compiled": options.compile}
    print(json.dumps({**about, "precision": options.precision, "bare forwards/s": bare}), flush=True)
    for name in options.methods.split(","):
        if name == "cgw1":
            for dtype in options.dtypes.split(","):
                _timed(batch, name, {"dtype": dtype}, _recorded(batch, name, dtype), bare, options)
            continue
        own = {"vit-cx": {"threshold": options.threshold}, "tis": {"masks": options.masks}}.get(name, {})
        recorded = _recorded(batch, name) if name in ("rollout", "cgw2") else None
        _timed(batch, name, own, recorded, bare, options)


def _batch(net: suffice.Classifier, options: Any) -> Batch:
    if options.photos is None:
        pixels = torch.rand(options.images, 3, *net.size, generator=torch.Generator().manual_seed(0))
    else:
        pixels = net.prepare(suffice.open_images(options.photos)[: options.images])
    pixels = pixels.to(net.device)
    runner = Runner(net, batch_size=options.batch, precision=options.precision, compile=options.compile)
    with torch.no_grad():
        targets = torch.cat([net(part).argmax(dim=1) for part in pixels.split(options.batch)])
    return Batch(net, pixels, targets, [str(number) for number in range(len(pixels))], 0, runner)


def _timed(
    batch: Batch, name: str, own: dict[str, Any], recorded: Callable[[], None] | None, bare: float, options: Any
) -> None:
    """Time one method beside a recorded forward; its line is printed."""
    runner, device = batch.runner, batch.net.device

    def ours() -> None:
        explain(replace(batch), name, **own)

    works = {"ours": ours, **({} if recorded is None else {"recorded": recorded})}
    before, seconds = replace(runner.counters), dict[str, list[float]]()
    for number in range(options.rounds + 1):
        for which, work in works.items():
            asked = runner.counters.forwards
            seconds.setdefault(which, []).append(seconds_of(work, device))
            if which == "recorded":  # not of the method
                runner.counters.forwards = asked
            elif number == 0:
                forwards = (runner.counters.forwards - before.forwards) / len(batch)
    speed = {which: len(batch) / min(each[1:]) for which, each in seconds.items()}
    row = {"method": name, **own, "precision": runner.variant(find_method(name).work).precision}
    row |= {"images/s": round(speed["ours"], 2), "forwards": round(forwards, 2), "of bare": speed["ours"] / bare}
    if "gradients" not in find_method(name).needs:
        row |= {"efficiency": speed["ours"] * forwards / bare}
    if recorded is not None:
        row |= {"recorded/s": round(speed["recorded"], 2), "of recorded": speed["ours"] / speed["recorded"]}
    if device.type == "cuda":
        row |= {"most GiB": round(torch.cuda.max_memory_allocated(device) / 2**30, 1)}
        torch.cuda.reset_peak_memory_stats(device)
    print(json.dumps(row), flush=True)
    if options.profile:
        for which, work in works.items():
            _profile(f"{name} {own or ''} {which}", work, device)


def _recorded(batch: Batch, name: str, dtype: str | None = None) -> Callable[[], None]:
    """A forward that records all attention, with the backward pass to it where the method has one."""
    net, runner = batch.net, batch.runner
    gradients = "gradients" in find_method(name).needs
    if dtype is not None:
        if dtype == "float64":
            net = copy.copy(net)
            net.module = copy.deepcopy(net.module).double()
        precision = "tf32" if dtype == "tf32" else "fp32"
        runner = Runner(net, batch_size=runner.batch_size, precision=precision, counters=runner.counters)
    runner = runner.variant("gradients inside" if gradients else "inside")
    attention, inputs = net.anatomy.attention, net.normalize(batch.pixels)

    def some(rows: slice) -> None:
        with record(runner.module, attention=attention, gradients=gradients) as seen:
            if not gradients:
                runner.logits(inputs[rows])
                return
            logits = runner.logits_with_graph(inputs[rows])
            seen.gradients(logits.gather(1, batch.targets[rows, None]))

    def work() -> None:
        with runner.arithmetic():
            for _ in runner.run(len(inputs), some):
                pass

    return work


def _profile(about: str, work: Callable[[], None], device: torch.device) -> None:
    """List what takes time on the GPU and on the processor, and the share of the time in which the GPU is busy."""
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    on_gpu = device.type == "cuda"
    with torch.profiler.profile(activities=kinds if on_gpu else kinds[:1]) as profile:
        seconds = seconds_of(work, device)
    table = profile.key_averages()
    for by in ("self_device_time_total", "self_cpu_time_total")[0 if on_gpu else 1 :]:
        print(table.table(sort_by=by, row_limit=18, max_name_column_width=90))
    found: dict[str, Any] = {"profiled": about, "seconds": seconds}
    if on_gpu:
        kernels = [one for one in table if one.device_type == torch.autograd.DeviceType.CUDA]
        waits = [one for one in table if one.key in ("cudaStreamSynchronize", "cudaDeviceSynchronize", "aten::item")]
        found |= {"busy": sum(one.self_device_time_total for one in kernels) / 1e6 / seconds}
        found |= {"kernels": sum(one.count for one in kernels), "waits": {one.key: one.count for one in waits}}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
