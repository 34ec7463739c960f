"""``suffice predict``: what a model says of whole images."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output

EXAMPLES = output.examples(
    "suffice predict cat.jpg --model timm/deit_small_patch16_224",
    "suffice predict photos/ --model torchvision/resnet50 --json > predictions.json",
    "suffice predict cat.jpg --model timm/vit_tiny_patch16_224 --checkpoint weights.safetensors",
)


def predict(
    images: opt.ImageFiles,
    model: opt.ModelName,
    top: Annotated[int, typer.Option(min=1, help="Classes to show for each image.")] = 5,
    checkpoint: opt.Checkpoint = None,
    random_weights: opt.RandomWeights = False,
    labels: opt.Labels = None,
    prompt: opt.Prompts = None,
    device: opt.Device = None,
    resize: opt.ResizeRule = None,
    batch: Annotated[int, typer.Option(min=1, help="Images per forward.")] = 64,
    as_json: opt.AsJson = False,
) -> None:
    """Predict the classes of images. Files that cannot be read are named and skipped."""
    opened = opt.images_of(images)
    net = opt.load_model(model, checkpoint, random_weights, device, resize, labels, prompt)
    with output.progress("Predicting") as on_progress:
        on_error = opt.on_error(opened)
        found = net.predict(opened, batch_size=batch, on_error=on_error, on_progress=on_progress)
    best = list(zip(found.names, found.top(top), strict=True))
    if as_json:
        listed = [
            {"image": name, "top": [{"class": c, "label": label, "score": s} for c, label, s in row]}
            for name, row in best
        ]
        skipped = [{"image": skip.name, "reason": skip.reason} for skip in found.skipped]
        about = {"model": net.name, "family": net.family, "score": net.score}
        output.print_json({**about, "images": listed, "skipped": skipped})
    else:
        rows = [
            (name if rank == 0 or not output.stdout.is_terminal else "", rank + 1, label, c, f"{score:.3f}")
            for name, row in best
            for rank, (c, label, score) in enumerate(row)
        ]
        output.print_table(net.name, ("image", "#", "label", "class", net.score), rows, right=(1, 3, 4))
    output.finish(found.skipped)
