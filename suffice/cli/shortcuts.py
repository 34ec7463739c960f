"""``suffice shortcuts``: classes that a model decides without their object."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.compare import PerhapsModels, StudyOrImages
from suffice.cli.groups import flat
from suffice.errors import OptionError

if TYPE_CHECKING:
    from suffice.compare import Section

SHOWN = 20  # classes of a model, if no more are suspected

EXAMPLES = output.examples(
    "suffice shortcuts runs/first --out shortcuts",
    "suffice shortcuts photos.csv --boxes boxes.csv --model timm/resnet50 --out shortcuts",
    "suffice shortcuts scenes:test-marked[:200] --model mymodule:make_model",
)


@flat
def shortcuts(
    images: StudyOrImages,
    model: PerhapsModels,
    classes: Annotated[
        Literal["explained", "label"], typer.Option(help="Group images by the class explained or by their label.")
    ] = "explained",
    grid: Annotated[int, typer.Option(help="With --model: cells per side of the grid for evidence.")] = 7,
    touch: Annotated[
        float, typer.Option(help="A cell is outside the object if the object covers less than this share of it.")
    ] = 0.05,
    least: Annotated[float, typer.Option(help="A place must recur in at least this share of a class's images.")] = 0.25,
    count: opt.FirstImages = None,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=opt.writable,
            help="Folder for tables (CSV, JSON) and pictures of suspected classes; with --model, also for the study.",
        ),
    ] = None,
    format: opt.PictureFormat = "svg",
    overwrite: opt.Overwrite = False,
    seed: opt.Seed = 0,
    batch: opt.Batch = None,
    precision: opt.ModelPrecision = "fp32",
    compile: opt.Compile = False,
    as_json: opt.AsJson = False,
) -> None:
    """Find classes that are decided without their object: by the water behind ducks, or by a mark in a corner.

    Images need masks of their objects, or boxes around them: scenes have masks, and a list can have a column mask or
    boxes. A class is suspected if the same cell outside the object is part of what is enough in many of its images, and
    in clearly fewer images of other classes. With --model, a study is made first, in --out or a temporary folder; with
    --out, run the same command again to continue it.
    """
    from suffice.compare import shortcuts_of_study, write_shortcuts
    from suffice.compare.of_shortcuts import of_models
    from suffice.draw.files import check_format
    from suffice.study import Study
    from suffice.study.taking_up import take_up

    check_format(format)
    stopped = False
    with ExitStack() as stack:
        folder = Path(images.images[0])
        if model.model:
            images.check(images.open(count))
            run = {"precision": precision, "compile": compile, "batch": batch or "auto", "seed": seed}
            wanted = {"evidence": {"kind": "evidence", "grid": grid}}
            asked = Study("shortcuts", images.choice(count), [one.choice() for one in model.each], wanted, run)
            folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="suffice-shortcuts-")))
            with output.asking("Searching"):
                stopped = take_up(asked, folder, device=model.device, overwrite=overwrite).stopped
        elif len(images.images) > 1:
            raise OptionError(
                "Give one folder of a study, or images and --model with the models to look for shortcuts in."
            )
        study = Study.open(folder)
        found = shortcuts_of_study(study, classes=classes, device=model.device, touch=touch, least=least)
        missing = {one.label for one in study.plan.models} - {one.model for one in found}
        output.note(*(f"Left out: {label}, which has no evidence yet." for label in sorted(missing)))
    if as_json:
        output.print_json([one.to_json() for one in found])
    else:
        models = of_models(found)
        _print(models, len(models.rows), models.notes)
        for one in found:
            section = one.section()
            notes = [note for note in section.notes if note not in models.notes]
            _print(section, 1 + max(SHOWN, len(one.suspected)), notes)  # one row is for all images
    if out is not None:
        written = [file.name for file in write_shortcuts(found, out)]
        for one in found:
            picture = out / "figures" / f"shortcuts-{opt.label_of(one.model)}.{format}"
            picture.unlink(missing_ok=True)  # of classes that were suspected when the same command ran before
            if one.suspected:
                written.append(f"figures/{one.save(picture).name}")
        output.note(f"Written to {out}: {', '.join(written)}")
    output.finish([], stopped)


def _print(section: Section, count: int, notes: Sequence[str]) -> None:
    """Print the first so many rows of a table, and what there is to say of it."""
    rows = list(section.cells())
    output.print_titled(section.title, section.headings, rows[:count], right=section.numeric)
    if len(rows) > count:
        output.note(f"{len(rows) - count} more classes; see --json or --out.")
    output.note(*notes, "")
