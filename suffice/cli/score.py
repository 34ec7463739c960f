"""``suffice score``: which method is truest to a model, by which metric."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import ImagesWithObjects, SeveralModels, flat

if TYPE_CHECKING:
    from suffice.metrics import ScoreTable

EXAMPLES = output.examples(
    "suffice score photos/ --model timm/deit_small_patch16_224 --method grad-cam,vit-cx,tis --out scores",
    "suffice score list.csv --model torchvision/resnet50 --method grad-cam,rise --metric pointing-game",
    "suffice score photos/ --model timm/vit_tiny_patch16_224 --method rollout,cgw1 --protocol rise",
    "suffice score scenes:test[:100] --model zoo/deit,zoo/resnet --method all --metric ins-del,pointing-game",
    "suffice score photos/ --model timm/vit_base_patch16_224 --method tis --protocol tis --metric ins-del\n"
    "  --grid tis.ratio=0.125,0.25,0.5 --grid tis.masks=256,1024 --precision fp16 --out tis",
)


@flat
def score(
    images: ImagesWithObjects,
    model: SeveralModels,
    method: opt.MethodNames,
    metric: Annotated[str, typer.Option(help="Metrics, separated by commas; insertion/gray is a part of one.")] = (
        "insertion,deletion"
    ),
    protocol: Annotated[str, typer.Option(help="default, rise, igos, jiang, vit-cx, tis, eea or chefer.")] = "default",
    target_class: Annotated[
        Literal["label", "predicted"] | None,
        typer.Option(help="Explain the label or the predicted class; default: as the protocol."),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Of curves; default: as the protocol has it.")] = None,
    option: opt.MethodOptions = None,
    grid: Annotated[
        list[str] | None, typer.Option(help="One line for each value: METHOD.NAME=VALUE,VALUE; several are crossed.")
    ] = None,
    count: opt.FirstImages = None,
    out: Annotated[
        Path | None,
        typer.Option(callback=opt.writable, help="Folder for the table as Markdown, LaTeX, CSV, JSON and Parquet."),
    ] = None,
    seed: opt.Seed = 0,
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
    from suffice.metrics import score_table

    opened = images.open(count)
    methods, options = opt.chosen_methods(method, option)
    entries = opt.grid_entries(methods, options, grid)
    opt.note_precision(precision, methods)
    nets = [one.load() for one in model.each]
    metrics = tuple(name.strip() for name in metric.split(","))
    how: dict[str, Any] = {
        "target_class": target_class, "seed": seed, "batch_size": batch or "auto", "precision": precision,
        "compile": compile, "on_error": images.on_error_of(opened),
        "metric_options": {} if steps is None else {"steps": steps},
    }  # fmt: skip
    tables: list[ScoreTable] = []

    def keep(table: ScoreTable) -> None:
        tables.append(table)
        if out is not None:
            table.write(out)

    stopped = False
    with output.asking("Scoring"):
        try:
            score_table(nets, opened, entries, metrics, protocol, on_table=keep, **how)
        except KeyboardInterrupt:
            stopped = True
            if not tables:
                raise
    table = tables[-1]
    if as_json:
        listed = [
            {
                "model": row.model, "method": row.method, "seconds_per_image": row.seconds,
                **{m: {"mean": row[m].mean, "standard_error": row[m].standard_error} for m in table.metrics},
            }
            for row in table.rows
        ]  # fmt: skip
        about = {"models": table.about, "skipped": [vars(skip) for skip in table.skipped]}
        said = {"protocol": table.protocol, "images": table.images, "rows": listed, "notes": table.notes()}
        output.print_json({**said, **about})
        output.finish(table.skipped, stopped)
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
        output.note(f"Written to {out}: scores.md, scores.tex, scores.csv, scores.json and scores.parquet")
    output.finish(table.skipped, stopped)
