"""``suffice explain``: where in an image a model finds its reasons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import OUTPUT, RUN, ImageOptions, ModelOptions, flat, under

if TYPE_CHECKING:
    from suffice.report import Explanations

EXAMPLES = output.examples(
    "suffice explain cat.jpg --model timm/deit_small_patch16_224 --method grad-cam,rise,igos++ --out maps",
    "suffice explain cat-and-dog.jpg --model torchvision/resnet50 --target tabby --target beagle --out maps",
    "suffice explain photos.csv --model torchvision/vit_b_16 --method tis --target @label --target @1",
    "suffice explain cat.jpg --model torchvision/resnet50 --method rise --option masks=1000 --out maps",
    "suffice explain scenes:test[:5] --model zoo/deit --method rollout,vit-cx,tis --score --out maps",
)

HEADINGS = {
    RUN: ("seed", "batch", "precision"),
    OUTPUT: ("top", "format", "overwrite", "as_json"),
}


@under(HEADINGS)
@flat
def explain(
    images: ImageOptions,
    model: ModelOptions,
    method: opt.MethodNames = "grad-cam",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Class to explain: index or label; @label for each image's own; @1, @2, … for its likeliest classes. "
            "Repeat it to draw one row per class."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Predicted classes to show.")] = 3,
    option: opt.MethodOptions = None,
    score: Annotated[
        bool,
        typer.Option(
            "--score", help="Also measure insertion and deletion, for the table, figures, and scores.parquet."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=opt.writable,
            help="Folder for figures, and for maps as a study; an existing one is resumed. Without --out, figures and "
            "maps are written to explanations.",
        ),
    ] = None,
    overwrite: opt.Overwrite = False,
    format: opt.PictureFormat = "svg",
    seed: opt.Seed = 0,
    batch: opt.Batch = None,
    precision: opt.ModelPrecision = "fp32",
    as_json: opt.AsJson = False,
) -> None:
    """Draw where each method says the model looks, one figure per image, and save the raw maps.

    A figure shows the image with its top predictions and one overlay per method; with several targets, one row per
    class. Raw maps are saved as safetensors. Methods that do not fit the model are left out and named. With --out,
    everything is kept as a study; run the same command again to continue where it stopped.
    """
    from suffice.draw.files import check_format
    from suffice.perturb import Runner
    from suffice.report import explain_images
    from suffice.report.explain_images import fitting
    from suffice.report.explain_study import check_targets, explaining, explanations_of
    from suffice.study import Study
    from suffice.study.taking_up import take_up

    check_format(format)
    opened = images.open()
    chosen, options = opt.chosen_methods(method, option)
    net = model.load()
    opt.note_precision(precision, [one for one in chosen if one.incompatibility(net, options[one.name]) is None])
    targets = target or []
    if out is None:
        out = Path("explanations")
        opt.writable(out)
        with output.asking("Explaining"):
            found = explain_images(
                net, opened, chosen, targets, options=options, score=score, top=top, out=out, format=format, seed=seed,
                runner=Runner(net, batch_size=batch or "auto", precision=precision),
                on_error=images.on_error_of(opened),
            )  # fmt: skip
    else:
        images.check(opened)
        check_targets(net, opened, targets)
        fits, left_out = fitting(chosen, net, options)
        measure = explaining(fits, targets, options, score, top)
        run = {"precision": precision, "batch": batch or "auto", "seed": seed}
        study = Study("explain", images.choice(), model.choice(), measure, run)
        with output.asking("Explaining"):
            taken = take_up(study, out, device=model.device, overwrite=overwrite)
        if taken.stopped:
            opt.note_unfinished(out)
            raise typer.Exit(130)
        opt.note_earlier(taken.earlier, len(opened))
        kept = explanations_of(taken.plan, taken.store, net, opened, model.model, fits, targets, options)
        kept.write_scores(out)
        found = replace(kept, left_out=left_out).draw(out / "figures", top, format)
    if as_json:
        skipped = [vars(skip) for skip in found.skipped]
        made = {"methods": found.methods, "left_out": found.left_out, "figures": list(map(str, found.figures))}
        output.print_json({**found.about, **made, "images": found.rows(), "skipped": skipped})
    else:
        _print(found)
        figures = f"{len(found.figures)} figure{'s' if len(found.figures) > 1 else ''}"
        tables = "; scores.csv, scores.json and scores.parquet" if score else ""
        output.note(f"Written to {out}: {figures}, and the raw maps of {', '.join(found.methods)}{tables}")
    if method.strip() != "all":
        opt.note_left_out(chosen, net, options)
    output.finish(found.skipped)


def _print(found: Explanations) -> None:
    """The classes explained and, where they were measured, the scores of each method."""
    from suffice.metrics.scores import with_arrow

    rows = found.rows()
    if not found.scores:  # the same for every method
        rows = [row for row in rows if row["method"] == found.methods[0]]
    scores = [[row["method"], *(f"{row[name]:.3f}" for name in found.metrics)] if found.scores else [] for row in rows]
    measured = ["method", *map(with_arrow, found.metrics)] if found.scores else []
    cells = [
        [row["image"], row["label"], f"{row['confidence']:.3f}", *own] for row, own in zip(rows, scores, strict=True)
    ]
    heads = ["image", "explained", found.net.score, *measured]
    output.print_table(found.net.name, heads, cells, right=[2, *range(4, len(heads))])
