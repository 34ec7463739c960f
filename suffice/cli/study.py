"""``suffice study``: models × images × measurements, to the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import RenderableType
from rich.live import Live

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import under
from suffice.cli.study_estimates import number, print_estimates
from suffice.errors import OptionError
from suffice.progress import clock_time

if TYPE_CHECKING:
    from suffice.study import Study
    from suffice.study.status import Line, Status

app = typer.Typer(help="Run, watch, and export studies: models × images × measurements.", no_args_is_help=True)
LOOK_EVERY = 2.0  # seconds between two looks at a study that runs

Run = Annotated[str, typer.Argument(metavar="RUN", help="Folder of a study.")]
STATUS_COLUMNS = ("measurement", "model", "shards", "running", "failed", "images", "images/s", "left")
HEADINGS = {
    "Ray": ("engine", "address", "gpus", "cpus"),
    "Dry run": ("dry_run", "devices", "images", "calibrate", "forwards", "random_weights"),
}


@app.command(
    epilog=output.examples(
        "suffice study run study.toml --out runs/first",
        "suffice study run runs/first  # continues it",
        "suffice study run study.toml --dry-run --devices 8",
        "suffice study run study.toml --dry-run --images 5000 --images 50000 --devices 1 --devices 8",
        "suffice study run study.toml --only evidence --precision fp16 --compile --batch 1024",
        "suffice study run study.toml --engine ray  # all GPUs of this machine",
    )
)
@under(HEADINGS)
def run(
    study: Annotated[str, typer.Argument(metavar="FILE|RUN", help="TOML or JSON file, or the folder of a study.")],
    out: Annotated[str | None, typer.Option(help="Folder, or a URL such as s3://…; default: runs/NAME.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Run only this measurement; may be repeated.")] = None,
    device: opt.Device = None,
    precision: Annotated[
        opt.Precision | None, typer.Option(help="Precision of the models, instead of the file's.")
    ] = None,
    compile: Annotated[bool, typer.Option("--compile", help="Compile the models, whatever the file says.")] = False,
    batch: Annotated[int | None, typer.Option(min=1, help="Inputs per forward pass, instead of the file's.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Retry what failed.")] = False,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="local: in this process. ray: on several GPUs or a cluster.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="With --engine ray: address of the cluster; default: this machine's.")
    ] = None,
    gpus: Annotated[float | None, typer.Option(min=0, help="With --engine ray: GPUs per task.")] = None,
    cpus: Annotated[float | None, typer.Option(min=0, help="With --engine ray: CPUs per task.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done, how long it would take, and how much space.")
    ] = False,
    devices: Annotated[
        list[int] | None,
        typer.Option(min=1, help="With --dry-run: estimate for N devices like this one; may be repeated."),
    ] = None,
    images: Annotated[
        list[int] | None, typer.Option(min=1, help="With --dry-run: estimate for N images; may be repeated.")
    ] = None,
    calibrate: Annotated[
        int | None, typer.Option(min=1, help="With --dry-run: images to measure at once, which is done four times.")
    ] = None,
    forwards: Annotated[
        float | None,
        typer.Option(min=1, help="With --dry-run: forward passes that a search takes per image; default: counted."),
    ] = None,
    random_weights: Annotated[
        bool,
        typer.Option("--random-weights", help="With --dry-run: download no weights; searches then need --forwards."),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Run a study, or continue one: what is finished is kept and not done again.

    Mistakes in the file are reported before any work starts. Ctrl-C stops early; run the same command again to
    continue. Images that cannot be read become rows with an error. So do measurements that fail: the study continues
    without them and ends with exit code 1.
    """
    from suffice.study import Study

    given = {"precision": precision, "compile": compile or None, "batch": batch}
    asked = Study.open(study).changed(**{name: value for name, value in given.items() if value is not None})
    folder = out or (f"runs/{asked.folder_name}" if asked.store is None else study)
    if dry_run:
        with output.asking("Calibrating"):
            begun = None if images else folder  # other images are those of a study that begins
            guess: dict[str, Any] = {"images": calibrate, "forwards": forwards, "random_weights": random_weights}
            expected = asked.dry_run(begun, only=only or (), device=device, **guess)
        found = [expected.of_images(count) for count in images] if images else [expected]
        print_estimates(found, devices or [1], as_json)
        return
    if devices or images or calibrate or forwards or random_weights:
        raise OptionError("--devices, --images, --calibrate, --forwards and --random-weights are for --dry-run.")
    if "://" not in folder:
        opt.writable(Path(folder))
    try:
        with output.asking(asked.asked.name):
            how: dict[str, Any] = {"engine": engine, "address": address, "gpus": gpus, "cpus": cpus}
            done = asked.run(folder, only=only or (), device=device, retry_failed=retry_failed, **how)
    except KeyboardInterrupt:
        opt.note_unfinished(folder)
        raise typer.Exit(130) from None
    reached = done.status()
    _print_status(reached, as_json)
    output.note(f"Written to {folder}")
    if reached.failed:
        _note_failures(done, reached, folder)
        raise typer.Exit(1)


