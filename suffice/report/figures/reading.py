"""What figures read from studies: columns of tables without errors, families of models, and where numbers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from suffice.errors import StudyError
from suffice.study.reading import finished_shards, read_shard

if TYPE_CHECKING:
    import pyarrow

    from suffice.study import Study


def tables_of(study: Study, kind: str, measurement: str | None = None) -> list[str]:
    """Tables of a study whose measurements are of a kind, or just the one of a name; there is at least one."""
    plan = study.plan
    found = [name for name in study.tables if {plan.measurements[one].kind for one in plan.asked.named(name)} == {kind}]
    if measurement is not None and measurement not in found:
        raise StudyError(
            f"The study has no {measurement!r} of the kind {kind!r}; there are {', '.join(found) or 'none'}."
        )
    if not found:
        raise StudyError(f"The study has no measurement of the kind {kind!r}.")
    return found if measurement is None else [measurement]


def good_rows(study: Study, table: str, columns: Sequence[str], *, errors: bool = False) -> pyarrow.Table:
    """Some columns, or all, of the rows without errors, ``model`` before them; those that no row has are left out.

    The column ``error``, then empty, is kept with ``errors``.
    """
    import pyarrow as pa

    assert study.store is not None
    parts = []
    for shard in finished_shards(study.plan, study.store, table):
        rows = read_shard(study.store, shard).replace_schema_metadata() if not columns else _some(study, shard, columns)
        rows = rows.filter(rows["error"].is_null())
        rows = rows if errors else rows.drop_columns(["error"])
        if rows.num_rows:
            parts.append(rows.add_column(0, "model", pa.array([shard.model] * rows.num_rows, pa.string())))
    if not parts:
        raise StudyError(f"Nothing of {table} is done yet.")
    return pa.concat_tables(parts, promote_options="default")


def _some(study: Study, shard: Any, columns: Sequence[str]) -> pyarrow.Table:
    """The columns of a shard that it has; where it failed it has only those that all tables have."""
    assert study.store is not None
    return read_shard(study.store, shard, (*columns, "error")).replace_schema_metadata()


def families_of(study: Study, models: Sequence[str] | None = None) -> dict[str, str]:
    """Families by the label of a model, in the order of the study; of some models only, where they are given."""
    wanted = None if models is None else set(models)
    return {one.label: one.family or "" for one in study.plan.models if wanted is None or one.label in wanted}


def origin(study: Study, tables: Sequence[str], made: str = "") -> str:
    """Where numbers come from: the measurements with their settings, and what made of them what is no SQL."""
    plan = study.plan
    lines = [f"Study {plan.asked.name}: {len(plan.models)} models, {len(plan.names)} images."]
    for table in tables:
        for name in plan.asked.named(table):
            asked = {key: value for key, value in plan.asked.measure[name].items() if key != "models"}
            lines.append(f"Measurement {name}: {settings_in_words(asked)}.")
    return "\n".join([*lines, *([made.strip()] if made else [])])


def settings_in_words(settings: Mapping[str, Any]) -> str:
    """Settings as ``kind=evidence, grid=3``.

    Example:
        >>> settings_in_words({"kind": "evidence", "grid": 3})
        'kind=evidence, grid=3'
    """
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def by_model(rows: pyarrow.Table) -> dict[str, pyarrow.Table]:
    """The rows of each model, in the order in which models come."""
    import pyarrow.compute as pc

    names = pc.unique(rows["model"]).to_pylist()
    return {name: rows.filter(pc.equal(rows["model"], name)) for name in names}


def aligned(rows: pyarrow.Table, column: str) -> dict[str, list[float]]:
    """For each model one number an image, all in the order of the images; NaN where an image has none."""
    index = sorted(set(rows["index"].to_pylist()))
    place = {i: n for n, i in enumerate(index)}
    found: dict[str, list[float]] = {}
    for model, own in by_model(rows).items():
        values = [float("nan")] * len(index)
        for i, value in zip(own["index"].to_pylist(), own[column].to_pylist(), strict=True):
            if value is not None:
                values[place[i]] = float(value)
        found[model] = values
    return found
