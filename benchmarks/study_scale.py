"""What a study costs beside what it measures: time and memory of N and 10 N images, and the same by functions alone.

python benchmarks/study_scale.py --model zoo/resnet --images scenes:test --count 100
python benchmarks/study_scale.py --model benchmarks.real_models:resnet50_v1 --images PHOTOS --count 1000 --only overhead
    --device cuda --precision fp16 --batch 1024 --grid 7 --max-size 3 --deletion-orders 0 --steps 56 --rounds 2
"""

from __future__ import annotations

import argparse
import cProfile
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import torch

from suffice import Runner, Study, attribute, find_evidence, load, measure, open_images


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="zoo/resnet")
    parser.add_argument("--random-weights", action="store_true")
    parser.add_argument("--size", type=int, default=None, help="pixels a side that the model sees; default: its own")
    parser.add_argument("--images", default="scenes:test")
    parser.add_argument("--count", type=int, default=100, help="N")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--block", type=int, default=None, help="images of a shard; default: 512 with a GPU, else 16")
    parser.add_argument("--grid", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=4, help="an even number is fair to both ways")
    parser.add_argument("--max-size", type=int, default=18, help="cells of an explanation; less is quicker")
    parser.add_argument("--deletion-orders", type=int, default=4, help="of searches from the top; 0 is quicker")
    parser.add_argument("--profile", type=Path, default=None, help="folder for a profile of both ways, for pstats")
    parser.add_argument("--only", choices=("growth", "overhead"), default=None)
    parser.add_argument("--run-here", type=int, nargs=2, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run_here is not None:
        print(json.dumps(cost_here(options, *options.run_here)))
        return
    if options.only != "overhead":
        print(json.dumps({"growth": growth(options)}), flush=True)
    if options.only != "growth":
        print(json.dumps({"overhead": overhead(options)}), flush=True)
    if options.profile is not None:
        profile(options)


def growth(options: argparse.Namespace) -> dict[str, Any]:
    """Time and peak memory of 10 N images, and of every tenth of them, each in a process of its own."""
    few, many = in_process(options.count, 10), in_process(10 * options.count, 1)
    ratios = {name: round(many[name] / few[name], 3) for name in ("seconds", "CPU seconds", "peak RSS in MB")}
    return {"N": few, "10 N": many, "ratio": ratios}


def in_process(count: int, every: int) -> dict[str, float]:
    again = [sys.executable, *sys.argv, "--run-here", str(count), str(every)]
    done = subprocess.run(again, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def cost_here(options: argparse.Namespace, count: int, every: int) -> dict[str, float]:
    by_study(options, min(16, count))  # what is imported and compiled but once
    seconds, busy = time.perf_counter(), time.process_time()
    by_study(options, count, every)
    return {
        "images": count,
        "seconds": round(time.perf_counter() - seconds, 2),
        "CPU seconds": round(time.process_time() - busy, 2),
        "peak RSS in MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def overhead(options: argparse.Namespace) -> dict[str, Any]:
    """The study over the functions that it calls, one after the other, several times; 1.03 is 3 % more.

    Which of the two goes first changes from round to round: the second finds files and memory as the first left them.
    Of an odd number of rounds, functions go first in one more.
    """
    ways = (by_functions, by_study)
    for way in ways:
        way(options, min(16, options.count))
    rounds = []
    for number in range(options.rounds):
        taken = {way: cost_of(way, options) for way in (ways if number % 2 == 0 else ways[::-1])}
        (direct, direct_busy), (study, study_busy) = (taken[way] for way in ways)
        more = {"CPU seconds more": study_busy - direct_busy, "CPU ratio": study_busy / direct_busy}
        times = {"functions": direct, "study": study, "seconds more": study - direct, "ratio": study / direct}
        rounds.append({**times, **more})
        shown = {name: round(value, 3) for name, value in rounds[-1].items()}
        print(json.dumps({"first": "study" if number % 2 else "functions", **shown}), flush=True)
    medians = {name: round(median(one[name] for one in rounds), 3) for name in rounds[0]}
    means = {
        f"{name}, mean and standard error": mean_and_error([one[name] for one in rounds])
        for name in ("seconds more", "ratio")
    }
    return {**medians, **means, "images": options.count, "rounds": options.rounds}


def cost_of(way: Callable[[argparse.Namespace, int], None], options: argparse.Namespace) -> tuple[float, float]:
    """Seconds, and seconds of the CPU."""
    seconds, busy = time.perf_counter(), time.process_time()
    way(options, options.count)
    if options.device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - seconds, time.process_time() - busy


def mean_and_error(values: Sequence[float]) -> list[float | None]:
    """The mean, and its standard error if there are several."""
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    return [round(mean(values), 3), None if error is None else round(error, 3)]


def profile(options: argparse.Namespace) -> None:
    """Where both ways spend their time."""
    options.profile.mkdir(parents=True, exist_ok=True)
    for way in (by_functions, by_study):
        profiler = cProfile.Profile()
        profiler.runcall(way, options, options.count)
        profiler.dump_stats(options.profile / f"{way.__name__}.prof")


def by_functions(options: argparse.Namespace, count: int) -> None:
    """Load, measure and write, without a study."""
    net = load(options.model, pretrained=not options.random_weights, device=options.device, **size(options))
    runner = Runner(net, batch_size=options.batch or "auto", precision=options.precision)
    images = open_images(options.images)[:count]
    with tempfile.TemporaryDirectory() as folder:
        found = find_evidence(net, images, runner=runner, **search(options))
        found.save(Path(folder) / "evidence", regions=False)
        maps = attribute(net, images, "grad-cam", runner=runner)
        maps.save(Path(folder) / "maps")
        scores = measure(net, images, maps, ["insertion", "deletion"], steps=options.steps, runner=runner)
        scores.save(Path(folder) / "scores")


def size(options: argparse.Namespace) -> dict[str, int]:
    return {} if options.size is None else {"size": options.size}


def search(options: argparse.Namespace) -> dict[str, int]:
    return {"grid": options.grid, "max_size": options.max_size, "deletion_orders": options.deletion_orders}


def by_study(options: argparse.Namespace, count: int, every: int = 1) -> None:
    """The same as a study."""
    model = {"name": options.model, "pretrained": not options.random_weights, "options": size(options)}
    names = {"maps": "maps", "metrics": ["insertion", "deletion"], "steps": options.steps}
    chosen = {
        "evidence": {"kind": "evidence", **search(options)},
        "maps": {"kind": "attribution", "method": "grad-cam"},
        "scores": {"kind": "metrics", **names},
    }
    how = {"precision": options.precision, "batch": options.batch or "auto", "block": options.block or "auto"}
    study = Study("scale", {"source": options.images, "take": count, "every": every}, [model], chosen, how)
    with tempfile.TemporaryDirectory() as folder:
        study.run(folder, device=options.device)


if __name__ == "__main__":
    main()
