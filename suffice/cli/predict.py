"""``suffice predict``: what a model says of whole images."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.cli import output
from suffice.cli.options import (
    AsJson,
    Checkpoint,
    Device,
    ImageFiles,
    ModelName,
    RandomWeights,
    ResizeRule,
    images_of,
    load_model,
)

EXAMPLES = """
Examples:

[green]suffice predict cat.jpg --model timm/deit_small_patch16_224[/green]

[green]suffice predict photos/ --model torchvision/resnet50 --json > predictions.json[/green]

[green]suffice predict cat.jpg --model timm/vit_tiny_patch16_224 --checkpoint weights.safetensors[/green]
"""


def predict(
    images: ImageFiles,
    model: ModelName,
    top: Annotated[int, typer.Option(min=1, help="Classes to show for each image.")] = 5,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    resize: ResizeRule = None,
    batch: Annotated[int, typer.Option(min=1, help="Images per forward.")] = 64,
    as_json: AsJson = False,
) -> None:
    """Predict the classes of images. Files that cannot be read are named and skipped."""
    opened = images_of(images)
    net = load_model(model, checkpoint, random_weights, device, resize)
    with output.progress("Predicting") as on_progress:
        found = net.predict(
            opened, batch_size=batch, on_error="raise" if len(opened) == 1 else "skip", on_progress=on_progress
        )
    best = found.top(top)
    if as_json:
        output.print_json(
            {
                "model": net.name,
                "family": net.family,
                "score": net.score,
                "images": [
                    {"image": name, "top": [{"class": c, "label": label, "score": s} for c, label, s in row]}
                    for name, row in zip(found.names, best, strict=True)
                ],
                "skipped": [{"image": skip.name, "reason": skip.reason} for skip in found.skipped],
            }
        )
    else:
        rows = [
            (name if rank == 0 or not output.stdout.is_terminal else "", rank + 1, label, c, f"{score:.3f}")
            for name, row in zip(found.names, best, strict=True)
            for rank, (c, label, score) in enumerate(row)
        ]
        output.print_table(net.name, ("image", "#", "label", "class", net.score), rows, right=(1, 3, 4))
        for skip in found.skipped:
            output.note(f"Skipped {skip.name}: {skip.reason}")
    if found.skipped:
        raise typer.Exit(1)
