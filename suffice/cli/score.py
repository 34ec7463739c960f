"""``suffice score``: which method is truest to a model, by which metric."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from suffice.cli import options as opt
from suffice.cli import output

if TYPE_CHECKING:
    from suffice.metrics.score_table import TableRow

EXAMPLES = output.examples(
    "suffice score photos/ --model timm/deit_small_patch16_224 --method grad-cam,vit-cx,tis --out scores",
    "suffice score list.csv --model torchvision/resnet50 --method grad-cam,rise --metric pointing-game",
    "suffice score photos/ --model timm/vit_tiny_patch16_224 --method rollout,cgw1 --protocol rise",
    "suffice score scenes:test[:100] --model zoo/deit,zoo/resnet --method all --metric ins-del,pointing-game",
    "suffice score photos/ --model timm/vit_base_patch16_224 --method tis --protocol tis --metric ins-del\n"
    "  --grid tis.ratio=0.125,0.25,0.5 --grid tis.masks=256,1024 --precision fp16 --out tis",
)


def score(
    images: opt.ImageFiles,
    model: Annotated[str, typer.Option("--model", "-m", help="Models, separated by commas.")],
    method: opt.MethodNames,
    metric: Annotated[str, typer.Option(help="Metrics, separated by commas; insertion/gray is a part of one.")] = (
        "insertion,deletion"
    ),
    protocol: Annotated[str, typer.Option(help="default, rise, igos, jiang, vit-cx, tis, eea or chefer.")] = "default",
    target_class: Annotated[
        Literal["label", "predicted"] | None,
        typer.Option(help="Explain the label or the predicted class; default: as the protocol."),
    ] = None,
    option: opt.MethodOptions = None,
    grid: Annotated[
        list[str] | None, typer.Option(help="One line for each value: METHOD.NAME=VALUE,VALUE; several are crossed.")
    ] = None,
    count: opt.FirstImages = None,
    out: Annotated[
        Path | None,
        typer.Option(callback=opt.writable, help="Folder for the table as Markdown, LaTeX, CSV and Parquet."),
    ] = None,
    seed: opt.Seed = 0,
    checkpoint: opt.Checkpoint = None,
    random_weights: opt.RandomWeights = False,
    labels: opt.Labels = None,
    prompt: opt.Prompts = None,
    device: opt.Device = None,
    batch: opt.Batch = None,
    precision: Annotated[opt.Precision, typer.Option(help="Of the model, for methods and metrics.")] = "fp32",
    compile: Annotated[bool, typer.Option("--compile", help="Compile the model where nothing looks inside.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Explain images by several methods and measure the maps.

    The table has mean ± standard error, marks the best (①) and the second best (②) for each model, and says whether
    the best is clearly better than the second. Methods that do not fit a model are left out and named. With --out the
    table is written after every line of it; Ctrl-C ends early and keeps what is there.
    """
    from suffice.metrics import ScoreTable, find_protocol, score_table

    opened = opt.images_of(images, count)
    methods, options = opt.chosen_methods(method, option)
    entries = opt.grid_entries(methods, options, grid)
    opt.note_precision(precision, methods)
    nets = [
        opt.load_model(name.strip(), checkpoint, random_weights, device, None, labels, prompt)
        for name in model.split(",")
    ]
    metrics = tuple(name.strip() for name in metric.split(","))
    how: dict[str, Any] = {
        "target_class": target_class, "seed": seed, "batch_size": batch or "auto", "precision": precision,
        "compile": compile,
    }  # fmt: skip
    rows: list[TableRow] = []

    def made() -> ScoreTable:
        return ScoreTable(tuple(rows), metrics, find_protocol(protocol).name, len(opened))

    def keep(row: TableRow) -> None:
        rows.append(row)
        if out is not None:
            made().write(out)

    stopped = False
    with output.progress("Scoring") as on_progress:
        try:
            score_table(nets, opened, entries, metrics, protocol, on_row=keep, on_progress=on_progress, **how)
        except KeyboardInterrupt:
            stopped = True
            if not rows:
                raise
    table = made()
    if as_json:
        listed = [
            {
                "model": row.model, "method": row.method, "seconds_per_image": row.seconds,
                **{m: {"mean": row[m].mean, "standard_error": row[m].standard_error} for m in table.metrics},
            }
            for row in table.rows
        ]  # fmt: skip
        output.print_json({"protocol": table.protocol, "images": table.images, "rows": listed, "notes": table.notes()})
        return
    marks = {0: "{}", 1: "{} ①", 2: "{} ②"}
    cells = list(table.cells(lambda text, rank: marks[rank].format(text)))
    title = f"{table.images} images, protocol {table.protocol}"
    output.print_table(title, table.headings, cells, right=range(2, len(table.headings)))
    output.note(*table.notes())
    for net in nets:
        opt.note_left_out(methods, net)
    if stopped:
        output.note("Stopped early: this is what was done.")
    if out is not None:
        output.note(f"Written to {out}: scores.md, scores.tex, scores.csv and scores.parquet")
