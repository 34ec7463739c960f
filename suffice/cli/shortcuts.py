"""``suffice shortcuts``: classes that a model decides without their object."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.compare import PerhapsModels, StudyOrImages
from suffice.cli.groups import flat
from suffice.errors import OptionError

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
            callback=opt.writable, help="Folder for a picture of each model; with --model, also for the study."
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

    Images need boxes around their objects. A class is suspected if the same cell outside the object is part of what is
    enough in many of its images, and in clearly fewer images of other classes. With --model, a study is made first, in
    --out or a temporary folder; with --out, run the same command again to continue it.
    """
    from suffice.compare import shortcuts_of_study
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
    for one in found if not as_json else ():
        section = one.section()
        output.print_titled(section.title, section.headings, list(section.cells()), right=section.numeric)
        output.note(*section.notes, "")
    if out is not None:
        files = [one.save(out / "figures" / f"shortcuts-{opt.label_of(one.model)}.{format}") for one in found]
        output.note(f"Written to {out}: {', '.join(f'figures/{file.name}' for file in files)}")
    output.finish([], stopped)
