"""Reading what a study found: tables, and the maps and evidence of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from suffice.attribution import Attribution
from suffice.errors import StudyError
from suffice.evidence.files.storage import read_settings
from suffice.evidence.files.table import evidence_of_table
from suffice.evidence.files.table import table_schema as evidence_schema
from suffice.evidence.result import EvidenceSet
from suffice.plugins import did_you_mean
from suffice.study import map_files
from suffice.study.parquet import read_parquet
from suffice.study.plan import Plan, Shard
from suffice.study.store import Store
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow


def read_table(plan: Plan, store: Store, measurement: str) -> pyarrow.Table:
    """All rows of a measurement so far, in order of models and images; ``model`` is the first column."""
    import pyarrow as pa

    columns = table_schema(plan, store, measurement).names
    return pa.concat_tables(table_parts(plan, store, measurement), promote_options="default").select(columns)


def table_parts(plan: Plan, store: Store, measurement: str) -> Iterator[pyarrow.Table]:
    """The rows of each finished shard of a measurement, in order of models and images."""
    import pyarrow as pa

    for shard in finished_shards(plan, store, measurement):
        part = read_shard(store, shard).replace_schema_metadata()
        yield part.add_column(0, "model", pa.array([shard.model] * part.num_rows, pa.string()))


def table_schema(plan: Plan, store: Store, measurement: str) -> pyarrow.Schema:
    """The columns of a measurement's table; of files, just the ends are read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: list[str] = []
    schemas = []
    for shard in finished_shards(plan, store, measurement):
        with store.fs.open(store.path(shard.table), "rb") as file:
            schemas.append(pq.read_schema(file).remove_metadata())
        # Shards that failed, or whose images cannot be read, have the common columns only.
        columns = max(columns, schemas[-1].names, key=len)
    if not schemas:
        raise StudyError(f"Nothing of {measurement} is done yet.")
    together = pa.unify_schemas(schemas, promote_options="default")
    return pa.schema([pa.field("model", pa.string()), *(together.field(name) for name in columns)])


def finished_shards(plan: Plan, store: Store, measurement: str, model: str | None = None) -> list[Shard]:
    """The shards of a measurement whose tables are there, also those that failed; perhaps of one model only."""
    names = plan.asked.named(measurement)
    labels = [one.label for one in plan.models]
    if model is not None and model not in labels:
        hint = did_you_mean(model, labels) or f" There are {', '.join(labels)}."
        raise StudyError(f"The study has no model {model!r}.{hint}")
    there = set(store.files("tables"))
    return [s for s in plan.shards(names) if s.table in there and model in (None, s.model)]


def read_shard(store: Store, shard: Shard, columns: Sequence[str] | None = None) -> pyarrow.Table:
    """The rows of a shard, with what the file says about itself; perhaps just some columns, of those that it has."""
    with store.fs.open(store.path(shard.table), "rb") as file:
        return read_parquet(file, columns)


def read_evidence(plan: Plan, store: Store, model: str | None = None, measurement: str | None = None) -> EvidenceSet:
    """The evidence of a model so far, or of the only one, by the search of this name, or by the only one."""
    searches = [name for name, one in plan.measurements.items() if one.kind == "evidence"]
    if measurement is None and len(searches) != 1:
        raise StudyError(f"Say which search is meant: {', '.join(searches)}." if searches else "No evidence was asked.")
    if model is None and len(plan.models) > 1:
        raise StudyError(f"Say which model is meant: {', '.join(one.label for one in plan.models)}.")
    name, label = measurement or searches[0], model or plan.models[0].label
    parts = list(evidence_parts(plan, store, name, label))
    if not parts:
        raise StudyError(f"Nothing of {name} with {label} is done yet.")
    found = [one for part in parts for one in part]
    skipped = [skip for part in parts for skip in part.skipped]
    about = next((part.about for part in parts if len(part)), {})
    return EvidenceSet(found, label, plan.model(label).family or "", skipped, about=about)


