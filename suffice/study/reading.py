"""Reading the tables of a study."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from suffice.errors import StudyError
from suffice.plugins import did_you_mean
from suffice.study.plan import Plan
from suffice.study.store import Store

if TYPE_CHECKING:
    import pyarrow


def read_table(plan: Plan, store: Store, measurement: str) -> pyarrow.Table:
    """All rows of a measurement so far, in order of models and images; ``model`` is the first column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if measurement not in plan.asked.measure:
        hint = did_you_mean(measurement, plan.asked.measure) or f" There are {', '.join(plan.asked.measure)}."
        raise StudyError(f"There is no measurement {measurement!r}.{hint}")
    parts: list[pyarrow.Table] = []
    columns: list[str] = []
    for shard in plan.shards([measurement]):
        if store.exists(shard.table):
            part = pq.read_table(io.BytesIO(store.read(shard.table))).replace_schema_metadata()
            parts.append(part.add_column(0, "model", pa.array([shard.model] * part.num_rows, pa.string())))
            # Shards that failed, or whose images cannot be read, have the common columns only.
            columns = max(columns, parts[-1].column_names, key=len)
    if not parts:
        raise StudyError(f"Nothing of {measurement} is done yet.")
    return pa.concat_tables(parts, promote_options="default").select(columns)
