"""How fast the probe is beside the bare model, measured in one run."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from suffice.perturb.forwarder import Forwarder, Precision
from suffice.perturb.masks import RankMasks
from suffice.perturb.probe import Probe, Questions
from suffice.vision.classifier import Classifier


@dataclass(frozen=True)
class ProbeTiming:
    """Throughput of one kind of question.

    Attributes:
        questions: What kind.
        bare: Forwards per second of the bare model, median of the rounds.
        probe: Forwards per second inside the probe, median of the rounds.
        efficiency: Median over rounds of probe / bare, each measured back to back.
    """

    questions: str
    bare: float
    probe: float
    efficiency: float


def benchmark_probe(
    net: Classifier,
    *,
    images: int = 4,
    batch_size: int = 32,
    precision: Precision = "fp32",
    compile: bool = False,
    batches: int = 4,
    rounds: int = 5,
    seed: int = 0,
) -> Iterator[ProbeTiming]:
    """Measure forwards per second, bare and inside the probe, with the same batch, precision and compile setting.

    Each round times the bare model and then the probe over the same number of forwards, so that a machine that
    slows down or is shared troubles both alike.

    Args:
        net: The classifier.
        images: How many (random) images the questions are about.
        batch_size: Inputs per forward.
        precision: Precision of the model.
        compile: Compile the model.
        batches: Forwards per timing.
        rounds: How often to repeat.
        seed: Seed of images and questions.

    Yields:
        A timing for regions, one for float masks at a quarter of the resolution, one for ranks with thresholds.
    """
    generator = torch.Generator().manual_seed(seed)
    forwarder = Forwarder(net, batch_size=batch_size, precision=precision, compile=compile)
    probe = Probe(net, torch.rand(images, 3, *net.size, generator=generator), forwarder=forwarder)
    bare = _bare_model(forwarder, generator)
    count = batches * batch_size

    makers: dict[str, Callable[[], Questions]] = {
        "regions": lambda: torch.randint(1 << probe.grid.cells, (count,), generator=generator),
        "float masks": lambda: torch.rand(count, net.size[0] // 4, net.size[1] // 4, generator=generator),
        "ranks": lambda: _rank_questions(images, count, net.size, generator),
    }
    for kind, make in makers.items():
        pairs = []
        for number in range(rounds + 1):  # the first warms up
            questions = make()
            index = torch.randint(images, (count,), generator=generator)
            bare_seconds = _seconds(lambda: [bare() for _ in range(batches)], net.device)
            before = probe.counters.forwards
            probe_seconds = _seconds(lambda q=questions, i=index: probe.ask(i, q), net.device)  # type: ignore[misc]
            if number:
                pairs.append((count / bare_seconds, (probe.counters.forwards - before) / probe_seconds))
        yield ProbeTiming(
            kind,
            statistics.median(b for b, _ in pairs),
            statistics.median(p for _, p in pairs),
            statistics.median(p / b for b, p in pairs),
        )


def bare_forwards_per_second(forwarder: Forwarder, *, seconds: float = 1.0, rounds: int = 3) -> float:
    """Forwards per second of the module itself, in the forwarder's batch size, precision, layout and compilation.

    Args:
        forwarder: Says how.
        seconds: Shortest time of a timing: a GPU is faster for a moment than it can be for long.
        rounds: Timings, after one forward to warm up; the median counts.

    Returns:
        Inputs per second.
    """
    bare = _bare_model(forwarder, torch.Generator().manual_seed(0))
    batches = max(1, math.ceil(seconds / min(_seconds(bare, forwarder.device) for _ in range(3))))
    timed = [_seconds(lambda: [bare() for _ in range(batches)], forwarder.device) for _ in range(rounds)]
    return batches * forwarder.batch_size / statistics.median(timed)


def _bare_model(forwarder: Forwarder, generator: torch.Generator) -> Callable[[], None]:
    """One forward of the module itself on a fixed batch of inputs, and nothing else."""
    module = forwarder.module
    run = _compiled(module) if forwarder.compiled else module
    inputs = torch.rand(forwarder.batch_size, 3, *forwarder.net.size, generator=generator)
    inputs = inputs.to(forwarder.device, forwarder.dtype)
    if forwarder.channels_last:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
        forwarder.logits(inputs)  # finds out whether the model works with it
        inputs = inputs.contiguous() if forwarder.contiguous_only else inputs

    def forward() -> None:
        with torch.no_grad(), forwarder.net.evaluating():
            run(inputs)

    return forward


@lru_cache(maxsize=4)
def _compiled(module: torch.nn.Module) -> Callable[..., object]:
    return torch.compile(module, dynamic=False)


def _rank_questions(images: int, count: int, size: tuple[int, int], generator: torch.Generator) -> RankMasks:
    pixels = size[0] * size[1]
    ranks = torch.stack([torch.randperm(pixels, generator=generator).view(size) for _ in range(images)])
    which = torch.randint(images, (count,), generator=generator)
    return RankMasks(ranks, which, torch.randint(pixels, (count,), generator=generator))


def _seconds(work: Callable[[], object | Tensor], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started
