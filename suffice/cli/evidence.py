"""``suffice evidence``: what is enough for a model to decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from suffice.cli import options as opt
from suffice.cli import output

if TYPE_CHECKING:
    from suffice.evidence import Evidence
    from suffice.evidence.counting import Counting
    from suffice.evidence.statistics import Summary

EXAMPLES = output.examples(
    "suffice evidence cat.jpg --model timm/deit_small_patch16_224 --out evidence",
    "suffice evidence photos/ --model torchvision/resnet50 --precision bf16 --compile --batch 1024",
    "suffice evidence cat.jpg --model timm/vit_tiny_patch16_224 --checkpoint vit.safetensors --minimal subset",
)

FEW = 20  # up to so many images get figures without being asked for


def evidence(
    images: opt.ImageFiles,
    model: opt.ModelName,
    out: Annotated[Path | None, typer.Option(help="Folder for the table, graphs and pictures.")] = None,
    target: Annotated[str | None, typer.Option(help="Class to ask about; default: the predicted one.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Start from named choices instead of the defaults: cvpr2024 or preprint, closest to those papers."
        ),
    ] = None,
    grid: Annotated[int | None, typer.Option(min=1, help="Cells a side.  [default: 7]")] = None,
    threshold: Annotated[float | None, typer.Option(help="Ratio that is enough.  [default: 0.9]")] = None,
    beam_width: Annotated[int | None, typer.Option(min=1, help="Sets kept at each level.  [default: 5]")] = None,
    baseline: Annotated[str | None, typer.Option(help="blur, black, gray, noise, … or a file.")] = None,
    search: Annotated[Literal["paper", "sag"] | None, typer.Option(help="Candidates: all, or by a seed map.")] = None,
    minimal: Annotated[
        Literal["single", "subset"] | None, typer.Option(help="No single cell can go, or no subset is enough.")
    ] = None,
    max_mses: Annotated[int | None, typer.Option(help="Stop beyond so many explanations.  [default: 10]")] = None,
    max_size: Annotated[int | None, typer.Option(help="Largest set to look at.")] = None,
    checkpoint: opt.Checkpoint = None,
    random_weights: opt.RandomWeights = False,
    device: opt.Device = None,
    resize: opt.ResizeRule = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Masked images per forward.")] = None,
    precision: opt.ModelPrecision = "fp32",
    compile: opt.Compile = False,
    figures: Annotated[
        bool | None, typer.Option("--figures/--no-figures", help=f"Draw graphs; default for up to {FEW} images.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Find the smallest regions that are enough for the model to decide, and what lies below them.

    Prints the minimal sufficient explanations (MSEs) of each image and the counts of sub-explanations; for many images,
    their summary. With --out, writes evidence.parquet (one row an image), and for each image the structured
    attention graph (SVG, JSON, DOT) and a picture of every MSE. On Ctrl-C, what is finished is kept.
    """
    from suffice.evidence import EvidenceStream
    from suffice.evidence import preset as named_settings
    from suffice.evidence.statistics import summarize
    from suffice.evidence.storage import TableWriter
    from suffice.perturb import Runner
    from suffice.report import draw_evidence

    opened = opt.images_of(images)
    given = {
        "grid": grid, "threshold": threshold, "beam_width": beam_width, "baseline": baseline, "max_mses": max_mses,
        "search": search, "minimal": minimal, "max_size": max_size,
    }  # fmt: skip
    settings = named_settings(preset or "default").changed(**{k: v for k, v in given.items() if v is not None})
    net = opt.load_model(model, checkpoint, random_weights, device, resize)
    runner = Runner(net, batch_size=batch or "auto", precision=precision, compile=compile)
    draw = len(opened) <= FEW if figures is None else figures
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)

    printed: list[dict[str, Any]] = []
    stopped = False
    with output.progress("Searching") as on_progress:
        on_error = opt.on_error(opened)
        work = EvidenceStream(net, opened, target, settings, runner, on_error=on_error, on_progress=on_progress)
        writer = TableWriter(net.name, net.family, None if out is None else out / "evidence.parquet")
        try:
            with writer:
                for found in work:
                    writer.add(found)
                    if out is not None and draw:
                        draw_evidence(found, out, net.geometry(opened[found.index].decode()))
                    if as_json:
                        printed.append(_as_json(found))
                    elif len(opened) <= FEW:
                        _print(found)
        except KeyboardInterrupt:
            stopped = True

    if as_json:
        printed.sort(key=lambda one: one["index"])  # they come as they are finished
        output.print_json({"model": net.name, "family": net.family, "images": printed})
    elif len(opened) > 1 and writer.rows:
        _print_summary(summarize(writer.to_arrow()), net.name, settings.counting)
    if out is not None:
        output.note(f"Written to {out}: evidence.parquet{', graphs and pictures' if draw else ''}")
    if stopped:
        output.note(f"Stopped; {writer.rows} of {len(opened)} images are kept.")
    output.finish(work.skipped, stopped)


def _print(found: Evidence) -> None:
    from suffice.evidence.counting import COUNTINGS

    title = f"{found.name}: {found.label}, confidence {found.confidence:.3f}"
    rows = [(i + 1, len(m), f"{m.ratio:.3f}", " ".join(map(str, m.cells))) for i, m in enumerate(found.mses)]
    output.print_table(title, ("MSE", "cells", "ratio", "which"), rows, right=(0, 1, 2))
    counts = {c: found.subexplanations(c) for c in COUNTINGS}
    thresholds = list(counts["distinct"])
    count_rows = [(name, *(f"{of[t]:,}".replace(",", " ") for t in thresholds)) for name, of in counts.items()]
    heads = ("sub-explanations", *(f"≥ {t:.0%}" for t in thresholds))
    output.print_table("", heads, count_rows, right=range(1, 1 + len(thresholds)))
    cut = "; counts are lower bounds" if found.truncated else ""
    output.note(f"{found.questions} masked images, {found.levels} levels, stopped by: {found.stopped}{cut}.\n")


def _print_summary(summary: Summary, model: str, counting: Counting) -> None:
    from suffice.evidence.statistics import count_column

    wanted = ["mses", "mean_size", "diverse_0", "diverse_1", "diverse_2"]
    wanted += [count_column(counting, t) for t in (0.8, 0.7, 0.6, 0.5)] + ["questions"]
    rows = []
    for name in wanted:
        s = summary.statistics[name]
        rows.append((name, *(f"{number:.2f}" for number in (s.mean, s.standard_error, s.std, s.median))))
    columns = ("quantity", "mean", "± s.e.", "std", "median")
    output.print_table(f"{model}: {summary.images} images", columns, rows, right=(1, 2, 3, 4))
    shares = {n: share for n, share in enumerate(summary.explained_with) if n in (1, 2, 3, 5, 8, 10, 15)}
    output.note("Explained with at most n cells: " + ", ".join(f"{n}: {s:.0%}" for n, s in shares.items()))
    output.note("Searches ended by: " + ", ".join(f"{reason} {n}" for reason, n in summary.stopped.items()))


def _as_json(found: Evidence) -> dict[str, Any]:
    from suffice.evidence.counting import COUNTINGS

    same = ("name", "index", "target", "label", "confidence", "baseline_confidence", "questions", "levels", "stopped")
    return {
        **{key: getattr(found, key) for key in (*same, "truncated")},
        "mses": [{"cells": m.cells, "ratio": m.ratio, "certified": m.certified} for m in found.mses],
        "subexplanations": {c: {str(t): n for t, n in found.subexplanations(c).items()} for c in COUNTINGS},
        "formula": found.formula(),
    }
