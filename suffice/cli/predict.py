"""``suffice predict``: what a model says of whole images."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import ImageOptions, ModelOptions, flat

EXAMPLES = output.examples(
    "suffice predict cat.jpg --model timm/deit_small_patch16_224",
    "suffice predict photos/ --model torchvision/resnet50 --json > predictions.json",
    "suffice predict cat.jpg --model timm/vit_tiny_patch16_224 --checkpoint weights.safetensors",
)


@flat
def predict(
    images: ImageOptions,
    model: ModelOptions,
    top: Annotated[int, typer.Option(min=1, help="Top classes to show for each image.")] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Images per forward pass.")] = 64,
    as_json: opt.AsJson = False,
) -> None:
    """Predict the classes of images. Files that cannot be read are skipped and named."""
    from suffice.vision.provenance import provenance

    opened = images.open()
    net = model.load()
    with output.all_or_nothing(), output.asking("Predicting"):
        found = net.predict(opened, batch_size=batch, on_error=images.on_error_of(opened))
    best = list(zip(found.names, found.top(top), strict=True))
    if as_json:
        listed = [
            {"image": name, "top": [{"class": c, "label": label, "score": s} for c, label, s in row]}
            for name, row in best
        ]
        skipped = [{"image": skip.name, "reason": skip.reason} for skip in found.skipped]
        about = provenance(net, {"batch_size": batch})
        output.print_json({**about, "images": listed, "skipped": skipped})
    else:
        rows = [
            (name if rank == 0 or not output.stdout.is_terminal else "", rank + 1, label, c, f"{score:.3f}")
            for name, row in best
            for rank, (c, label, score) in enumerate(row)
        ]
        output.print_table(net.name, ("image", "#", "label", "class", net.score), rows, right=(1, 3, 4))
    output.finish(found.skipped)
