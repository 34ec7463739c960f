"""Doing one shard: measure, and write its rows and maps; what fails becomes rows that say so."""

from __future__ import annotations

import io
import json
import os
import socket
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from suffice.attribution import Attribution
from suffice.errors import ImageError, StoreError, StudyError, UnreadableImage
from suffice.perturb import Runner
from suffice.progress import stage
from suffice.study import map_files
from suffice.study.measurement import Found, Work
from suffice.study.plan import Plan, PlannedModel, Shard
from suffice.study.store import Store
from suffice.vision import Classifier, Images
from suffice.vision.identity import weights_hash
from suffice.vision.provenance import as_json
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow

COMMON = ("image", "image_id", "index", "target", "label", "error")
FAILED = b"failed"


@dataclass(frozen=True)
class Loaded:
    """A model of a study, ready to be asked."""

    model: PlannedModel
    net: Classifier
    runner: Runner

    @classmethod
    def of(cls, plan: Plan, label: str, device: str | None = None) -> Loaded:
        """Load a model; weights that are others than when the study began are an error."""
        model, how = plan.model(label), plan.asked.run
        net = plan.loaded.pop((label, device), None)
        plan.loaded.clear()  # two models at once may be too much for the memory
        if net is None:
            net = model.load(plan.asked.base, device)
        if weights_hash(net.module) != model.weights:
            raise StudyError(f"The weights of {label} are others than when the study began.")
        return cls(model, net, Runner(net, batch_size=how.batch, precision=how.precision, compile=how.compile))


def do_shard(plan: Plan, store: Store, shard: Shard, loaded: Loaded, images: Images | None = None) -> bool:
    """Measure a shard and write what was found; returns whether it worked.

    An error of the measurement is written as a row for each image, so that the study goes on.

    Args:
        plan: Of the study.
        store: Where results go.
        shard: What is measured.
        loaded: Its model.
        images: Its images, where they are open already; default: those of the plan.
    """
    started, before = time.perf_counter(), loaded.runner.counters.forwards
    event = {"shard": shard.name, "host": socket.gethostname(), "process": os.getpid()}
    store.log({"event": "began", **event, "at": _now()})
    count = len(plan.rows(shard))
    maps: Attribution | None = None
    problem = ""
    try:
        found = _measured(plan, store, shard, loaded, images)
        table, about, maps = _complete(plan, shard, found), found.about, found.maps
        count -= len({skip.index for skip in found.skipped})
    except Exception as error:  # whatever it is, it is the shard's alone
        problem = f"{type(error).__name__}: {error}"
        event["traceback"] = traceback.format_exc()
        table, about = _failed(plan, shard, problem), {}
    seconds = time.perf_counter() - started
    spent = {"seconds": round(seconds, 3), "forwards": loaded.runner.counters.forwards - before, "images": count}
    try:
        if maps is not None:
            store.write(shard.maps, map_files.to_bytes(maps, half=plan.asked.run.maps == "fp16"))
        elif problem:
            store.remove(shard.maps)  # of an attempt that was killed before it had written its rows
        more = {"spent": as_json(spent), "makers": json.dumps(plan.makers(shard))}
        more |= {"failed": problem} if problem else {}
        store.write(shard.table, _bytes(table, about, more))
    except StoreError as error:  # a full disk, perhaps: the few rows that say so may still find room
        problem = f"It could not be written: {error}"
        write_failed(plan, store, shard, problem)
    store.log({"event": "failed" if problem else "finished", **event, **spent, "error": problem or None, "at": _now()})
    return not problem


def write_failed(plan: Plan, store: Store, shard: Shard, problem: str) -> None:
    """Write rows that say why there are none."""
    store.remove(shard.maps)
    store.write(shard.table, _bytes(_failed(plan, shard, problem), {}, {"failed": problem}))


def is_failed(store: Store, shard: Shard) -> bool:
    """Whether a finished shard holds an error instead of results."""
    return problem_of(store, shard) is not None


def problem_of(store: Store, shard: Shard) -> str | None:
    """The error that a finished shard holds instead of results; None where it has results."""
    import pyarrow.parquet as pq

    found = (pq.read_schema(io.BytesIO(store.read(shard.table))).metadata or {}).get(FAILED)
    return None if found is None else found.decode()


def is_outgrown(plan: Plan, store: Store, shard: Shard) -> bool:
    """Whether a finished shard lacks the maps of a model that has joined the study since."""
    import pyarrow.parquet as pq

    metadata = pq.read_schema(io.BytesIO(store.read(shard.table))).metadata or {}
    return not set(plan.makers(shard)) <= {*json.loads(metadata.get(b"makers", b"[]")), shard.model}


def read_maps(plan: Plan, store: Store, shard: Shard) -> Attribution:
    """The maps of a shard; what could not be read is among those skipped."""
    if not store.exists(shard.maps):
        raise StudyError(f"There are no maps of {shard}: it failed.")
    return map_files.from_bytes(store.read(shard.maps))


