"""``suffice sanity``: whether maps depend on what a model has learned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import ImageOptions, ModelOptions, flat
from suffice.errors import MissingExtra, OptionError

EXAMPLES = output.examples(
    "suffice sanity scenes:test[:50] --model zoo/deit --method rollout,cgw2,tis --out sanity",
    "suffice sanity photos/ --model timm/resnet50 --method gradient,grad-cam --check independent --how permute",
    "suffice sanity scenes:test[:50] --model zoo/resnet --method grad-cam --check data\n"
    "  --permuted-model trained/resnet-permuted-seed0.safetensors",
)


Check = Literal["cascading", "independent", "data"]
How = Literal["reinitialize", "permute"]


@flat
def sanity(
    images: ImageOptions,
    model: ModelOptions,
    method: opt.MethodNames,
    check: Annotated[
        Check,
        typer.Option(
            help="What to randomize: all layers from the output down (cascading), one layer at a time (independent), "
            "or the training labels (data)."
        ),
    ] = "cascading",
    how: Annotated[
        How,
        typer.Option(help="Draw weights as before training (reinitialize), or shuffle the trained ones (permute)."),
    ] = "reinitialize",
    permuted_model: Annotated[
        str | None, typer.Option(help="For --check data: weights (or a model) from suffice train --permute-labels.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="How many times to draw random weights.")] = 1,
    option: opt.MethodOptions = None,
    permuted_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="For --check data: a method option for the permuted model alone; may be repeated.",
        ),
    ] = None,
    count: opt.FirstImages = None,
    out: Annotated[
        Path | None,
        typer.Option(callback=opt.writable, help="Folder for the table, CSV and Parquet files, and figures."),
    ] = None,
    format: Annotated[opt.Format, typer.Option("--format", help="Format of the figures.")] = "png",
    seed: opt.Seed = 0,
    batch: opt.Batch = None,
    precision: opt.ModelPrecision = "fp32",
    as_json: opt.AsJson = False,
) -> None:
    """Randomize a model and see whether the maps of several methods change.

    The table has the similarity to the maps of the trained model after all layers are randomized (with --check
    independent: for the layer that matters least), how similar maps of different images are anyway, and a verdict.
    """
    from suffice.metrics.sanity import data_randomization, sanity_check
    from suffice.metrics.sanity.report import HEADINGS, RULE

    if (check == "data") != (permuted_model is not None):
        raise OptionError("--check data needs --permuted-model, and no other check takes it.")
    if check == "data" and (draws > 1 or how != "reinitialize"):
        raise OptionError("--check data draws no random weights, so it takes neither --draws nor --how.")
    opened = images.open(count)
    methods, options = opt.chosen_methods(method, option)
    if check != "data" and permuted_option:
        raise OptionError("--permuted-option is for --check data.")
    permuted_options = opt.chosen_methods(method, permuted_option)[1]
    net = model.load()
    opt.note_precision(precision, methods)
    on_error = images.on_error_of(opened)
    shared: dict[str, Any] = {"options": options, "seed": seed, "batch_size": batch or "auto", "on_error": on_error}
    shared["precision"] = precision
    with output.all_or_nothing(), output.asking("Explaining"):
        if check == "data":
            assert permuted_model is not None
            weights = Path(permuted_model)
            named = weights.is_file() or weights.suffix in (".safetensors", ".pth", ".pt")
            given = {"checkpoint": weights} if named else {"model": permuted_model, "checkpoint": None}
            other = replace(model, random_weights=False, **given).load()
            found = data_randomization(net, other, opened, methods, permuted_options=permuted_options, **shared)
        else:
            found = sanity_check(net, opened, methods, check=check, how=how, draws=draws, **shared)
    written = _write(found, out, format) if out is not None else ""
    if as_json:
        output.print_json(found.to_json())
    else:
        title = f"{found.model}, {found.images} images, {check}, {found.how}"
        output.print_table(title, HEADINGS, list(found.cells()), right=range(1, 5))
        output.note(RULE, *found.notes())
    opt.note_left_out(methods, net, options)
    if written:
        output.note(written)
    output.finish(found.skipped)


def _write(found: Any, out: Path, format: opt.Format) -> str:
    files, lacking = list(found.write(out)), ""
    try:
        files += found.draw(out, format)
    except MissingExtra as error:
        lacking = f" {error}"
    return f"Written to {out}: {', '.join(file.name for file in files)}.{lacking}"
