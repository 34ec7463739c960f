"""Tables of methods × metrics from the scores of a study, as papers have them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from suffice.errors import StudyError
from suffice.metrics.score_table import ScoreTable, TableRow
from suffice.study.kinds.metrics import Metrics
from suffice.study.plan import Plan, Shard
from suffice.study.reading import finished_shards, read_shard
from suffice.study.shard import FAILED
from suffice.study.store import Store
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow


def score_tables(plan: Plan, store: Store, order: str | None = None) -> dict[str, ScoreTable]:
    """One table for each table of scores of a study, by its name.

    A row is a model and a method, once all its images are done; ``seconds`` are those of its map, and ``forwards`` the
    inputs that it put through the model, both for an image that was measured. Images with an error have no values, and
    those with an error in every row are left out.

    Args:
        plan: Of the study.
        store: Where it lies.
        order: A metric by which rows of a model are ordered in the tables that have it; default: as in the study.
    """
    wanted = [name for name in plan.asked.tables if _is_scores(plan, name)]
    if not wanted:
        raise StudyError("The study has no scores: no measurement of the kind 'metrics'.")
    tables = {name: found for name in wanted if (found := _table(plan, store, name)) is not None}
    if not tables:
        raise StudyError(f"No method has all its scores yet, in {', '.join(wanted)}.")
    known = dict.fromkeys(metric for one in tables.values() for metric in one.metrics)
    if order is not None and order not in known:
        raise StudyError(f"order={order!r}; it can be {', '.join(known)}.")
    return {name: one.ordered(order) if order in one.metrics else one for name, one in tables.items()}


def write_score_tables(tables: Mapping[str, ScoreTable], plan: Plan, out: str | Path, title: str) -> list[Path]:
    """Write tables to a folder, each as a page ``TITLE-TABLE.md`` and in a folder of this name; returns the files.

    In the folder are Markdown with tests of significance, LaTeX, CSV, JSON, and Parquet with the value of every image.
    """
    written: list[Path] = []
    for name, table in tables.items():
        page = Path(out) / f"{title}-{name}.md"
        written += [page, *table.write(page.with_suffix(""))]
        page.write_text(f"{table.to_markdown(notes=False)}\n{_made(plan, name, table)}\n", encoding="utf-8")
    return written


def _is_scores(plan: Plan, name: str) -> bool:
    return all(isinstance(plan.measurements[one], Metrics) for one in plan.asked.named(name))


def _table(plan: Plan, store: Store, name: str) -> ScoreTable | None:
    """The table of a name; None where no row is done."""
    rows: list[TableRow] = []
    skipped: dict[int, Skip] = {}
    measured: set[int] = set()
    about: dict[str, Any] = {}
    names = plan.asked.named(name)
    for model in plan.models:
        for one in names:
            shards = finished_shards(plan, store, one, model.label)
            if shards and len(shards) == plan.blocks:
                rows.append(_row(plan, store, shards, skipped, measured, about))
    measurement = plan.measurements[names[0]]
    if not rows or not isinstance(measurement, Metrics):
        return None
    changed = [f"{option}={value}" for option, value in measurement.options.items()]
    protocol = ", ".join([measurement.protocol, *changed])
    index = sorted(measured)
    kept = tuple(_of_images(row, index) for row in rows)
    left_out = tuple(skipped.values())
    return ScoreTable(kept, tuple(measurement.metrics), protocol, len(index), left_out, about, tuple(index))


def _row(
    plan: Plan,
    store: Store,
    shards: Sequence[Shard],
    skipped: dict[int, Skip],
    measured: set[int],
    about: dict[str, Any],
) -> TableRow:
    """A model and a method; to the last three are added images with an error, those without, and the model's facts."""
    measurement = plan.measurements[shards[0].measurement]
    assert isinstance(measurement, Metrics)
    count = len(plan.names)
    values = {metric: torch.full((count,), torch.nan, dtype=torch.float64) for metric in measurement.metrics}
    ids, targets = [""] * count, torch.full((count,), -1)
    for shard in shards:
        found = read_shard(store, shard)
        for index, own in zip(found["index"].to_pylist(), found["image_id"].to_pylist(), strict=True):
            ids[index] = own or ""
        for row in found.filter(found["error"].is_valid()).select(["index", "image", "error"]).to_pylist():
            skipped.setdefault(row["index"], Skip(row["index"], row["image"], row["error"]))
        good = found.filter(found["error"].is_null())
        if good.num_rows:
            there = torch.from_numpy(good["index"].to_numpy().copy())
            measured.update(there.tolist())
            targets[there] = torch.tensor([-1 if t is None else t for t in good["target"].to_pylist()])
            for metric, column in values.items():
                column[there] = _values(good, metric)
        if good.num_rows:  # or nothing was measured
            about.setdefault(shard.model, json.loads(found.schema.metadata[b"suffice"]))
    seconds, forwards = spent(store, [read for shard in shards for read in plan.inputs(shard)])
    floats = {metric: column.float() for metric, column in values.items()}
    facts = {} if forwards is None else {"forwards": forwards}
    known = targets if (targets >= 0).any() else None
    return TableRow(shards[0].model, measurement.label, floats, seconds, facts, plan.names, ids, known)


def _of_images(row: TableRow, index: Sequence[int]) -> TableRow:
    """The part of a row that is about these images."""
    return replace(
        row,
        values={metric: values[index] for metric, values in row.values.items()},
        names=[row.names[i] for i in index],
        ids=[row.ids[i] for i in index],
        targets=None if row.targets is None else row.targets[index],
    )


def _values(rows: pyarrow.Table, metric: str) -> torch.Tensor:
    """The values of a metric, or of a part of one, [N] float64; NaN where there is none."""
    if metric not in rows.column_names:
        start = f"{metric.partition('/')[0]}/"
        known = ", ".join(name for name in rows.column_names if name.startswith(start)) or "none"
        raise StudyError(f"There is no {metric!r}: the parts under this protocol are {known}.")
    return torch.from_numpy(rows[metric].cast("float64").to_numpy().copy())  # of what is null, NaN


def spent(store: Store, shards: Sequence[Shard]) -> tuple[float, float | None]:
    """Seconds, and inputs that were put through the model, of an image; NaN and None where none was measured."""
    import pyarrow.parquet as pq

    seconds = forwards = images = 0.0
    for shard in shards:
        metadata = pq.read_schema(io.BytesIO(store.read(shard.table))).metadata
        if FAILED not in metadata:
            own = json.loads(metadata[b"spent"])
            seconds, forwards = seconds + own["seconds"], forwards + own["forwards"]
            images += own["images"]
    return (seconds / images, forwards / images) if images else (float("nan"), None)


def _made(plan: Plan, name: str, table: ScoreTable) -> str:
    """How a table was made, in a line."""
    how = dict.fromkeys([plan.asked.run.precision, *(str(one["device"]) for one in table.about.values())])
    return f"Study `{plan.asked.name}`, table `{name}`: {', '.join(how)}."
