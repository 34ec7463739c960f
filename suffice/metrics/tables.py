"""Tables as text and as files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from suffice.vision.provenance import with_about


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Lines of a table in Markdown; the columns ``right`` are flush right.

    Example:
        >>> markdown_table(["method", "mean"], [["rise", "0.83"]], right=[1])
        ['| method | mean |', '|---|---:|', '| rise | 0.83 |']
    """
    flush = set(right)
    rule = "|" + "".join("---:|" if column in flush else "---|" for column in range(len(headings)))
    first, *rest = (f"| {' | '.join(cells)} |" for cells in (headings, *rows))
    return [first, rule, *rest]


def write_tables(
    folder: str | Path,
    name: str,
    texts: Mapping[str, str],
    summary: Sequence[Mapping[str, Any]],
    long: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
) -> list[Path]:
    """Write texts by their suffix, rows of a summary as CSV and JSON, and those of a long table as Parquet; the files.

    JSON has what they are about beside the rows, Parquet in the schema's metadata.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = {suffix: Path(folder) / f"{name}.{suffix}" for suffix in (*texts, "csv", "json", "parquet")}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for suffix, text in texts.items():
        files[suffix].write_text(text, encoding="utf-8")
    with files["csv"].open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(summary[0]) if summary else [])
        writer.writeheader()
        writer.writerows(summary)
    rows = [{key: plain(value) for key, value in row.items()} for row in summary]
    files["json"].write_text(
        json.dumps({**about, "rows": rows}, indent=2, ensure_ascii=False, default=repr) + "\n", encoding="utf-8"
    )
    pq.write_table(with_about(pa.Table.from_pylist(long), about), files["parquet"])
    return list(files.values())


def plain(value: Any) -> Any:
    """A value as JSON can say it: what is not a finite number is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
