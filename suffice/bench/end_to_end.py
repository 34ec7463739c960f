"""How fast whole jobs are, from files to tables, beside the bare model in the same run: evidence and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from suffice.bench.bare import beside_bare, seconds_of
from suffice.bench.one_at_a_time import OneAtATime, search_one_at_a_time
from suffice.evidence import EvidenceStream, Settings
from suffice.evidence.files.table import evidence_table
from suffice.metrics import Protocol, measure
from suffice.perturb import Counters, Runner
from suffice.perturb.runner import Precision
from suffice.vision import Classifier, Images, open_images
from suffice.vision.noise import uniform_noise


@dataclass(frozen=True)
class EvidenceTiming:
    """Speed of finding evidence; decoding, bookkeeping and tables included, compilation not."""

    images: int
    seconds: float
    images_per_second: float
    forwards_per_image: float  # masked images put through the model
    remembered_share: float  # of the questions, answered from memory
    bare: float  # forwards per second of the bare model, the mean of just before and just after
    efficiency: float  # forwards per second inside the work / bare
    twin_seconds_per_image: float | None  # one question at a time, search and pruning only; None where not measured
    speed_up: float | None  # images per second against the twin's


@dataclass(frozen=True)
class MetricTiming:
    """Speed of measuring maps; decoding, ranking of maps, blending and integration included."""

    images: int
    forwards: float  # inputs put through the model for each image
    images_per_second: float
    bare: float  # forwards per second of the bare model, the mean of just before and just after
    efficiency: float  # forwards per second inside the work / bare


def benchmark_evidence(
    net: Classifier,
    images: Any,
    *,
    settings: Settings | None = None,
    batch_size: int = 32,
    precision: Precision = "fp32",
    compile: bool = False,
    images_at_once: int | Literal["auto"] = "auto",
    twin_images: int = 1,
) -> EvidenceTiming:
    """Measure the search on real images, end to end.

    Args:
        net: The classifier.
        images: Anything that :func:`suffice.open_images` takes.
        settings: Choices of the search.
        batch_size: Masked images per forward.
        precision: Precision of the model.
        compile: Compile the model; the time that takes is not counted.
        images_at_once: Images searched side by side.
        twin_images: Images to search one question at a time, for comparison; 0 for none.

    Returns:
        The timing.
    """
    settings = settings or Settings()
    opened = open_images(images)
    runner = Runner(net, batch_size=batch_size, precision=precision, compile=compile)

    def search(some: Images, chosen: Settings) -> tuple[int, Counters]:
        work = EvidenceStream(net, some, None, chosen, runner, images_at_once=images_at_once)
        return evidence_table(list(work), net.name, net.family).num_rows, work.counters

    def search_literally() -> None:
        for picture in opened[:twin_images]:
            ratio = OneAtATime(net, net.geometry(picture.decode()), settings)
            search_one_at_a_time(ratio, settings.changed(repeated_sets=True))

    short = settings.changed(max_size=1)
    (count, counters), seconds, bare = beside_bare(
        runner, lambda: search(opened[:1], short), lambda: search(opened, settings)
    )
    twin = seconds_of(search_literally, net.device) / twin_images if twin_images else None
    return EvidenceTiming(
        images=count,
        seconds=seconds,
        images_per_second=count / seconds,
        forwards_per_image=counters.forwards / max(count, 1),
        remembered_share=counters.remembered / max(counters.questions, 1),
        bare=bare,
        efficiency=counters.forwards / seconds / bare,
        twin_seconds_per_image=twin,
        speed_up=None if twin is None else twin * count / seconds,
    )


def benchmark_metrics(
    net: Classifier,
    images: Images,
    metrics: Sequence[str] = ("insertion", "deletion"),
    protocol: str | Protocol = "default",
    *,
    batch_size: int = 32,
    precision: Precision = "fp32",
    compile: bool = False,
    **options: Any,
) -> MetricTiming:
    """Time metrics on random maps, which cost what any maps cost.

    Args:
        net: The classifier.
        images: What to measure on.
        metrics: Measured together, so that they share what they ask.
        protocol: Every choice behind them.
        batch_size: Inputs per forward.
        precision: Of the model.
        compile: Compile the model; the time that takes does not count.
        **options: Of the metrics, such as ``steps=224``.

    Returns:
        The timing.
    """
    runner = Runner(net, batch_size=batch_size, precision=precision, compile=compile)
    count = len(images)
    maps = uniform_noise(torch.arange(count), torch.zeros(count, dtype=torch.long), net.size)

    def forwards_of_first(number: int) -> int:
        before = runner.counters.forwards
        measure(net, images[:number], maps[:number], list(metrics), protocol, runner=runner, **options)
        return runner.counters.forwards - before

    forwards, seconds, bare = beside_bare(runner, lambda: forwards_of_first(1), lambda: forwards_of_first(count))
    return MetricTiming(count, forwards / count, count / seconds, bare, forwards / seconds / bare)
