"""Tables of a study as single files."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import StudyError
from suffice.study import export as exporting
from suffice.study.kinds.predictions import Predictions
from tests.study.small import small_study, write_pictures


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """One with a broken image, and a block that failed."""
    folder = tmp_path_factory.mktemp("exported")
    pictures = write_pictures(folder / "pictures", 10)
    (pictures / "001.png").write_bytes(b"")
    working = Predictions.measure

    def failing(self, work):
        if work.net.family == "sums" and work.images[0].name == "000.png":
            raise RuntimeError("ill")
        return working(self, work)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Predictions, "measure", failing)
        return small_study(pictures).run(folder / "run", device="cpu", only=["said", "evidence"])


def without_metadata(table):
    return table.replace_schema_metadata()


@pytest.mark.parametrize("at_once", [1, 1 << 26])
def test_parquet_files_hold_the_tables(tmp_path, study, at_once, monkeypatch):
    monkeypatch.setattr(exporting, "AT_ONCE", at_once)
    written = study.export(tmp_path / "out")
    assert [file.name for file in written] == ["said.parquet", "evidence.parquet", "models.parquet", "failures.parquet"]
    assert sorted(tmp_path.glob("out/*")) == sorted(written)  # and nothing else is left
    for name in ("said", "evidence"):
        file = tmp_path / f"out/{name}.parquet"
        assert without_metadata(pq.read_table(file)).equals(study.table(name))
        assert pq.ParquetFile(file).num_row_groups == (6 if at_once == 1 else 1)
    about = json.loads(pq.read_schema(tmp_path / "out/said.parquet").metadata[b"suffice"])
    assert about["table"] == "said"
    assert about["study"]["measure"]["said"]["kind"] == "predictions"
    assert about["weights"]["sum"] == study.plan.model("sum").weights


def test_models_and_failures(tmp_path, study):
    study.export(tmp_path / "out")
    models = pq.read_table(tmp_path / "out/models.parquet").to_pylist()
    assert [(m["model"], m["family"]) for m in models] == [("tests.study.small:any_of", "oracle"), ("sum", "sums")]
    failures = pq.read_table(tmp_path / "out/failures.parquet").to_pylist()
    # A broken image for each model and measurement, and a failed block of four with this image in it.
    assert len(failures) == 2 * 2 - 1 + 4
    assert {f["error"] for f in failures if f["shard_failed"]} == {"RuntimeError: ill"}
    assert [f["index"] for f in failures if f["shard_failed"]] == [0, 1, 2, 3]
    assert {f["image"] for f in failures if not f["shard_failed"]} == {"001.png"}


def test_csv_has_lists_as_json(tmp_path, study):
    study.export(tmp_path / "out", "csv")
    with open(tmp_path / "out/evidence.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    table = study.table("evidence")
    assert [row["image"] for row in rows] == table["image"].to_pylist()
    assert [json.loads(row["mse_cells"] or "null") for row in rows] == table["mse_cells"].to_pylist()
    assert [float(row["confidence"] or "nan") for row in rows] == pytest.approx(
        [float("nan") if c is None else c for c in table["confidence"].to_pylist()], nan_ok=True
    )
    assert "picture" not in rows[0]
    assert pa.types.is_binary(table.schema.field("picture").type)


def test_where_files_go(tmp_path, study):
    folder = Path(study.store.place)
    assert study.export()[0] == folder / "export/said.parquet"
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="cannot be written to"):
        study.export(tmp_path / "file")
    with pytest.raises(StudyError, match="Say where"):
        small_study(folder.parent / "pictures").run("memory://nowhere", device="cpu", only="maps").export()