def _measured(plan: Plan, store: Store, shard: Shard, loaded: Loaded, images: Images | None) -> Found:
    measurement, rows = plan.measurements[shard.measurement], plan.rows(shard)
    own = plan.images[rows.start : rows.stop] if images is None else images
    without: dict[int, Skip] = {}  # images of which there are no maps

    def maps(name: str, model: str | None = None) -> Attribution:
        found = of_these(read_maps(plan, store, Shard(name, model or shard.model, shard.number)), own)
        without.update({skip.index: skip for skip in found.skipped})
        return found

    work = Work(loaded.net, loaded.runner, own, plan.asked.run.seed, maps, plan.makers(shard))
    with stage(f"{shard.measurement} of {shard.model}", len(rows), measurement.questions(loaded.net)) as finished:
        try:
            found = measurement.measure(work)
        except UnreadableImage:
            lost = without | {skip.index: skip for skip in work.unreadable()}
            if len(lost) < len(rows):
                raise
            found = Found(_nothing(), {}, [lost[index] for index in sorted(lost)])
        finished(len(rows))
    return found


def of_these(maps: Attribution, images: Images) -> Attribution:
    """The maps of images that are what they were when the maps were made; the others are skipped."""
    skipped = {skip.index: skip for skip in maps.skipped}
    index = [i for i in range(len(images)) if i not in skipped]
    for i, before in zip(index, maps.ids, strict=True):
        try:
            if images[i].id != before:
                skipped[i] = Skip(i, images[i].name, f"{images[i].name} is another image than when its map was made.")
        except ImageError as error:
            skipped[i] = Skip(i, images[i].name, str(error))
    kept = [place for place, i in enumerate(index) if i not in skipped]
    return maps if len(kept) == len(maps) else replace(maps[kept], skipped=[skipped[i] for i in sorted(skipped)])


def _complete(plan: Plan, shard: Shard, found: Found) -> pyarrow.Table:
    """The rows of a shard with the columns that all tables have, and rows for images that could not be read."""
    import pyarrow as pa

    first, images = plan.rows(shard).start, plan.images
    index = [first + i for i in found.table["index"].to_pylist()]
    count = found.table.num_rows
    own = {name: found.table[name] for name in found.table.column_names if name not in COMMON}
    common = {
        "image": pa.array([plan.names[i] for i in index], pa.string()),
        "image_id": pa.array([_id(images[i]) for i in index], pa.string()),
        "index": pa.array(index, pa.int64()),
        "target": found.table["target"],
        "label": found.table["label"],
        "error": pa.nulls(count, pa.string()),
    }
    facts = _facts(plan, shard)
    table = pa.table(common | _same(facts, count) | own)
    broken = [
        {"image": plan.names[first + skip.index], "index": first + skip.index, "error": skip.reason}
        for skip in found.skipped
    ]
    errors = pa.Table.from_pylist(
        [{**row, **facts} for row in broken],
        schema=pa.schema([(n, table.schema.field(n).type) for n in (*COMMON, *facts)]),
    )
    together = pa.concat_tables([table, errors], promote_options="default")
    return together.sort_by("index") if broken else together


def _nothing() -> pyarrow.Table:
    """A table without rows."""
    import pyarrow as pa

    return pa.schema({"index": pa.int64(), "target": pa.int64(), "label": pa.string()}).empty_table()


def _failed(plan: Plan, shard: Shard, problem: str) -> pyarrow.Table:
    """Rows that say why there are none."""
    import pyarrow as pa

    rows = plan.rows(shard)
    columns = {
        "image": pa.array([plan.names[i] for i in rows], pa.string()),
        "image_id": pa.nulls(len(rows), pa.string()),
        "index": pa.array(rows, pa.int64()),
        "target": pa.nulls(len(rows), pa.int64()),
        "label": pa.nulls(len(rows), pa.string()),
        "error": pa.array([problem] * len(rows), pa.string()),
    }
    return pa.table(columns | _same(_facts(plan, shard), len(rows)))


def _facts(plan: Plan, shard: Shard) -> dict[str, str | None]:
    """What is the same in all rows: facts about the model, and about the measurement."""
    model = plan.model(shard.model)
    about = {"family": model.family, "group": model.group, "seed": model.seed}
    return about | plan.measurements[shard.measurement].facts


def _same(facts: Mapping[str, str | None], count: int) -> dict[str, Any]:
    import pyarrow as pa

    return {name: pa.array([value] * count, pa.string()) for name, value in facts.items()}


def _bytes(table: pyarrow.Table, about: Mapping[str, Any], more: Mapping[str, str]) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    described = table.replace_schema_metadata({"suffice": as_json(about), **more})
    pq.write_table(described, buffer, compression="zstd")
    return buffer.getvalue()


def _id(picture: Any) -> str | None:
    try:
        return str(picture.id)
    except ImageError:
        return None


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
