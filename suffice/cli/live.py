"""What commands that train have in common: a table that grows, and a checkpoint to go on from."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import typer

from suffice.cli import output
from suffice.errors import CheckpointError, OptionError

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


def checkpoint_of(checkpoint: Path, resume: bool) -> Path:
    """The file in which the state of a run is saved; it has to be there to go on from, and must not otherwise."""
    if checkpoint.exists() and not resume:
        raise OptionError(
            f"{checkpoint} holds an unfinished run. Continue it with --resume, delete it, or choose another --out."
        )
    if resume and not checkpoint.exists():
        raise CheckpointError(f"There is nothing to resume: {checkpoint} does not exist. Start without --resume.")
    return checkpoint


@contextlib.contextmanager
def saved_on_interrupt(checkpoint: Path) -> Iterator[None]:
    """After Ctrl-C, say how to go on, or that nothing was kept."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint.exists():
            again = shlex.join(["suffice", *(a for a in sys.argv[1:] if a != "--resume"), "--resume"])
            output.note(f"Stopped; the state is saved in {checkpoint}. Continue with:\n  {again}")
        else:
            output.note(output.NOTHING_KEPT)
        raise typer.Exit(130) from None


def tidy(checkpoint: Path) -> None:
    """Remove the checkpoint of a run whose result is safe."""
    with contextlib.suppress(OSError):
        checkpoint.unlink(missing_ok=True)
        checkpoint.parent.rmdir()
