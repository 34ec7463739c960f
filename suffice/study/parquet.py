"""Reading Parquet files, also those that are opened by Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow


def read_parquet(file: Any, columns: Sequence[str] | None = None) -> pyarrow.Table:
    """The rows of a Parquet file, with what it says about itself.

    pyarrow would read ahead in threads of its own, as ``pyarrow.parquet.read_table`` always does. One of them that lets
    go of a Python file, or of bytes, while Python ends aborts the process. Here only the caller's thread touches them.

    Args:
        file: A path, or a file that is open.
        columns: Of these the ones that it has, in this order; default: all.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(file, pre_buffer=False) as opened:
        if columns is None:
            return opened.read(use_threads=False)
        table = opened.read(list(columns), use_threads=False)
    return table.select([name for name in dict.fromkeys(columns) if name in table.column_names])
