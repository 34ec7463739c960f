"""How fast the probe is beside the bare model, measured in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from suffice.bench.bare import BareModel, seconds_of
from suffice.perturb import Probe, RankMasks, Runner
from suffice.perturb.probe import Questions
from suffice.perturb.runner import Precision
from suffice.vision import Classifier


@dataclass(frozen=True)
class ProbeTiming:
    """Throughput of one kind of question; medians of the rounds."""

    questions: str  # what kind
    bare: float  # forwards per second of the bare model
    probe: float  # forwards per second inside the probe
    efficiency: float  # probe / bare, each pair measured back to back


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

    Each round times the one and then the other over as many forwards, so that a busy machine troubles both alike.

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
    runner = Runner(net, batch_size=batch_size, precision=precision, compile=compile)
    probe = Probe(net, torch.rand(images, 3, *net.size, generator=generator), runner=runner)
    bare = BareModel(runner, seed)
    count = batches * runner.batch_size

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
            bare_seconds, before = bare.seconds(batches), probe.counters.forwards
            seconds = seconds_of(lambda q=questions, i=index: probe.ask(i, q), net.device)  # type: ignore[misc]
            if number:
                pairs.append((count / bare_seconds, (probe.counters.forwards - before) / seconds))
        columns = zip(*((b, p, p / b) for b, p in pairs), strict=True)
        yield ProbeTiming(kind, *map(statistics.median, columns))


def _rank_questions(images: int, count: int, size: tuple[int, int], generator: torch.Generator) -> RankMasks:
    pixels = size[0] * size[1]
    ranks = torch.stack([torch.randperm(pixels, generator=generator).view(size) for _ in range(images)])
    which = torch.randint(images, (count,), generator=generator)
    return RankMasks(ranks, which, torch.randint(pixels, (count,), generator=generator))
