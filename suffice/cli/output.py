"""How commands speak: tables for people, plain lines when piped, JSON on request, progress on the terminal."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = ()) -> None:
    """Print a table: drawn on a terminal, tab-separated lines when piped.

    Args:
        title: Above the table; left out when piped.
        columns: Headings.
        rows: Cells, as many as columns.
        right: Columns to align right.
    """
    if not stdout.is_terminal:
        for row in (columns, *rows):
            print(*row, sep="\t")
        return
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in right else "left")
    for row in rows:
        table.add_row(*map(str, row))
    stdout.print(table)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def note(text: str) -> None:
    """Say something beside the result, on standard error."""
    stderr.print(text, markup=False, soft_wrap=True)


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show progress on the terminal with an estimate of the time left; nothing when standard error is piped.

    Yields:
        A function of (done, total) to be called now and then.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
