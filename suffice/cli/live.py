"""A table on standard error that grows while something is trained."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from suffice.cli import output

SHOWN = 15  # rows on a terminal; more would not fit
Row = TypeVar("Row")


@contextlib.contextmanager
def live_table(
    title: str, columns: Sequence[str], cells: Callable[[Row], tuple[str, ...]], stays: Callable[[Row], bool]
) -> Iterator[Callable[[Row], None]]:
    """Show a run: a table that grows on a terminal, one line per row when piped.

    Args:
        title: Of the table.
        columns: Their names.
        cells: The texts of a row.
        stays: Whether a row stays; others are shown, dim, until the next one comes.
    """
    from rich.live import Live

    if not output.stderr.is_terminal:
        print(*columns, sep="\t", file=sys.stderr)

        def line(row: Row) -> None:
            if stays(row):
                print(*cells(row), sep="\t", file=sys.stderr, flush=True)

        yield line
        return
    rows: list[Row] = []

    with Live(console=output.stderr, auto_refresh=False) as live:

        def update(row: Row) -> None:
            table = output.empty_table(title, columns, right=range(len(columns)))
            for kept in rows[-SHOWN:]:
                table.add_row(*cells(kept))
            table.add_row(*cells(row), style=None if stays(row) else "dim")
            if stays(row):
                rows.append(row)
            live.update(table, refresh=True)

        yield update
