"""``suffice evidence``: what is enough for a model to decide."""

from __future__ import annotations

import contextlib
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import output
from suffice.cli.options import (
    AsJson,
    Checkpoint,
    Compile,
    Device,
    ImageFiles,
    ModelName,
    ModelPrecision,
    Precision,
    RandomWeights,
    ResizeRule,
    images_of,
    load_model,
)

if TYPE_CHECKING:
    from suffice.evidence import Evidence
    from suffice.evidence.counting import Counting
    from suffice.evidence.statistics import Summary

EXAMPLES = """
Examples:

[green]suffice evidence cat.jpg --model timm/deit_small_patch16_224 --out evidence[/green]

[green]suffice evidence photos/ --model torchvision/resnet50 --precision bf16 --compile --batch 1024[/green]

[green]suffice evidence cat.jpg --model timm/vit_tiny_patch16_224 --checkpoint vit.safetensors --minimal subset[/green]
"""

FEW = 20  # up to so many images get figures without being asked for


class Minimal(str, Enum):
    """Minimality."""

    single = "single"
    subset = "subset"


class Search(str, Enum):
    """Search."""

    paper = "paper"
    sag = "sag"


def evidence(
    images: ImageFiles,
    model: ModelName,
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
    search: Annotated[Search | None, typer.Option(help="Candidates: all, or by a seed map.")] = None,
    minimal: Annotated[Minimal | None, typer.Option(help="No single cell can go, or no subset is enough.")] = None,
    max_mses: Annotated[int | None, typer.Option(help="Stop beyond so many explanations.  [default: 10]")] = None,
    max_size: Annotated[int | None, typer.Option(help="Largest set to look at.")] = None,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    resize: ResizeRule = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Masked images per forward.")] = None,
    precision: ModelPrecision = Precision.fp32,
    compile: Compile = False,
    figures: Annotated[
        bool | None, typer.Option("--figures/--no-figures", help=f"Draw graphs; default for up to {FEW} images.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the smallest regions that are enough for the model to decide, and what lies below them.

    Prints the minimal sufficient explanations (MSEs) of each image and the counts of sub-explanations; for many images,
    their summary. With --out, writes evidence.parquet (one row an image), and for each image the structured
    attention graph (SVG, JSON, DOT) and a picture of every MSE. On Ctrl-C, what is finished is kept.
    """
    from suffice.evidence import EvidenceStream
    from suffice.evidence import preset as named_settings
    from suffice.evidence.statistics import summarize
    from suffice.evidence.writer import TableWriter
    from suffice.perturb import Runner
    from suffice.report import draw_evidence

    opened = images_of(images)
    given = {
        "grid": grid, "threshold": threshold, "beam_width": beam_width, "baseline": baseline, "max_mses": max_mses,
        "search": search.value if search else None, "minimal": minimal.value if minimal else None, "max_size": max_size,
    }  # fmt: skip
    settings = named_settings(preset or "default").changed(**{k: v for k, v in given.items() if v is not None})
    net = load_model(model, checkpoint, random_weights, device, resize)
    runner = Runner(net, batch_size=batch or "auto", precision=precision.value, compile=compile)
    draw = len(opened) <= FEW if figures is None else figures
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)

    printed: list[dict[str, Any]] = []
    stopped = False
    with output.progress("Searching") as on_progress:
        work = EvidenceStream(
            net,
            opened,
            target,
            settings,
            runner,
            on_error="raise" if len(opened) == 1 else "skip",
            on_progress=on_progress,
        )
        writer = TableWriter(net.name, net.family, None if out is None else out / "evidence.parquet")
        with contextlib.suppress(KeyboardInterrupt), writer:
            stopped = True
            for found in work:
                writer.add(found)
                if out is not None and draw:
                    draw_evidence(found, out, net.geometry(opened[found.index].decode()))
                if as_json:
                    printed.append(_as_json(found))
                elif len(opened) <= FEW:
                    _print(found)
            stopped = False

    if as_json:
        output.print_json({"model": net.name, "family": net.family, "images": printed})
    elif len(opened) > 1 and writer.rows:
        _print_summary(summarize(writer.to_arrow()), net.name, settings.counting)
    for skip in work.skipped:
        output.note(f"Skipped {skip.name}: {skip.reason}")
    if out is not None:
        output.note(f"Written to {out}: evidence.parquet{', graphs and pictures' if draw else ''}")
    if stopped:
        output.note(f"Stopped; {writer.rows} of {len(opened)} images are kept.")
        raise typer.Exit(130)
    if work.skipped:
        raise typer.Exit(1)


def _print(found: Evidence) -> None:
    title = f"{found.name}: {found.label}, confidence {found.confidence:.3f}"
    rows = [(i + 1, len(m), f"{m.ratio:.3f}", " ".join(map(str, m.cells))) for i, m in enumerate(found.mses)]
    output.print_table(title, ("MSE", "cells", "ratio", "which"), rows, right=(0, 1, 2))
    counts = {c: found.subexplanations(c) for c in ("distinct", "per-mse", "tree", "tree3")}
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
    output.print_table(
        f"{model}: {summary.images} images", ("quantity", "mean", "± s.e.", "std", "median"), rows, right=(1, 2, 3, 4)
    )
    shares = {n: share for n, share in enumerate(summary.explained_with) if n in (1, 2, 3, 5, 8, 10, 15)}
    output.note("Explained with at most n cells: " + ", ".join(f"{n}: {s:.0%}" for n, s in shares.items()))
    output.note("Searches ended by: " + ", ".join(f"{reason} {n}" for reason, n in summary.stopped.items()))


def _as_json(found: Evidence) -> dict[str, Any]:
    same = ("name", "index", "target", "label", "confidence", "baseline_confidence", "questions", "levels", "stopped")
    return {
        **{key: getattr(found, key) for key in (*same, "truncated")},
        "mses": [{"cells": m.cells, "ratio": m.ratio, "certified": m.certified} for m in found.mses],
        "subexplanations": {
            c: {str(t): n for t, n in found.subexplanations(c).items()}
            for c in ("distinct", "per-mse", "tree", "tree3")
        },
        "formula": found.formula(),
    }
