"""What makes work faster on a CPU: layouts, folding, compilation, half precision, batch sizes, flushed denormals.

Each piece of work runs with each variant in turn, so many rounds over, and the median of its forwards a second is
printed beside those of the bare module as PyTorch has it: fp32, the usual memory layout, nothing folded, batches of 32.
``bare`` puts one fixed batch through the runner's module; the other work is what one calls: evidence, methods, a
metric. Half of the forwards of iGOS++, roughly, have a backward pass. With one thread seconds are those of the
processor, so that other programs disturb little; with more they are those of the wall clock.

    OMP_NUM_THREADS=1 taskset -c 1 python benchmarks/on_a_laptop.py --models vit --works bare rise --rounds 3

``--keep-memory`` cannot be undone, so it is for the whole process: run it once with and once without.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import suffice
from benchmarks.real_models import photographs, resnet50_v1, vit_tiny
from suffice.bench.bare import BareModel
from suffice.perturb import Runner, keep_freed_memory
from suffice.vision.noise import uniform_noise

MODELS = {"vit": vit_tiny, "resnet50": resnet50_v1}


@dataclass(frozen=True)
class Variant:
    """One way to run a model."""

    runner: dict[str, Any] = field(default_factory=dict)  # options of the runner
    flush: bool = False  # numbers too small for fp32's usual form become 0
    onednn: bool = True

    @contextmanager
    def switched(self) -> Iterator[None]:
        """Within it, PyTorch's own switches are as this variant has them."""
        torch.set_flush_denormal(self.flush)
        with nullcontext() if self.onednn else torch.backends.mkldnn.flags(enabled=False):
            yield
        torch.set_flush_denormal(False)


PLAIN = {"fold": False, "channels_last": False}
VARIANTS = {
    "as PyTorch has it": Variant(PLAIN),
    "channels-last": Variant({"fold": False}),
    "folded": Variant({"channels_last": False}),
    "default": Variant(),
    "batch 4": Variant({"batch_size": 4}),
    "batch 8": Variant({"batch_size": 8}),
    "batch 16": Variant({"batch_size": 16}),
    "batch 64": Variant({"batch_size": 64}),
    "compiled": Variant({"compile": True}),
    "compiled, batch 8": Variant({"compile": True, "batch_size": 8}),
    "denormals flushed": Variant(flush=True),
    "without oneDNN": Variant(onednn=False),
    "bf16": Variant({"precision": "bf16"}),
    "fp16": Variant({"precision": "fp16"}),
}


def bare(runner: Runner, _pixels: Tensor, questions: int) -> Callable[[], int]:
    model = BareModel(runner)
    batches = max(1, questions // runner.batch_size)

    def run() -> int:
        model.run(batches)
        return batches * runner.batch_size

    return run


def counted(runner: Runner, work: Callable[[], object]) -> Callable[[], int]:
    """Work that says how many inputs went through the model for it."""

    def run() -> int:
        before = runner.counters.forwards
        work()
        return runner.counters.forwards - before

    return run


def evidence(runner: Runner, pixels: Tensor, questions: int) -> Callable[[], int]:
    short: dict[str, Any] = {"max_size": max(1, questions // 200), "expanded_mses": 0, "deletion_orders": 0}
    return counted(runner, lambda: suffice.find_evidence(runner.net, pixels[:2], runner=runner, **short))


def igos(runner: Runner, pixels: Tensor, questions: int) -> Callable[[], int]:
    how: dict[str, Any] = {"iterations": max(1, questions // 100), "steps": 8}
    return counted(runner, lambda: suffice.attribute(runner.net, pixels[:1], "igos++", runner=runner, **how))


def rise(runner: Runner, pixels: Tensor, questions: int) -> Callable[[], int]:
    return counted(runner, lambda: suffice.attribute(runner.net, pixels[:1], "rise", runner=runner, masks=questions))


def insertion(runner: Runner, pixels: Tensor, questions: int) -> Callable[[], int]:
    maps = uniform_noise(torch.zeros(1, dtype=torch.long), torch.zeros(1, dtype=torch.long), runner.net.size)
    how: dict[str, Any] = {"runner": runner, "steps": questions}
    return counted(runner, lambda: suffice.measure(runner.net, pixels[:1], maps, "insertion", **how))


WORKS = {"bare": bare, "evidence": evidence, "igos++": igos, "rise": rise, "insertion": insertion}


def timed(works: dict[Any, tuple[Variant, Callable[[], int]]], rounds: int) -> dict[Any, list[float]]:
    """Forwards a second of every piece of work, in rounds, after one to warm up."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    found: dict[Any, list[float]] = {key: [] for key in works}
    for turn in range(rounds + 1):
        for key, (variant, work) in works.items():
            with variant.switched():
                started = clock()
                forwards = work()
                seconds = clock() - started
            if turn:
                found[key].append(forwards / seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="VARIANT",
                        help=f"of {', '.join(VARIANTS)}")  # fmt: skip
    parser.add_argument("--questions", type=int, default=96, help="forwards of a piece of work, roughly")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keep-memory", action="store_true", help="what is freed stays with the process")
    parser.add_argument("--out", type=Path, help="write all timings there, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.keep_memory:
        print("memory kept:", keep_freed_memory())
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, threads: {torch.get_num_threads()}\n")
    print("| work | model | variant | forwards/s | lowest to highest | ratio to the bare model |")
    print("|---|---|---|---|---|---|")
    written = []
    for name in options.models:
        net = MODELS[name]()
        net.module.eval().requires_grad_(False)
        pixels = net.prepare(photographs()[:2])
        chosen = [("bare", "as PyTorch has it")]
        chosen += [pair for pair in itertools.product(options.works, options.variants) if pair not in chosen]
        works = {}
        for work, variant in chosen:
            how = VARIANTS[variant]
            with how.switched():
                runner = Runner(net, **{"batch_size": 32, **how.runner})
                works[work, variant] = how, WORKS[work](runner, pixels, options.questions)
        found = timed(works, options.rounds)
        reference = statistics.median(found["bare", "as PyTorch has it"])
        for (work, variant), speeds in found.items():
            middle, spread = statistics.median(speeds), f"{min(speeds):.1f} to {max(speeds):.1f}"
            print(f"| {work} | {name} | {variant} | {middle:.1f} | {spread} | {middle / reference:.2f} |", flush=True)
            written.append({"model": name, "work": work, "variant": variant, "forwards_per_second": speeds})
        if options.out:
            options.out.write_text(json.dumps(written, indent=2))


if __name__ == "__main__":
    main()
