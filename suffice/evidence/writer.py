"""Writing the table of evidence while the search goes on."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from suffice.evidence.result import Evidence
from suffice.evidence.statistics import evidence_table, table_schema

if TYPE_CHECKING:
    import pyarrow


class TableWriter:
    """Makes rows of evidence block by block, in a thread beside the search, and writes them to a Parquet file.

    A context manager: it closes the file also on an error or on Ctrl-C, with all rows so far.

    Args:
        model: Name of the model.
        family: Its family.
        path: The Parquet file; None to keep no file, just the rows.
        block: Images per block.

    Attributes:
        rows: Images taken in so far.
    """

    def __init__(self, model: str, family: str, path: str | Path | None = None, block: int = 64) -> None:
        self._names = (model, family)
        self._path, self._block = path, block
        self._waiting: list[Evidence] = []
        self._tables: list[Future[pyarrow.Table]] = []
        self._thread = ThreadPoolExecutor(1)
        self._file: Any = None
        self.rows = 0

    def __enter__(self) -> TableWriter:
        if self._path is not None:
            import pyarrow.parquet as pq

            self._file = pq.ParquetWriter(self._path, table_schema())
        return self

    def add(self, evidence: Evidence) -> None:
        """Take in the evidence of one image."""
        self.rows += 1
        self._waiting.append(evidence)
        if len(self._waiting) == self._block:
            self._hand_over()

    def to_arrow(self) -> pyarrow.Table:
        """All rows, once the work is over."""
        import pyarrow as pa

        return pa.concat_tables([t.result() for t in self._tables] or [table_schema().empty_table()])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hand_over()
        self._thread.shutdown(wait=True)
        if self._file is not None:
            self._file.close()
        if error is None:
            for table in self._tables:
                table.result()  # an error in the thread is an error of the work

    def _hand_over(self) -> None:
        block, self._waiting = self._waiting, []
        if block:
            self._tables.append(self._thread.submit(self._make, block))

    def _make(self, block: list[Evidence]) -> pyarrow.Table:
        table = evidence_table(block, *self._names)
        if self._file is not None:
            self._file.write_table(table)
        return table
