"""How fast metrics are, beside the bare model in the same run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from suffice.bench.bare import BareModel
from suffice.metrics import Protocol, measure
from suffice.perturb import Runner
from suffice.perturb.runner import Precision
from suffice.vision import Classifier, Images
from suffice.vision.noise import uniform_noise


@dataclass(frozen=True)
class MetricTiming:
    """Speed of measuring maps.

    Attributes:
        images: How many were measured.
        forwards: Inputs put through the model for each image.
        images_per_second: Decoding, ranking of maps, blending and integration included.
        bare: Forwards per second of the bare model, the mean of just before and just after.
        efficiency: Forwards per second inside the work / bare.
    """

    images: int
    forwards: float
    images_per_second: float
    bare: float
    efficiency: float


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
    maps = uniform_noise(torch.arange(len(images)), torch.zeros(len(images), dtype=torch.long), net.size)
    model = BareModel(runner)
    bare = model.forwards_per_second()  # also compiles and warms up
    measure(net, images[:1], maps[:1], list(metrics), protocol, runner=runner, **options)
    before = runner.counters.forwards
    started = time.perf_counter()
    measure(net, images, maps, list(metrics), protocol, runner=runner, **options)
    seconds, forwards = time.perf_counter() - started, runner.counters.forwards - before
    bare = (bare + model.forwards_per_second()) / 2
    count = len(images)
    return MetricTiming(count, forwards / count, count / seconds, bare, forwards / seconds / bare)
