"""Tables of a study as single files, for those who want to read or send them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import StudyError
from suffice.study.asked import TAKEN
from suffice.study.plan import Plan
from suffice.study.reading import finished_shards, read_shard, table_parts, table_schema
from suffice.study.shard import FAILED
from suffice.study.store import Store
from suffice.vision.provenance import as_json

if TYPE_CHECKING:
    import pyarrow

Format = Literal["parquet", "csv"]
AT_ONCE = 1 << 26  # bytes of rows that are in memory


def export(plan: Plan, store: Store, out: str | Path, format: Format = "parquet") -> list[Path]:
    """Write one file a table, each whole or not at all, and two more: the models, and what failed.

    Args:
        plan: Of the study.
        store: Where it lies.
        out: A folder; files that are there are replaced.
        format: ``"parquet"``, or ``"csv"``, where lists and the like are JSON, and pictures and regions are left out.

    Returns:
        The files. Measurements of which nothing is done yet have none.
    """
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"out={str(folder)!r} cannot be written to: {error.strerror}.") from error
    write = _write_parquet if format == "parquet" else _write_csv
    written = []
    for name in plan.asked.tables:
        if finished_shards(plan, store, name):
            schema = table_schema(plan, store, name).with_metadata({"suffice": as_json(_about(plan, name))})
            written.append(write(folder / f"{name}.{format}", schema, table_parts(plan, store, name)))
    for name, table in zip(TAKEN, (models_table(plan), failures_table(plan, store)), strict=True):
        schema = table.schema.with_metadata({"suffice": as_json(_about(plan, name))})
        written.append(write(folder / f"{name}.{format}", schema, [table]))
    return written


def models_table(plan: Plan) -> pyarrow.Table:
    """One row a model, with the hash of its weights and what does not fit it."""
    import pyarrow as pa

    texts = ("label", "name", "group", "seed", "family", "checkpoint", "weights")
    rows = [asdict(model) for model in plan.models]
    columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in texts}
    columns["pretrained"] = pa.array([row["pretrained"] for row in rows], pa.bool_())
    for name in ("options", "misfits"):
        columns[name] = pa.array([json.dumps(row[name] or {}) for row in rows], pa.string())
    return pa.table(columns).rename_columns(["model", *list(columns)[1:]])


def failures_table(plan: Plan, store: Store) -> pyarrow.Table:
    """One row for each image of each measurement that has an error, and whether all of its shard failed."""
    import pyarrow as pa

    kinds = {"measurement": pa.string(), "model": pa.string(), "image": pa.string(), "index": pa.int64()}
    schema = pa.schema({**kinds, "error": pa.string(), "shard_failed": pa.bool_(), "shard": pa.int64()})
    rows: list[dict[str, Any]] = []
    for name in plan.asked.measure:
        for shard in finished_shards(plan, store, name):
            table = read_shard(store, shard, ["image", "index", "error"])
            whole = {"measurement": name, "model": shard.model, "shard": shard.number}
            whole["shard_failed"] = FAILED in table.schema.metadata
            rows += [{**row, **whole} for row in table.filter(table["error"].is_valid()).to_pylist()]
    return pa.Table.from_pylist(rows, schema)


def _about(plan: Plan, table: str) -> dict[str, Any]:
    """What a file says about itself once it was copied away."""
    weights = {model.label: model.weights for model in plan.models}
    return {"table": table, "study": plan.asked.to_dict(), "versions": dict(plan.versions), "weights": weights}


def _write_parquet(file: Path, schema: pyarrow.Schema, parts: Iterable[pyarrow.Table]) -> Path:
    import pyarrow.parquet as pq

    with _whole(file) as unfinished, pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
        for table in _larger(schema, parts):
            writer.write_table(table)
    return file


def _write_csv(file: Path, schema: pyarrow.Schema, parts: Iterable[pyarrow.Table]) -> Path:
    import pyarrow as pa
    from pyarrow import csv

    kept = [field for field in schema if not pa.types.is_binary(field.type) and not field.name.startswith("region_")]
    plain = pa.schema([pa.field(f.name, pa.string()) if pa.types.is_nested(f.type) else f for f in kept])
    with _whole(file) as unfinished, csv.CSVWriter(unfinished, plain) as writer:
        for table in _larger(schema, parts):
            columns = [_plain(table[field.name], field.type) for field in kept]
            writer.write_table(pa.table(columns, schema=plain))
    return file


def _plain(column: pyarrow.ChunkedArray, kind: pyarrow.DataType) -> pyarrow.ChunkedArray:
    """Lists, structs and maps as JSON."""
    import pyarrow as pa

    if not pa.types.is_nested(kind):
        return column
    return pa.chunked_array([[None if v is None else json.dumps(v) for v in column.to_pylist()]], pa.string())


def _larger(schema: pyarrow.Schema, parts: Iterable[pyarrow.Table]) -> Iterator[pyarrow.Table]:
    """The rows of many small tables as few large ones, all with the same columns."""
    import pyarrow as pa

    def joined(tables: list[pyarrow.Table]) -> pyarrow.Table:
        return pa.concat_tables([schema.empty_table(), *tables], promote_options="default").select(schema.names)

    together: list[pyarrow.Table] = []
    for part in parts:
        together.append(part)
        if sum(table.nbytes for table in together) > AT_ONCE:
            yield joined(together)
            together = []
    if together:
        yield joined(together)


@contextmanager
def _whole(file: Path) -> Iterator[Path]:
    """A file that takes its name when it is finished."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        yield unfinished
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
