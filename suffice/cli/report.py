"""``suffice report``: a study as one page to look at, print and send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.filesize import decimal

from suffice.cli import options as opt
from suffice.cli import output
from suffice.errors import OptionError

EXAMPLES = output.examples(
    "suffice report runs/first",
    "suffice report runs/first --out first.html --figures figures",
    "suffice report runs/first --figures figures --format pdf",
)


def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Folder of a study.")],
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="File of the report; default: report.html in the folder.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(file_okay=False, help="Also write every figure to this folder.")
    ] = None,
    format: Annotated[
        list[str] | None, typer.Option(help="Format of these figures: svg, pdf, or png; may be repeated.")
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help=opt.OPEN_REPORT)] = False,
) -> None:
    """Make the report of a study: findings in sentences, figures, tables, a gallery, methods, and references.

    The report is one HTML file that needs neither a server nor an internet connection. For an unfinished study, it
    covers what is done so far.
    """
    from suffice.draw.files import check_format
    from suffice.report import make_report
    from suffice.study import Study

    if format and figures is None:
        raise OptionError("--format is for the figures; write --figures FOLDER as well.")
    kinds: tuple[Any, ...] = tuple(format or ("svg", "pdf", "png"))
    if out is not None:
        opt.check_file(out)
    if figures is not None:
        opt.check_folder(figures, "--figures")
        for kind in kinds:
            check_format(kind)
    study = Study.open(run)
    page = _place(run, study.store is not None and study.store.local is not None) if out is None else out
    opt.check_file(page)
    with output.asking("Making the report"):
        made = make_report(study)
        path = made.save(page)
        files = [] if figures is None else made.save_figures(figures, kinds)
    size = decimal(path.stat().st_size)
    output.note(f"{len(made.page.findings)} findings, {len(made.figures)} figures, {size}.")
    for file in (path, *files):
        print(file)
    if open_it:
        typer.launch(str(path))


def _place(run: str, local: bool) -> Path:
    """Where the page goes: beside the results, where that is a folder of this machine."""
    return Path(run) / "report.html" if local else Path("report.html")
