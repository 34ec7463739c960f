"""Parquet files that are opened by Python: read as they are, and nothing is left running when a script ends."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.study import parquet
from suffice.study.parquet import read_parquet

TABLE = pa.table({f"column {i}": list(range(5000)) for i in range(40)}).replace_schema_metadata({"suffice": "{}"})
# Without the package, so that a script begins, and ends, as soon as it can.
SCRIPT = """
import io, pathlib, runpy, sys
read_parquet = runpy.run_path(sys.argv[1])["read_parquet"]
for _ in range(int(sys.argv[3])):
    read_parquet(io.BytesIO(pathlib.Path(sys.argv[2]).read_bytes()))
    with open(sys.argv[2], "rb") as file:
        read_parquet(file)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables") / "table.parquet"
    pq.write_table(TABLE, made)
    return made


def test_tables_and_columns_are_those_of_the_file(file):
    for source in (file, io.BytesIO(file.read_bytes())):
        read = read_parquet(source)
        assert read.equals(TABLE)
        assert read.schema.metadata == TABLE.schema.metadata
    some = read_parquet(file, ["column 7", "no such column", "column 3", "column 7"])
    assert some.column_names == ["column 7", "column 3"]
    assert some.schema.metadata == TABLE.schema.metadata


def test_a_script_that_ends_after_reading_ends_well(file):
    for times in (1, 20) * 6:  # with threads of pyarrow one in three was aborted
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, parquet.__file__, file, str(times)], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_nothing_else_gives_opened_files_to_pyarrow():
    package = Path(suffice.__file__).parent
    reading = {
        str(module.relative_to(package))
        for module in package.rglob("*.py")
        if re.search(r"\bpq\.(read_table|ParquetFile)\(|\bdataset\(", module.read_text(encoding="utf-8"))
    }
    # Evidence is read from paths, which pyarrow opens itself.
    assert reading == {"study/parquet.py", "evidence/files/storage.py"}
