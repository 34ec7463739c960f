"""The bare model: how fast a module is by itself, and the clock that everything is timed with."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import torch

from suffice.perturb import Runner

T = TypeVar("T")
SECONDS = 1.0  # a GPU is faster for a moment than it can be for long


class BareModel:
    """The module of a runner on one fixed batch of inputs, and nothing else.

    Args:
        runner: Says which module, in which batch size, precision, layout and compilation.
        seed: Of the inputs.

    Example:
        >>> from suffice.testing import AnyOf
        >>> bare = BareModel(Runner(AnyOf([(5,)], grid=4).classifier(32), batch_size=2))
        >>> bare.seconds(forwards=3) > 0
        True
    """

    def __init__(self, runner: Runner, seed: int = 0) -> None:
        self.runner = runner
        inputs = torch.rand(runner.batch_size, 3, *runner.net.size, generator=torch.Generator().manual_seed(seed))
        inputs = inputs.to(runner.device, runner.dtype)
        runner.logits(inputs)  # finds out whether the model works with the layout
        if runner.channels_last and not runner.contiguous_only:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        self.inputs = inputs
        module = runner.module
        self._forward = runner.fused(lambda inputs: module(inputs))

    @torch.no_grad()
    def run(self, forwards: int = 1) -> None:
        """Put the batch through the module so many times."""
        with self.runner.net.evaluating(), self.runner.arithmetic():
            for _ in range(forwards):
                self._forward(self.inputs)

    def seconds(self, forwards: int = 1) -> float:
        """Time of so many forwards of the batch."""
        return seconds_of(lambda: self.run(forwards), self.runner.device)

    def forwards_per_second(self, *, seconds: float = SECONDS, rounds: int = 3) -> float:
        """Measure how many inputs per second the module takes.

        Args:
            seconds: Shortest time of a timing.
            rounds: Timings, after some forwards to warm up; the median counts.

        Returns:
            Inputs per second.
        """
        self.run()
        batches = max(1, math.ceil(seconds / min(self.seconds() for _ in range(3))))
        return batches * len(self.inputs) / statistics.median(self.seconds(batches) for _ in range(rounds))


def bare_forwards_per_second(runner: Runner, *, seconds: float = SECONDS, rounds: int = 3) -> float:
    """Inputs per second that the module of a runner takes by itself; see :meth:`BareModel.forwards_per_second`."""
    return BareModel(runner).forwards_per_second(seconds=seconds, rounds=rounds)


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Time of some work, until the device has done all of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started


def beside_bare(runner: Runner, warm_up: Callable[[], object], work: Callable[[], T]) -> tuple[T, float, float]:
    """Time work beside the bare model: what it returns, its seconds, and forwards per second of the bare model.

    The latter is the mean of just before and just after, since a machine that slows down troubles both.
    """
    model, results = BareModel(runner), list[T]()
    before = model.forwards_per_second()  # also compiles
    warm_up()
    seconds = seconds_of(lambda: results.append(work()), runner.device)
    return results[0], seconds, (before + model.forwards_per_second()) / 2
