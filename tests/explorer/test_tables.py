"""Tables of a study through DuckDB: the same rows as the study has, whatever is asked."""

import math
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice import Study
from suffice.errors import OptionError, SufficeError
from suffice.explorer.reading import Fields
from suffice.explorer.tables import Tables


@pytest.fixture(scope="module")
def tables(small_study):
    opened = Tables(small_study)
    yield opened
    opened.close()


def rows(tables, **fields):
    found = tables.rows(Fields({"table": "evidence", **fields}))
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]], found


def test_all_rows_are_there_in_pages(tables, small_study):
    table = small_study.table("evidence")
    first, about = rows(tables, count=5)
    rest, _ = rows(tables, count=50, offset=5)
    assert about["all"] == table.num_rows == 12
    assert about["columns"][0] == "model"
    together = {(row["model"], row["image"]): row["confidence"] for row in first + rest}
    expected = {(row["model"], row["image"]): row["confidence"] for row in table.to_pylist()}
    assert together == pytest.approx(expected)


def test_filters_and_order(tables, small_study):
    expected = [row for row in small_study.table("evidence").to_pylist() if row["model"] == "zoo/deit"]
    limit = sorted(row["confidence"] for row in expected)[2]
    expected = sorted((r for r in expected if r["confidence"] >= limit), key=lambda r: -r["confidence"])
    filters = [
        {"column": "model", "by": "is", "value": "zoo/deit"},
        {"column": "confidence", "by": "≥", "value": limit},
    ]
    found, about = rows(tables, filters=filters, sort="confidence", descending=True)
    assert [row["image"] for row in found] == [row["image"] for row in expected]
    assert about["all"] == len(expected)
    assert rows(tables, filters=[{"column": "error", "by": "missing"}])[1]["all"] == 12
    assert rows(tables, filters=[{"column": "image", "by": "contains", "value": "[3]"}])[1]["all"] == 2


def test_lists_have_or_have_not(tables, small_study):
    having = [row for row in small_study.table("evidence").to_pylist() if 2 in row["sizes"]]
    assert rows(tables, filters=[{"column": "sizes", "by": "has", "value": "2"}])[1]["all"] == len(having)
    assert rows(tables, filters=[{"column": "sizes", "by": "has", "value": "'"}])[1]["all"] == 0


def test_what_is_not_a_number_is_missing(small_study, tmp_path):
    """Metrics have NaN where they do not judge; DuckDB takes it for the largest number."""
    shutil.copytree(small_study.store.place, tmp_path / "run")
    file = next((tmp_path / "run/tables/measurement=evidence").rglob("*.parquet"))
    old = pq.read_table(file)
    at = old.column_names.index("mean_size")
    values = [math.nan, *old["mean_size"].to_pylist()[1:]]
    pq.write_table(old.set_column(at, old.schema.field(at), pa.array(values, old.schema.field(at).type)), file)
    tables = Tables(Study.open(tmp_path / "run"))
    assert rows(tables, filters=[{"column": "mean_size", "by": "missing"}])[1]["all"] == 1
    assert rows(tables, filters=[{"column": "mean_size", "by": "≥", "value": 0}])[1]["all"] == 11
    found, about = rows(tables, sort="mean_size", descending=True, bins="mean_size")
    assert found[-1]["mean_size"] is None
    assert sum(about["bins"]["counts"]) == 11
    tables.close()


def test_labels_of_models_are_texts_whatever_they_look_like(tmp_path):
    models = [{"name": "zoo/resnet", "label": "2024"}]
    study = Study("years", "scenes:test[:2]", models, {"said": {"kind": "predictions"}})
    tables = Tables(study.run(tmp_path, device="cpu"))
    found = tables.rows(Fields({"table": "said", "filters": [{"column": "model", "by": "is", "value": "2024"}]}))
    assert [row[0] for row in found["rows"]] == ["2024", "2024"]
    tables.close()


def test_how_rows_spread(tables):
    _, found = rows(tables, bins="confidence")
    assert sum(found["bins"]["counts"]) == 12
    _, found = rows(tables, bins="model")
    assert dict(found["bins"]["values"]) == {"zoo/resnet": 6, "zoo/deit": 6}
    chosen = [{"column": "model", "by": "is", "value": "zoo/deit"}]
    assert sum(rows(tables, bins="confidence", filters=chosen)[1]["bins"]["counts"]) == 6


@pytest.mark.parametrize(
    "fields",
    [
        {"table": "nowhere"},
        {"table": "../../etc"},
        {"sort": "confidence; DROP TABLE x"},
        {"sort": 'confidence" DESC --'},
        {"bins": "1 FROM read_csv('/etc/passwd') --"},
        {"filters": [{"column": "1=1 --", "by": "is", "value": 1}]},
        {"filters": [{"column": "confidence", "by": "is", "value": "0 OR 1=1"}]},
        {"filters": [{"column": "confidence", "by": "= 1 OR", "value": 1}]},
        {"filters": [{"column": "model", "by": "is", "value": ["a"]}]},
        {"filters": [{"column": "confidence", "by": "is", "value": 10**40}]},
        {"filters": ["model"]},
        {"filters": "model"},
        {"offset": -1},
        {"count": 10**6},
    ],
)
def test_only_known_columns_comparisons_and_values(tables, fields):
    with pytest.raises(SufficeError):
        rows(tables, **fields)


def test_values_are_never_part_of_a_query(tables):
    found, _ = rows(tables, filters=[{"column": "model", "by": "is", "value": "zoo/deit' OR '1'='1"}])
    assert found == []


def test_the_page_hears_what_columns_there_are(tables):
    about = {table["name"]: table for table in tables.about["tables"]}
    columns = {column["name"]: column for column in about["evidence"]["columns"]}
    assert columns["model"]["values"] == ["zoo/deit", "zoo/resnet"]
    assert columns["confidence"]["kind"] == "number"
    assert columns["mse_cells"]["kind"] == "list"
    assert "picture" not in columns


def test_a_study_that_was_not_run_is_refused(tmp_path):
    study = Study("later", "scenes:test[:2]", ["zoo/resnet"], {"said": {"kind": "predictions"}})
    with pytest.raises(SufficeError, match="were run"):
        Tables(study)
    with pytest.raises(OptionError, match="expected one of"):
        Fields({"table": "x"}).one_of("table", ["y"])
