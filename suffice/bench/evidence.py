"""How fast evidence is found, beside the bare model and beside asking one question at a time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from suffice.bench.bare import BareModel
from suffice.bench.one_at_a_time import OneAtATime, search_one_at_a_time
from suffice.evidence import EvidenceStream, Settings
from suffice.evidence.writer import TableWriter
from suffice.perturb import Runner
from suffice.perturb.runner import Precision
from suffice.vision import Classifier, open_images


@dataclass(frozen=True)
class EvidenceTiming:
    """Speed of finding evidence.

    Attributes:
        images: Images searched.
        seconds: Wall-clock time, decoding, bookkeeping and tables included, compilation not.
        images_per_second: Throughput.
        forwards_per_image: Masked images put through the model.
        remembered_share: Share of the questions that were answered from memory.
        bare: Forwards per second of the bare model at the same batch, precision and compile setting.
        efficiency: Forwards per second inside the work / ``bare``.
        twin_seconds_per_image: One question at a time, search and pruning only; None where not measured.
        speed_up: Images per second against the twin's; None where not measured.
    """

    images: int
    seconds: float
    images_per_second: float
    forwards_per_image: float
    remembered_share: float
    bare: float
    efficiency: float
    twin_seconds_per_image: float | None
    speed_up: float | None


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
    model = BareModel(runner)
    bare = model.forwards_per_second()  # also compiles and warms up
    list(EvidenceStream(net, opened[:1], None, settings.changed(max_size=1), runner, images_at_once=images_at_once))

    work = EvidenceStream(net, opened, None, settings, runner, images_at_once=images_at_once)
    started = time.perf_counter()
    with TableWriter(net.name, net.family) as writer:
        for evidence in work:
            writer.add(evidence)
    count = writer.rows
    seconds = time.perf_counter() - started
    counters = work.counters
    bare = (bare + model.forwards_per_second()) / 2  # before and after: a machine that slows down troubles both

    twin = None
    if twin_images:
        started = time.perf_counter()
        for picture in opened[:twin_images]:
            pixels = net.geometry(picture.decode())
            search_one_at_a_time(OneAtATime(net, pixels, settings), settings.changed(repeated_sets=True))
        twin = (time.perf_counter() - started) / twin_images
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