@app.command(epilog=output.examples("suffice study status runs/first", "suffice study status runs/first --watch"))
def status(
    run: Run,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep updating until everything is done or you press Ctrl-C.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Show how far a study is: finished, running, and failed shards, images per second, and time left."""
    from suffice.study import Study

    opened = Study.open(run)
    found = _watched(opened.status) if watch and not as_json else opened.status()
    if not (watch and output.stdout.is_terminal) or as_json:
        _print_status(found, as_json)


@app.command(
    epilog=output.examples(
        "suffice study export runs/first",
        "suffice study export runs/first --format csv --out csv",
        "suffice study export runs/first --tables tables --order insertion",
    )
)
def export(
    run: Run,
    out: Annotated[Path | None, typer.Option(callback=opt.writable, help="Folder; default: RUN/export.")] = None,
    format: Annotated[
        Literal["parquet", "csv"], typer.Option(help="csv has lists as JSON, and no pictures or regions.")
    ] = "parquet",
    tables: Annotated[
        Path | None,
        typer.Option(
            callback=opt.writable, help="Instead write tables of methods × metrics, as in papers, to this folder."
        ),
    ] = None,
    order: Annotated[str | None, typer.Option(help="With --tables: metric to sort the methods by.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Write each table of a study to one file, and two more: the models, and what failed.

    With --tables, write means, standard errors, and tests of scores instead, as Markdown, LaTeX, CSV, JSON, and
    Parquet.
    """
    from suffice.study import Study

    study = Study.open(run)
    if tables is None and order is not None:
        raise OptionError("--order is for --tables.")
    if tables is not None and (out is not None or format != "parquet"):
        raise OptionError(
            "--out and --format are for tables of all rows; --tables has a folder and formats of its own."
        )
    written = study.export(out, format) if tables is None else study.write_score_tables(tables, order)
    if as_json:
        output.print_json({"files": [str(file) for file in written]})
    else:
        pages = [file.name for file in written if file.parent == written[0].parent]
        output.note(f"Written to {written[0].parent}: {', '.join(pages)}")


def _note_failures(study: Study, reached: Status, folder: str) -> None:
    """Say what failed first and why, and how to do it again."""
    from suffice.study.status import reasons_of_failures

    assert study.store is not None
    shards = "1 shard" if reached.failed == 1 else f"{reached.failed:,} shards"
    output.note(
        f"{shards} failed; the column 'error' of the rows says why:",
        *(f"  {reason}" for reason in reasons_of_failures(study.plan, study.store, reached)),
        f"To try again: suffice study run {folder} --retry-failed",
    )


def _watched(look: Callable[[], Status]) -> Status:
    """Show how far a study is until all is done; piped, just wait for that."""
    found = look()
    with Live(_live_table(found), console=output.stdout, auto_refresh=False) as live:
        while True:
            live.update(_live_table(found) if output.stdout.is_terminal else "", refresh=True)
            if found.finished:
                return found
            time.sleep(LOOK_EVERY)
            found = look()


def _live_table(found: Status) -> RenderableType:
    table = output.empty_table(_title(found), STATUS_COLUMNS, range(2, len(STATUS_COLUMNS)))
    for line in found.lines:
        table.add_row(*map(str, _cells(line, found)))
    return table


def _print_status(found: Status, as_json: bool) -> None:
    if as_json:
        output.print_json(found.to_dict())
        return
    rows = [_cells(line, found) for line in found.lines]
    output.print_table(_title(found), STATUS_COLUMNS, rows, right=range(2, len(STATUS_COLUMNS)))
    if not output.stdout.is_terminal:
        output.note(_title(found))


def _title(found: Status) -> str:
    shards, done = sum(line.shards for line in found.lines), sum(line.done for line in found.lines)
    parts = [found.name, f"{done:,}/{shards:,} shards"]
    if found.failed:
        parts.append(f"{found.failed:,} failed")
    if not found.finished:
        parts.append(f"{found.workers} at work" if found.workers else "no worker is running")
        parts.append("time left not yet known" if found.time_left is None else f"{clock_time(found.time_left)} left")
    return " · ".join(parts)


def _cells(line: Line, found: Status) -> tuple[object, ...]:
    left = found.left(line)
    return (
        line.measurement,
        line.model,
        f"{line.done:,}/{line.shards:,}",
        line.running,
        line.failed,
        f"{line.images_done:,}/{line.images:,}",
        "–" if line.rate is None else number(line.rate, 3),
        "–" if left is None else clock_time(left) if left else "",
    )
