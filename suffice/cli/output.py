"""How commands speak: tables for people, plain lines when piped, JSON on request, progress on the terminal."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from suffice.cli.messages import of_this_command
from suffice.progress import reporting

if TYPE_CHECKING:
    from suffice.vision.stream import Skip

# Names of files and studies are printed as they are, also where they have brackets.
stdout = Console(highlight=False, markup=False, emoji=False)
stderr = Console(stderr=True, highlight=False, markup=False, emoji=False)

NOTHING_KEPT = "Stopped; nothing was kept."


def examples(*commands: str) -> str:
    """The end of a command's help."""
    return "\n\n".join(["Examples:", *(f"[green]{command}[/green]" for command in commands)])


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = ()) -> None:
    """Print a table: drawn on a terminal, tab-separated lines without the title when piped.

    Args:
        title: Above the table.
        columns: Headings.
        rows: Cells, as many as columns.
        right: Columns to align right.
    """
    if not stdout.is_terminal:
        for row in (columns, *rows):
            print(*row, sep="\t")
        return
    table = empty_table(title, columns, right)
    for row in rows:
        table.add_row(*map(str, row))
    stdout.print(table)


def print_titled(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = ()) -> None:
    """Print one of several tables: as above, with a line for the title when piped."""
    if not stdout.is_terminal:
        print(f"# {title}")
    print_table(title, columns, rows, right)


def empty_table(title: str, columns: Sequence[str], right: Sequence[int] = ()) -> Table:
    """A table to be filled with rows."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in right else "left")
    return table


def print_json(value: Any) -> None:
    """Print a value as JSON, which has no NaN and no infinity: they become null."""
    print(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def note(*lines: str) -> None:
    """Say something beside the result, on standard error."""
    for line in lines:
        stderr.print(line, soft_wrap=True)


def finish(skipped: Sequence[Skip], stopped: bool = False) -> None:
    """Name the images that were skipped; exit with 130 if the user stopped the work, with 1 if any was skipped."""
    note(*(of_this_command(f"Skipped {skip.name}: {skip.reason}") for skip in skipped))
    if stopped or skipped:
        raise typer.Exit(130 if stopped else 1)


@contextlib.contextmanager
def all_or_nothing() -> Iterator[None]:
    """After Ctrl-C in work that keeps nothing before its end, say so."""
    try:
        yield
    except KeyboardInterrupt:
        note(NOTHING_KEPT)
        raise typer.Exit(130) from None


def asking(what: str) -> contextlib.AbstractContextManager[None]:
    """Show how many questions are put to models inside, how fast, and the time left, unless standard error is piped."""
    return reporting(stderr.is_terminal, what, console=stderr)


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many of some things are done, and the time left, unless piped; yields its (done, total)."""
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
