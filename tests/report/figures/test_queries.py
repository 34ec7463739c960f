"""SQL of figures and tables means what it says to DuckDB."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.report.figures import queries


def test_where_a_metric_does_not_judge_nothing_is_counted(tmp_path):
    file = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"pointing-game": [1.0, 0.0, 1.0, float("nan"), None]}), file)
    known, source = queries.known("pointing-game"), f"read_parquet({queries.text(str(file))})"
    query = f"SELECT {queries.judged('pointing-game')}, count({known}) FROM {source}"
    assert duckdb.sql(query).fetchall() == [(pytest.approx(2 / 3), 3)]
    assert duckdb.sql(f"SELECT count(*) FROM {source} WHERE {known} IS NULL").fetchall() == [(2,)]
