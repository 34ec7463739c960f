"""What a study would do, and about how long it would take."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean, stdev
from typing import Any

from suffice.errors import StudyError
from suffice.study.calibrate import Calibration, Sample, calibrated, sample_of
from suffice.study.plan import Plan, PlannedModel, Shard
from suffice.study.shard import Loaded
from suffice.study.store import Store
from suffice.vision import Classifier

IMAGES = {"cuda": 16, "cpu": 2}  # of a group that is measured at once: few do not fill the batches of a GPU
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18}  # standard errors on either side that hold the mean of 95 % of samples


@dataclass(frozen=True)
class Expected:
    """What a measurement with a model would take.

    Attributes:
        measurement: Its name.
        model: The label of the model.
        shards: How many are to be done.
        images: In these.
        done: Images that are done already.
        largest: Images in the largest of the shards to be done.
        forwards: Inputs that an image puts through the model.
        counted: Whether these were counted in a sample; else the measurement says so itself, or they were given.
        seconds: That an image takes.
        uncertainty: So many seconds an image more or less, in 95 % of samples; None with a single sample.
        bytes: On the disk.
        groups: Of images, that all this rests on.
        cut: Whether these are fewer than were meant to be measured, as they had taken long enough.
        problem: Why it does not work; then there are no numbers.
    """

    measurement: str
    model: str
    shards: int
    images: int
    done: int
    largest: int = 0
    forwards: float = 0.0
    counted: bool = False
    seconds: float = 0.0
    uncertainty: float | None = 0.0
    bytes: int = 0
    groups: int = 0
    cut: bool = False
    problem: str = ""

    @property
    def time(self) -> float:
        """Seconds of all that is to be done, by one device."""
        return self.images * self.seconds

    @property
    def rough(self) -> bool:
        """Whether this rests on fewer groups of images than were meant to be measured, or on just one."""
        return self.groups > 0 and (self.cut or self.uncertainty is None)


@dataclass(frozen=True)
class Estimate:
    """What a study would take, model by model and measurement by measurement.

    Attributes:
        study: Its name.
        lines: What is to be done, and what is done already.
        setup: Seconds to load the models and to warm up, which each device does.
        device: Where it was measured.
        group: Images that were measured at once.
        block: Images in a shard.
    """

    study: str
    lines: tuple[Expected, ...]
    setup: float
    device: str
    group: int
    block: int = 1

    @property
    def problems(self) -> list[str]:
        """What does not work."""
        return [f"{one.measurement} of {one.model}: {one.problem}" for one in self.lines if one.problem]

    @property
    def images(self) -> int:
        """In the longest of the lines."""
        return max((one.images for one in self.lines), default=0)

    @property
    def bytes(self) -> int:
        """On the disk."""
        return sum(one.bytes for one in self.lines)

    @property
    def forwards(self) -> float:
        """Inputs that go through the models."""
        return sum(one.images * one.forwards for one in self.lines)

    def time(self, devices: int = 1) -> float:
        """Seconds in all. Shards are divided among devices, so that none is quicker than its longest shard."""
        longest = max((one.largest * one.seconds for one in self.lines), default=0.0)
        return self.setup + max(sum(one.time for one in self.lines) / devices, longest)

    def uncertainty(self, devices: int = 1) -> float | None:
        """So many seconds more or less, in 95 % of samples; lines err independently. None where one is not known.

        This is what the sampled images differ by. A machine that is busier, or images of another kind, add to it.
        """
        parts = [None if one.uncertainty is None else one.images * one.uncertainty for one in self.lines if one.images]
        known = [part for part in parts if part is not None]
        return math.hypot(*known) / devices if len(known) == len(parts) else None

    def of_images(self, count: int) -> Estimate:
        """What the same study would take of so many images like these.

        Example:
            >>> line = Expected("said", "zoo/deit", 1, 10, 0, largest=10, seconds=0.5, bytes=200)
            >>> found = Estimate("s", (line,), 3.0, "cpu", 2, block=100).of_images(1000)
            >>> found.time(), found.bytes, found.lines[0].shards
            (503.0, 20000, 10)
        """
        if any(one.done for one in self.lines):
            raise StudyError("Some of the study is done already; what another number of images takes is said before.")
        shards, largest = -(-count // self.block), min(count, self.block)
        lines = (
            replace(one, images=count, shards=shards, largest=largest, bytes=round(one.bytes * count / one.images))
            for one in self.lines
        )
        return replace(self, lines=tuple(lines))

    def to_dict(self, devices: int = 1) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        time = {"devices": devices, "seconds": self.time(devices), "uncertainty": self.uncertainty(devices)}
        sums = {"images": self.images, "forwards": self.forwards, "bytes": self.bytes}
        return {**asdict(self), **time, **sums, "problems": self.problems}


def estimate(
    plan: Plan,
    done: Sequence[str],
    *,
    only: Sequence[str] = (),
    device: str | None = None,
    images: int | None = None,
    forwards: float | None = None,
    any_weights: bool = False,
) -> Estimate:
    """Say what would be done, after measuring a few images with each model, as the study itself would.

    Args:
        plan: Of the study.
        done: Files of tables that are there already.
        only: Just these measurements.
        device: Instead of the first GPU if there is one.
        images: To be measured at once, four times; default: 16 with a GPU, else 2. More fill larger batches.
        forwards: That an image takes in measurements which do not say so themselves; default: counted.
        any_weights: The weights mean nothing, so that how fast a model is can be measured, and not how much is asked.
    """
    there = set(done)
    shards: dict[tuple[str, str], list[Shard]] = {}
    for shard in plan.shards(only):
        shards.setdefault((shard.measurement, shard.model), []).append(shard)
    lines: list[Expected] = []
    setup, where, group = 0.0, "", 0
    alike: dict[Hashable, dict[str, Calibration]] = {}  # models that differ in their weights alone
    for model in plan.models:
        own = {name: some for (name, label), some in shards.items() if label == model.label}
        waiting = [name for name, some in own.items() if any(shard.table not in there for shard in some)]
        found: dict[str, Calibration] = {}
        loaded: Loaded | None = None
        if waiting:
            started = time.perf_counter()
            loaded = Loaded.of(plan, model.label, device)
            setup += time.perf_counter() - started
            where = str(loaded.net.device)
            sample = sample_of(plan, images or IMAGES.get(loaded.net.device.type, IMAGES["cpu"]))
            if any_weights:
                _check_forwards(sample, loaded, waiting, forwards)
                sample = replace(sample, any_weights=True)
            key = _architecture(loaded.net) if any_weights else model.label
            if missing := [name for name in waiting if name not in alike.setdefault(key, {})]:
                alike[key] |= _calibrations(sample, loaded, missing)
            found, group = alike[key], sample.block
            setup += sum(one.warm_up for name, one in found.items() if name in waiting)
        for name, some in own.items():
            lines.append(_expected(plan, name, model, some, there, loaded, found.get(name), forwards))
        del loaded  # two models at once may be too much for the memory
    return Estimate(plan.asked.name, tuple(lines), setup, where, group, plan.block)


def _architecture(net: Classifier) -> Hashable:
    """What decides how fast a model is: all but the values of its weights."""
    shapes = tuple((name, tuple(value.shape)) for name, value in net.module.state_dict().items())
    return type(net.module).__qualname__, str(net.geometry), shapes


def _check_forwards(sample: Sample, loaded: Loaded, names: Sequence[str], forwards: float | None) -> None:
    """Weights that mean nothing do not say how much a search asks."""
    unknown = [name for name in names if sample.measurements[name].questions(loaded.net) is None]
    if unknown and forwards is None:
        raise StudyError(
            f"How many forwards an image takes in {unknown[0]} depends on the weights; with random ones, say how many "
            "real ones took: forwards=, or --forwards."
        )


def _calibrations(sample: Sample, loaded: Loaded, names: Sequence[str]) -> dict[str, Calibration]:
    """Measurements of a sample with a model, also those whose maps others read."""
    needed = {read for name in names for read in sample.measurements[name].reads} | set(names)
    with tempfile.TemporaryDirectory(prefix="suffice-estimate-") as folder:
        store = Store(folder)
        return {name: calibrated(sample, store, name, loaded) for name in sample.measurements if name in needed}


def _expected(
    plan: Plan,
    name: str,
    model: PlannedModel,
    shards: Sequence[Shard],
    there: set[str],
    loaded: Loaded | None,
    found: Calibration | None,
    forwards: float | None,
) -> Expected:
    sizes = [len(plan.rows(shard)) for shard in shards if shard.table not in there]
    images = sum(sizes)
    done = sum(len(plan.rows(shard)) for shard in shards) - images
    if not sizes or found is None or loaded is None:
        return Expected(name, model.label, 0, 0, done)
    if found.problem:
        return Expected(name, model.label, len(sizes), images, done, problem=found.problem)
    makers = len(plan.makers(shards[0]))  # the sample has the model's own maps only
    known = plan.measurements[name].questions(loaded.net)
    # Where it is known how much is asked, just the speed is taken from the sample.
    as_many = forwards / found.forwards if known is None and forwards is not None and found.forwards else 1.0
    each = [as_many * makers * seconds / found.images for seconds in found.seconds]
    error = STUDENT[len(each)] * stdev(each) / math.sqrt(len(each)) if len(each) > 1 else None
    return Expected(
        name,
        model.label,
        len(sizes),
        images,
        done,
        largest=max(sizes),
        forwards=makers * (as_many * found.forwards if known is None else known),
        counted=known is None and forwards is None,
        seconds=mean(each),
        uncertainty=error,
        bytes=round(len(sizes) * found.shard_bytes + makers * images * found.image_bytes),
        groups=len(each),
        cut=found.cut,
    )
