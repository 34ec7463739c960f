"""``suffice explain``: where in an image a model finds its reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output

EXAMPLES = output.examples(
    "suffice explain cat.jpg --model timm/deit_small_patch16_224 --method grad-cam,rise,igos++ --out maps",
    "suffice explain cat-and-dog.jpg --model torchvision/resnet50 --target tabby --target beagle --out maps",
    "suffice explain photos.csv --model torchvision/vit_b_16 --method tis --target @label --target @1",
    "suffice explain cat.jpg --model torchvision/resnet50 --method rise --option masks=1000 --out maps",
    "suffice explain scenes:test[:5] --model zoo/deit --method rollout,vit-cx,tis --score --out maps",
)


def explain(
    images: opt.ImageFiles,
    model: opt.ModelName,
    method: opt.MethodNames = "grad-cam",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Class to explain, index or label; @label, that of each image; @1, @2, …, its likeliest classes. "
            "Several draw one row each."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Predictions to show.")] = 3,
    option: opt.MethodOptions = None,
    score: Annotated[
        bool, typer.Option("--score", help="Measure insertion and deletion and write them below each map.")
    ] = False,
    out: Annotated[Path, typer.Option(callback=opt.writable, help="Folder for figures and maps.")] = Path(
        "explanations"
    ),
    seed: opt.Seed = 0,
    checkpoint: opt.Checkpoint = None,
    random_weights: opt.RandomWeights = False,
    labels: opt.Labels = None,
    prompt: opt.Prompts = None,
    device: opt.Device = None,
    resize: opt.ResizeRule = None,
    batch: opt.Batch = None,
    precision: opt.ModelPrecision = "fp32",
    as_json: opt.AsJson = False,
) -> None:
    """Draw where each method says that the model finds its reasons, one figure an image, and keep the raw maps.

    A figure has the image with its best predictions, and one overlay a method; with several targets, one row a class.
    Raw maps are written as safetensors, one file for each method and target.
    """
    from suffice.perturb import Runner
    from suffice.report import explain_images

    opened = opt.images_of(images)
    chosen, options = opt.chosen_methods(method, option)
    net = opt.load_model(model, checkpoint, random_weights, device, resize, labels, prompt)
    if method.strip() == "all":
        chosen = [one for one in chosen if one.incompatibility(net) is None]
    opt.note_precision(precision, chosen)
    with output.progress("Explaining") as on_progress:
        found = explain_images(
            net, opened, chosen, target or (), options=options, score=score, top=top, out=out, seed=seed,
            runner=Runner(net, batch_size=batch or "auto", precision=precision), on_error=opt.on_error(opened),
            on_progress=on_progress,
        )  # fmt: skip
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
    output.finish(found.skipped)
