"""``suffice explain``: where in an image a model finds its reasons, and ``suffice methods``: by which methods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli import output
from suffice.cli.options import (
    AsJson,
    Batch,
    Checkpoint,
    Device,
    ImageFiles,
    MethodNames,
    MethodOptions,
    ModelName,
    ModelPrecision,
    Precision,
    RandomWeights,
    ResizeRule,
    Seed,
    chosen_methods,
    images_of,
    load_model,
    note_precision,
)

EXAMPLES = """
Examples:

[green]suffice explain cat.jpg --model timm/deit_small_patch16_224 --method grad-cam,rise,igos++ --out maps[/green]

[green]suffice explain cat-and-dog.jpg --model torchvision/resnet50 --target tabby --target beagle --out maps[/green]

[green]suffice explain photos.csv --model torchvision/vit_b_16 --method tis --target @label --target @1[/green]

[green]suffice explain cat.jpg --model torchvision/resnet50 --method rise --option masks=1000 --out maps[/green]

[green]suffice explain scenes:test[:5] --model zoo/deit --method rollout,vit-cx,tis --score --out maps[/green]
"""
METHODS_EXAMPLES = """
Examples:

[green]suffice methods[/green]

[green]suffice methods --model timm/swin_tiny_patch4_window7_224[/green]
"""


def explain(
    images: ImageFiles,
    model: ModelName,
    method: MethodNames = "grad-cam",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Class to explain, index or label; @label, that of each image; @1, @2, …, its likeliest classes. "
            "Several draw one row each."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Predictions to show.")] = 3,
    option: MethodOptions = None,
    score: Annotated[
        bool, typer.Option("--score", help="Measure insertion and deletion and write them below each map.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for figures and maps.")] = Path("explanations"),
    seed: Seed = 0,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    resize: ResizeRule = None,
    batch: Batch = None,
    precision: ModelPrecision = Precision.fp32,
    as_json: AsJson = False,
) -> None:
    """Draw where each method says that the model finds its reasons, one figure an image, and keep the raw maps.

    A figure has the image with its best predictions, and one overlay a method; with several targets, one row a class.
    Raw maps are written as safetensors, one file for each method and target.
    """
    from suffice.perturb import Runner
    from suffice.report import explain_images

    opened = images_of(images)
    chosen, options = chosen_methods(method, option)
    net = load_model(model, checkpoint, random_weights, device, resize)
    if method.strip() == "all":
        chosen = [one for one in chosen if one.incompatibility(net) is None]
    note_precision(precision, chosen)
    with output.progress("Explaining") as on_progress:
        found = explain_images(
            net,
            opened,
            chosen,
            target or (),
            options=options,
            score=score,
            top=top,
            out=out,
            seed=seed,
            runner=Runner(net, batch_size=batch or "auto", precision=precision.value),
            on_error="raise" if len(opened) == 1 else "skip",
            on_progress=on_progress,
        )
    names = [one.name for one in chosen]
    if as_json:
        output.print_json({"model": net.name, "methods": names, "figures": list(map(str, found.figures))})
    else:
        rows = [
            (name, label, f"{confidence:.3f}")
            for by_method in found.maps.values()
            for first in list(by_method.values())[:1]
            for name, label, confidence in zip(first.names, first.labels, first.confidences.tolist(), strict=True)
        ]
        output.print_table(net.name, ("image", "explained", net.score), rows, right=(2,))
        figures = f"{len(found.figures)} figure{'s' if len(found.figures) > 1 else ''}"
        output.note(f"Written to {out}: {figures}, and the raw maps of {', '.join(names)}")
    for skip in found.skipped:
        output.note(f"Skipped {skip.name}: {skip.reason}")
    if found.skipped:
        raise typer.Exit(1)


def methods_command(
    model: Annotated[str | None, typer.Option("--model", "-m", help="Say which fit this model.")] = None,
    as_json: AsJson = False,
) -> None:
    """List attribution methods: what they do, what they need of a model, and their options."""
    from suffice.attribution import all_methods

    net = None if model is None else load_model(model, None, True, "cpu")
    known = all_methods().values()
    if as_json:
        listed = [
            {
                "name": m.name, "about": m.about, "needs": m.needs, "options": dict(m.options), "aliases": m.aliases,
                "reference": m.reference, **({} if net is None else {"incompatibility": m.incompatibility(net)}),
            }
            for m in known
        ]  # fmt: skip
        output.print_json(listed)
        return
    columns = ["method", "what it shows", "needs", "options"]
    rows = [
        [m.name, m.about, ", ".join(m.needs) or "nothing", ", ".join(f"{k}={v}" for k, v in m.options.items())]
        for m in known
    ]
    if net is not None:
        columns.insert(1, "fits")
        for row, m in zip(rows, known, strict=True):
            reason = m.incompatibility(net)
            row.insert(1, "yes" if reason is None else f"no: {reason}")
    output.print_table("", columns, rows)
