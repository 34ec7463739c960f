"""``suffice compare``: what differs between models, and whether it could be chance."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import OUTPUT, RUN, ImagesWithObjects, SeveralModels, flat, under
from suffice.errors import OptionError

if TYPE_CHECKING:
    from suffice.compare import Comparison

EXAMPLES = output.examples(
    "suffice compare runs/first",
    "suffice compare runs/first --out comparison  # tables as Markdown, JSON and CSV",
    "suffice compare photos/ --model timm/resnet50,timm/deit_small_patch16_224 --out runs/two",
    "suffice compare scenes:test[:20] --model zoo/resnet,zoo/deit --method grad-cam --steps 10",
)

HEADINGS = {
    RUN: ("seed", "batch", "precision", "compile"),
    OUTPUT: ("disputed", "format", "overwrite", "as_json"),
}


@dataclass(frozen=True)
class StudyOrImages(ImagesWithObjects):
    """The study that a command reads, or the images of one that it makes."""

    images: Annotated[
        list[str], typer.Argument(metavar="RUN|IMAGES…", help="Folder of a study; or images, with --model.")
    ]


@dataclass(frozen=True)
class PerhapsModels(SeveralModels):
    """The models of a study that the command makes."""

    model: Annotated[
        str, typer.Option("--model", "-m", help="Models to run on images, separated by commas; not for a study.")
    ] = ""


@under(HEADINGS)
@flat
def compare(
    images: StudyOrImages,
    model: PerhapsModels,
    measure: Annotated[
        str, typer.Option(help="With --model: what to measure, separated by commas.")
    ] = "predictions,evidence,cross-test,activations",
    method: Annotated[str, typer.Option(help="With --model: method that makes the maps for cross-testing.")] = "igos++",
    option: opt.MethodOptions = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of the curves; default: as in the papers.")] = None,
    grid: Annotated[int, typer.Option(help="Cells per side of the grid for evidence.")] = 7,
    count: opt.FirstImages = None,
    out: Annotated[
        Path | None,
        typer.Option(callback=opt.writable, help="Folder for the tables; with --model, also for the study."),
    ] = None,
    disputed: Annotated[
        int, typer.Option(min=0, help="With --out: draw the N images that families disagree about the most.")
    ] = 0,
    format: opt.PictureFormat = "svg",
    overwrite: opt.Overwrite = False,
    seed: opt.Seed = 0,
    batch: opt.Batch = None,
    precision: opt.ModelPrecision = "fp32",
    compile: opt.Compile = False,
    as_json: opt.AsJson = False,
) -> None:
    """Compare the models of a study, or two or more models over images.

    Prints what the study allows: accuracies, and what averaging models gains; evidence, with rankings, paired tests,
    and indices; cross-tests, with landscape and families; activations. With --model, a study is made first, in --out or
    a temporary folder; with --out, run the same command again to continue it.
    """
    from suffice.compare import compare_study, disputed_images, study_of_models
    from suffice.draw.files import check_format
    from suffice.study import Study
    from suffice.study.taking_up import take_up

    check_format(format)
    if disputed and out is None:
        raise OptionError("--disputed needs --out, a folder for the picture.")
    stopped = False
    with ExitStack() as stack:
        if model.model:
            _, options = opt.chosen_methods(method, option)
            run = {"precision": precision, "compile": compile, "batch": batch or "auto", "seed": seed}
            images.check(images.open(count))
            asked = study_of_models(
                images.choice(count), [one.choice() for one in model.each], measure=opt.listed(measure), method=method,
                options=options[next(iter(options))], steps=steps, grid=grid, run=run,
            )  # fmt: skip
            folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="suffice-compare-")))
            with output.asking("Comparing"):
                taken = take_up(asked, folder, device=model.device, overwrite=overwrite)
            stopped = taken.stopped
        else:
            if len(images.images) > 1:
                raise OptionError("Give one folder of a study, or images and --model with the models to compare.")
            folder = Path(images.images[0])
        read = Study.open(folder)
        found = compare_study(read)
    if out is not None:
        place = out / "comparison" if model.model else out
        files = found.write(place)
        if disputed:
            looks = disputed_images(read, disputed, device=model.device)
            files.append(looks.save(place / f"disputed.{format}"))
        output.note(f"Written to {files[0].parent}: {', '.join(file.name for file in files)}")
    if as_json:
        output.print_json(found.to_json())
    else:
        _print(found)
    output.finish([], stopped)


def _print(found: Comparison) -> None:
    for one in found.sections:
        if one.long:
            output.note(f"{one.title}: {len(one.rows)} rows; see --json or --out.")
            continue
        output.print_titled(one.title, one.headings, list(one.cells()), right=one.numeric)
        output.note(*one.notes, "")