def evidence_parts(plan: Plan, store: Store, measurement: str, model: str) -> Iterator[EvidenceSet]:
    """The evidence of a model so far, shard by shard: all regions of many images are more than the memory holds."""
    shards = finished_shards(plan, store, measurement, model)
    if plan.measurements[measurement].kind != "evidence":
        raise StudyError(f"{measurement!r} finds no evidence.")
    for shard in shards:
        table = read_shard(store, shard)
        about = json.loads(table.schema.metadata[b"suffice"])
        good = table.filter(table["error"].is_null())
        found = evidence_of_table(good, read_settings(about)) if good.num_rows else []
        yield EvidenceSet(found, model, plan.model(model).family or "", _skipped(table), about=about)


def evidence_rows(plan: Plan, store: Store, measurement: str, model: str) -> pyarrow.Table:
    """The rows of the same evidence, without regions and pictures."""
    import pyarrow as pa

    columns = [name for name in evidence_schema().names if name not in ("model", "family")]
    parts = [evidence_schema().empty_table().select(columns)]
    for shard in finished_shards(plan, store, measurement, model):
        rows = read_shard(store, shard, [*columns, "error"]).replace_schema_metadata()
        if "mses" in rows.column_names:  # or none of its images could be read
            parts.append(rows.filter(rows["error"].is_null()).select(columns))
    return pa.concat_tables(parts)


def read_skipped(plan: Plan, store: Store, measurement: str, model: str) -> list[Skip]:
    """The images of which a measurement has an error instead of results."""
    shards = finished_shards(plan, store, measurement, model)
    return [skip for shard in shards for skip in _skipped(read_shard(store, shard, ["index", "image", "error"]))]


def read_about(plan: Plan, store: Store, measurement: str, model: str) -> dict[str, Any]:
    """All that has to be known to measure the same again; empty where nothing was measured."""
    for shard in finished_shards(plan, store, measurement, model):
        about: dict[str, Any] = json.loads(read_shard(store, shard, ["index"]).schema.metadata[b"suffice"])
        if about:
            return about
    return {}


def _skipped(table: pyarrow.Table) -> list[Skip]:
    errors = table.filter(table["error"].is_valid()).select(["index", "image", "error"]).to_pylist()
    return [Skip(row["index"], row["image"], row["error"]) for row in errors]


def read_maps_of(plan: Plan, store: Store, measurement: str, model: str) -> Attribution:
    """The maps of a model so far; images without one are among those skipped."""
    shards = finished_shards(plan, store, measurement, model)
    if not plan.measurements[measurement].makes_maps:
        raise StudyError(f"{measurement!r} makes no maps.")
    parts: list[Attribution] = []
    skipped: list[Skip] = []
    for shard in shards:
        rows = plan.rows(shard)
        if store.exists(shard.maps):
            part = map_files.from_bytes(store.read(shard.maps))
            skipped += [replace(skip, index=rows.start + skip.index) for skip in part.skipped]
            parts += [part] if len(part) else []
        else:
            skipped += [Skip(i, plan.names[i], f"{shard} failed") for i in rows]
    if not parts:
        raise StudyError(f"There are no maps of {measurement} with {model} yet.")
    return joined_maps(parts, skipped)


def joined_maps(parts: Sequence[Attribution], skipped: Sequence[Skip] = ()) -> Attribution:
    """Maps of several shards together."""
    pictures = [part.pictures for part in parts if part.pictures is not None]
    return replace(
        parts[0],
        maps=torch.cat([part.maps for part in parts]),
        targets=torch.cat([part.targets for part in parts]),
        confidences=torch.cat([part.confidences for part in parts]),
        names=[name for part in parts for name in part.names],
        ids=[one for part in parts for one in part.ids],
        labels=[label for part in parts for label in part.labels],
        pictures=torch.cat(pictures) if len(pictures) == len(parts) else None,
        skipped=skipped,
    )
