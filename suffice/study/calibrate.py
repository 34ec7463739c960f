"""Measuring a few images of a study as the study itself would, to know what all of them take."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import TYPE_CHECKING

from suffice.study import map_files
from suffice.study.measurement import Measurement
from suffice.study.plan import Plan, Shard
from suffice.study.reading import joined_maps, read_shard
from suffice.study.shard import FAILED, Loaded, do_shard
from suffice.study.store import Store
from suffice.vision import Images

if TYPE_CHECKING:
    import pyarrow

GROUPS = 4  # of images, for the spread between them
ENOUGH = 30.0  # seconds after which there are no more groups


@dataclass(frozen=True)
class Calibration:
    """What some images took.

    Attributes:
        images: How many there are in a group.
        seconds: That each group took; the first time, which warms up, is not among them.
        warm_up: Seconds that the first time took longer.
        forwards: Inputs that an image put through the model.
        shard_bytes: Of a file, whatever is in it.
        image_bytes: Of an image in a file.
        cut: Whether more groups were left out, as these had taken long enough.
        problem: Why it did not work; then there are no numbers.
    """

    images: int
    seconds: Sequence[float] = ()
    warm_up: float = 0.0
    forwards: float = 0.0
    shard_bytes: float = 0.0
    image_bytes: float = 0.0
    cut: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Sample(Plan):
    """A plan for some images of another: groups from all over them, each a shard.

    Attributes:
        chosen: The images.
        any_weights: The weights mean nothing: measurements are made such that just their speed is measured.
    """

    chosen: Images = field(default_factory=lambda: Images([]))
    any_weights: bool = False

    @property
    def measurements(self) -> dict[str, Measurement]:
        """The measurements by name, those that others read first."""
        asked = self.asked.measurements
        return {name: one.for_any_weights() for name, one in asked.items()} if self.any_weights else asked

    @property
    def images(self) -> Images:
        """The images that were chosen."""
        return self.chosen

    def makers(self, shard: Shard) -> list[str]:
        """Just the model itself, as others are not asked: their maps take as long."""
        return [shard.model]


def sample_of(plan: Plan, images: int) -> Sample:
    """Groups of so many images, fewer where that were more than a quarter, each from all over those of a plan."""
    size = max(1, min(images, len(plan.names) // (4 * GROUPS)))
    count = min(GROUPS * size, len(plan.names))
    places = [i * len(plan.names) // count for i in range(count)]
    groups = count // size
    spread = [place for group in range(groups) for place in places[group::groups]]
    names = tuple(plan.names[place] for place in spread)
    return Sample(plan.asked, plan.models, names, size, plan.versions, chosen=plan.images[spread])


def calibrated(sample: Sample, store: Store, name: str, loaded: Loaded) -> Calibration:
    """Make a measurement of a sample; maps that it reads must be in the store already."""
    shards = [s for s in sample.shards([name]) if s.model == loaded.model.label]
    shards = [s for s in shards if all(store.exists(read.table) for read in sample.inputs(s))]
    first = _timed(sample, store, shards[0], loaded)
    seconds: list[float] = []
    before = loaded.runner.counters.forwards
    for shard in shards:
        seconds.append(_timed(sample, store, shard, loaded))
        if problem := read_shard(store, shard).schema.metadata.get(FAILED):
            return Calibration(sample.block, problem=problem.decode())
        if sum(seconds) > ENOUGH:
            break
    forwards = (loaded.runner.counters.forwards - before) / (sample.block * len(seconds))
    sizes = _bytes(sample, store, shards[: len(seconds)])
    cut = len(seconds) * sample.block < len(sample.names)  # here, or before, where the maps were made that it reads
    return Calibration(sample.block, seconds, max(0.0, first - mean(seconds)), forwards, *sizes, cut)


def _timed(sample: Sample, store: Store, shard: Shard, loaded: Loaded) -> float:
    started = time.perf_counter()
    do_shard(sample, store, shard, loaded)
    return time.perf_counter() - started


def _bytes(sample: Sample, store: Store, shards: Sequence[Shard]) -> tuple[float, float]:
    """Bytes of the files of a shard without its images, and bytes of each image: from small files and large ones."""
    import pyarrow as pa

    half = sample.asked.run.maps == "fp16"
    tables = [read_shard(store, shard) for shard in shards]
    small, large = (_parquet_bytes(part) for part in (tables[0], pa.concat_tables(tables, promote_options="default")))
    if store.exists(shards[0].maps):
        maps = [map_files.from_bytes(store.read(shard.maps)) for shard in shards]
        small += len(map_files.to_bytes(maps[0], half=half))
        large += len(map_files.to_bytes(joined_maps([part for part in maps if len(part)] or maps[:1]), half=half))
    if len(shards) == 1:
        return 0.0, small / sample.block
    each = max(0.0, (large - small) / (sample.block * (len(shards) - 1)))
    return max(0.0, small - each * sample.block), each


def _parquet_bytes(table: pyarrow.Table) -> int:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return len(buffer.getvalue())
