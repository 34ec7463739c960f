"""What ``suffice study run --dry-run`` prints: what would be done, how long it would take, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer
from rich.filesize import decimal

from suffice.cli import output
from suffice.progress import clock_time

if TYPE_CHECKING:
    from suffice.study.estimate import Estimate, Expected

COLUMNS = ("measurement", "model", "shards", "images", "done", "forwards", "s / image", "time", "disk")
TOTALS = ("images", "devices", "seconds", "uncertainty", "forwards", "bytes")


def print_estimates(several: list[Estimate], devices: list[int], as_json: bool) -> None:
    """One estimate for each number of images; the table is that of the first."""
    found = several[0]
    if as_json:
        totals = [one.to_dict(count) for one in several for count in devices]
        output.print_json({**totals[0], "totals": [{name: one[name] for name in TOTALS} for one in totals]})
    else:
        rows = [_cells(one) for one in found.lines]
        title = f"{found.study}: what would be done"
        output.print_table(title, COLUMNS, rows, right=range(2, len(COLUMNS)))
        output.note(*_words(several, devices))
    for problem in found.problems:
        output.note(f"Does not work: {problem}")
    if found.problems:
        raise typer.Exit(1)


def _words(several: list[Estimate], devices: list[int]) -> list[str]:
    """The whole of estimates, and what they rest on."""
    from suffice.study.calibrate import ENOUGH, GROUPS

    found = several[0]
    if not found.device:
        return ["Everything is done; there is nothing left to run."]
    totals = [_total(one, count, of_several=len(several) > 1) for one in several for count in devices]
    if all(one.problem for one in found.lines if one.images):
        totals = ["How long it takes is not known."]
    said = [
        f"Estimated from up to {GROUPS} groups of {found.group} images for each line, spread over all images; each "
        "group is measured at once. ± covers the true mean in 95 % of such samples. It does not account for a busier "
        "machine; where larger batches are faster, the real time is shorter.",
    ]
    if rough := [one for one in found.lines if one.rough]:
        said.append(
            f"Rough, because measuring took more than {ENOUGH:.0f} s or there are few images: "
            f"{'; '.join(f'{one.measurement} of {one.model}, {_groups(one.groups)}' for one in rough)}."
        )
    return [*totals, *said]


def _total(found: Estimate, devices: int, *, of_several: bool) -> str:
    where = f"one {found.device}" if devices == 1 else f"{devices} devices such as {found.device}"
    images = f"{found.images:,} images: " if of_several else ""
    about = _more_or_less(clock_time(found.time(devices)), found.uncertainty(devices), clock_time)
    problems = len(found.problems)
    without = f" without the {'line' if problems == 1 else f'{problems} lines'} not measured" if problems else ""
    return (
        f"{images}{about}{without} on {where}, {clock_time(found.setup)} of it to load models "
        f"and warm up; {found.forwards:,.0f} forward passes; {decimal(found.bytes)} on disk."
    )


def _cells(line: Expected) -> tuple[str, ...]:
    counts = (line.measurement, line.model, f"{line.shards:,}", f"{line.images:,}", f"{line.done:,}")
    if not line.seconds:
        return (*counts, "–", "not measured" if line.problem else "–", "–", "–")
    few = f" ({_groups(line.groups)})" if line.rough else ""
    return (
        *counts,
        f"{'~' if line.counted else ''}{line.forwards:,.0f}",
        _more_or_less(number(line.seconds, 3), line.uncertainty, lambda value: number(value, 2)) + few,
        clock_time(line.time),
        decimal(line.bytes),
    )


def _more_or_less(value: str, uncertainty: float | None, written: Callable[[float], str]) -> str:
    return f"{value} ± {'?' if uncertainty is None else written(uncertainty)}"


def _groups(count: int) -> str:
    return f"{count} group{'' if count == 1 else 's'}"


def number(value: float, digits: int) -> str:
    """A number with so many digits, more where it is large.

    Example:
        >>> number(0.12345, 3), number(20.2, 2), number(12345.6, 3)
        ('0.123', '20', '12,346')
    """
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"
