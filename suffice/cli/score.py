"""``suffice score``: which method is truest to a model, by which metric."""

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
    FirstImages,
    MethodNames,
    MethodOptions,
    RandomWeights,
    Seed,
    chosen_methods,
    load_model,
)

EXAMPLES = """
Examples:

[green]suffice score photos/ --model timm/deit_small_patch16_224 --method grad-cam,vit-cx,tis --out scores[/green]

[green]suffice score list.csv --model torchvision/resnet50 --method grad-cam,rise --metric pointing-game[/green]

[green]suffice score photos/ --model timm/vit_tiny_patch16_224 --method rollout,cgw1 --protocol rise[/green]
"""


def score(
    images: Annotated[list[str], typer.Argument(help="Image files, folders, CSV/JSONL lists, or scenes:test[:200].")],
    model: Annotated[str, typer.Option("--model", "-m", help="Models, separated by commas.")],
    method: MethodNames,
    metric: Annotated[str, typer.Option(help="Metrics, separated by commas.")] = "insertion,deletion",
    protocol: Annotated[str, typer.Option(help="default, rise, igos, jiang, vit-cx, tis, eea or chefer.")] = "default",
    option: MethodOptions = None,
    count: FirstImages = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the table as Markdown, LaTeX, CSV and Parquet.")] = None,
    seed: Seed = 0,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    batch: Batch = None,
    as_json: AsJson = False,
) -> None:
    """Explain images by several methods and measure the maps.

    The table has mean ± standard error, marks the best (①) and the second best (②) for each model, and says whether
    the best is clearly better than the second.
    """
    from suffice.measure import score_table
    from suffice.vision import open_images

    opened = open_images(images[0] if len(images) == 1 else images)[:count]
    methods, options = chosen_methods(method, option)
    nets = [load_model(name.strip(), checkpoint, random_weights, device) for name in model.split(",")]
    with output.progress("Scoring") as on_progress:
        table = score_table(
            nets,
            opened,
            methods,
            [name.strip() for name in metric.split(",")],
            protocol,
            options=options,
            seed=seed,
            batch_size=batch or "auto",
            on_progress=on_progress,
        )
    if out is not None:
        table.write(out)
    if as_json:
        rows = [
            {
                "model": row.model, "method": row.method, "seconds_per_image": row.seconds,
                **{m: {"mean": row.mean(m), "error": row.error(m)} for m in table.metrics},
            }
            for row in table.rows
        ]  # fmt: skip
        output.print_json({"protocol": table.protocol, "images": table.images, "rows": rows, "notes": table.notes()})
        return
    marks = {0: "{}", 1: "{} ①", 2: "{} ②"}
    cells = list(table.cells(lambda text, place: marks[place].format(text)))
    title = f"{table.images} images, protocol {table.protocol}"
    output.print_table(title, table.headings, cells, right=range(2, len(table.headings)))
    for note in table.notes():
        output.note(note)
    for net in nets:
        unfit = [m.name for m in methods if m.misfit(net) is not None]
        if unfit:
            output.note(f"Left out, as they do not fit {net.name}: {', '.join(unfit)}.")
    if out is not None:
        output.note(f"Written to {out}: scores.md, scores.tex, scores.csv and scores.parquet")
