"""``suffice score``: which method is truest to a model, by which metric."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import OUTPUT, RUN, ImagesWithObjects, SeveralModels, flat, under
from suffice.errors import StudyError

if TYPE_CHECKING:
    from suffice.metrics import ScoreTable
    from suffice.study.taking_up import Taken

EXAMPLES = output.examples(
    "suffice score photos/ --model timm/deit_small_patch16_224 --method grad-cam,vit-cx,tis --out scores",
    "suffice score list.csv --model torchvision/resnet50 --method grad-cam,rise --metric pointing-game",
    "suffice score photos/ --model timm/vit_tiny_patch16_224 --method rollout,cgw1 --protocol rise",
    "suffice score scenes:test[:100] --model zoo/deit,zoo/resnet --method all --metric ins-del,pointing-game",
    "suffice score photos/ --model timm/vit_base_patch16_224 --method tis --protocol tis --metric ins-del\n"
    "  --grid tis.ratio=0.125,0.25,0.5 --grid tis.masks=256,1024 --precision fp16 --out tis",
)

HEADINGS = {
    RUN: ("seed", "batch", "precision", "compile"),
    OUTPUT: ("overwrite", "as_json"),
}


@under(HEADINGS)
@flat
def score(
    images: ImagesWithObjects,
    model: SeveralModels,
    method: opt.MethodNames,
    metric: Annotated[
        str, typer.Option(help="Metrics, separated by commas; parts of one too, such as insertion/gray.")
    ] = "insertion,deletion",
    protocol: Annotated[
        str, typer.Option(help="Protocol of the metrics: default, rise, igos, jiang, vit-cx, tis, eea, or chefer.")
    ] = "default",
    target_class: Annotated[
        Literal["label", "predicted"] | None,
        typer.Option(help="Class to explain: the label or the predicted class; default: set by the protocol."),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help=opt.STEPS)] = None,
    option: opt.MethodOptions = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(help="One row per value of an option: METHOD.NAME=VALUE,VALUE; repeat it for all combinations."),
    ] = None,
    count: opt.FirstImages = None,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=opt.writable,
            help="Folder for a study and the table (Markdown, LaTeX, CSV, JSON, Parquet); an existing one is resumed.",
        ),
    ] = None,
    overwrite: opt.Overwrite = False,
    seed: opt.Seed = 0,
    batch: opt.Batch = None,
    precision: Annotated[opt.Precision, typer.Option(help="Precision of the model, for methods and metrics.")] = "fp32",
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile the model, except for methods that look inside it.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Explain images with several methods and measure the maps.

    The table shows mean ± standard error, marks the best (①) and second best (②) method for each model, and says
    whether the best is clearly better than the second. Methods that do not fit a model are left out and named. Ctrl-C
    stops early and prints what is finished. With --out, maps and scores are kept as a study; run the same command
    again to continue.
    """
    from suffice.metrics import find_protocol, score_table
    from suffice.metrics.score_methods import explained_class
    from suffice.study import Study
    from suffice.study.taking_up import take_up

    opened = images.open(count)
    methods, options = opt.chosen_methods(method, option)
    entries = opt.grid_entries(methods, options, grid)
    opt.note_precision(precision, methods)
    metrics = tuple(dict.fromkeys(opt.listed(metric)))
    metric_options = {} if steps is None else {"steps": steps}
    stopped, left_out = False, dict[str, list[str]]()
    if out is None:
        nets = [one.load() for one in model.each]
        tables: list[ScoreTable] = []
        how: dict[str, Any] = {
            "target_class": target_class, "seed": seed, "batch_size": batch or "auto", "precision": precision,
            "compile": compile, "on_error": images.on_error_of(opened), "metric_options": metric_options,
        }  # fmt: skip
        with output.asking("Scoring"):
            try:
                score_table(nets, opened, entries, metrics, protocol, on_table=tables.append, **how)
            except KeyboardInterrupt:
                stopped = True
                if not tables:
                    output.note(output.NOTHING_KEPT)
                    raise typer.Exit(130) from None
        table = tables[-1]
        left_out = {
            net.name: list(dict.fromkeys(one.found.name for one in entries if not one.fits(net))) for net in nets
        }
    else:
        images.check(opened)
        made = [{"name": one.found.name, "label": opt.label_of(one.name), **one.options} for one in entries]
        explained = explained_class(opened, find_protocol(protocol), target_class)
        measure: dict[str, dict[str, Any]] = {
            "maps": {"kind": "attribution", "methods": made, "target_class": explained},
            "scores": {
                "kind": "metrics", "maps": "maps", "metrics": list(metrics), "protocol": protocol,
                "target_class": "explained", **metric_options,
            },
        }  # fmt: skip
        run = {"precision": precision, "compile": compile, "batch": batch or "auto", "seed": seed, "misfits": "skip"}
        study = Study("score", images.choice(count), [one.choice() for one in model.each], measure, run)
        with output.asking("Scoring"):
            taken = take_up(study, out, device=model.device, overwrite=overwrite)
        opt.note_earlier(taken.earlier, len(opened))
        table, stopped = _table(taken, out), taken.stopped
        table.write(out)
        for planned in taken.plan.models:
            misfits = [name.partition("/")[2] for name in planned.misfits or {} if name.startswith("maps/")]
            left_out[planned.label] = misfits
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
    title = f"{table.counted}, protocol {table.protocol}"
    output.print_table(title, table.headings, cells, right=range(2, len(table.headings)))
    output.note(*table.notes())
    for name, misfits in left_out.items():
        opt.note_misfits(name, misfits)
    if stopped:
        output.note("Stopped early: these are the results so far.")
    if out is not None:
        output.note(f"Written to {out}: a study, scores.md, scores.tex, scores.csv, scores.json and scores.parquet")
    output.finish(table.skipped, stopped)


def _table(taken: Taken, out: Path) -> ScoreTable:
    """The lines that are finished."""
    from suffice.study.score_tables import score_tables

    try:
        return score_tables(taken.plan, taken.store)["scores"]
    except StudyError:
        if taken.stopped:  # before there was one
            opt.note_unfinished(out)
            raise typer.Exit(130) from None
        raise
