"""``suffice explain``: where in an image a model finds its reasons, and ``suffice methods``: by which methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import output
from suffice.cli.options import (
    AsJson,
    Batch,
    Checkpoint,
    Device,
    MethodNames,
    MethodOptions,
    ModelName,
    Precision,
    RandomWeights,
    Resize,
    Seed,
    chosen_methods,
    load_model,
    note_precision,
)
from suffice.errors import OptionError

if TYPE_CHECKING:
    from suffice.attribution import Attribution
    from suffice.vision import Classifier, Images, Predictions
    from suffice.vision.classifier import Targets

# What a figure adds to the name of a class.
_ROLES = {"@label": ", the label", "@1": ", likeliest", "@2": ", second", "@3": ", third"}

EXAMPLES = """
Examples:

[green]suffice explain cat.jpg --model timm/deit_small_patch16_224 --method grad-cam,rise,igos++ --out maps[/green]

[green]suffice explain cat-and-dog.jpg --model torchvision/resnet50 --target tabby --target beagle --out maps[/green]

[green]suffice explain photos.csv --model torchvision/vit_b_16 --method tis --target @label --target @1[/green]

[green]suffice explain cat.jpg --model torchvision/resnet50 --method rise --option masks=1000 --out maps[/green]

[green]suffice explain scenes:test[:5] --model zoo/deit --method rollout,vit-cx,tis --score --out maps[/green]
"""
METHODS_EXAMPLES = """
Examples:

[green]suffice methods[/green]

[green]suffice methods --model timm/swin_tiny_patch4_window7_224[/green]
"""


def explain(
    images: Annotated[list[str], typer.Argument(help="Image files, folders, CSV/JSONL lists, or scenes:test[:5].")],
    model: ModelName,
    method: MethodNames = "grad-cam",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Class to explain, index or label; @label, that of each image; @1, @2, …, its likeliest classes. "
            "Several draw one row each."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Predictions to show.")] = 3,
    option: MethodOptions = None,
    score: Annotated[
        bool, typer.Option("--score", help="Measure insertion and deletion and write them below each map.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for figures and maps.")] = Path("explanations"),
    seed: Seed = 0,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    resize: Annotated[Resize | None, typer.Option(help="Overrule the weights' own resize rule.")] = None,
    batch: Batch = None,
    precision: Annotated[Precision, typer.Option(help="Of the model, for methods without gradients.")] = Precision.fp32,
    as_json: AsJson = False,
) -> None:
    """Draw where each method says that the model finds its reasons, one figure an image, and keep the raw maps.

    A figure has the image with its best predictions, and one overlay a method; with several targets, one row a class.
    Raw maps are written as safetensors with a JSON file beside them, one for each method and target.
    """
    from suffice.attribution import attribute
    from suffice.attribution.call import Forwarders
    from suffice.vision import open_images

    opened = open_images(images[0] if len(images) == 1 else images)
    chosen, options = chosen_methods(method, option)
    net = load_model(model, checkpoint, random_weights, device, resize)
    if method.strip() == "all":
        chosen = [one for one in chosen if one.incompatibility(net) is None]
    on_error: Any = "raise" if len(opened) == 1 else "skip"
    predictions = net.predict(opened, on_error=on_error)
    readable = opened if not predictions.skipped else [opened[i] for i in predictions.index.tolist()]
    out.mkdir(parents=True, exist_ok=True)
    forwarders = Forwarders(net, batch or "auto", precision.value)
    note_precision(precision, chosen)
    found: dict[str, dict[str, Attribution]] = {}  # by target as given, then by method
    wishes: list[str | None] = list(target or [None])  # type: ignore[list-item]
    for wanted in wishes:
        row, classes = found.setdefault(wanted or "", {}), _classes(wanted, open_images(readable), predictions)
        for one in chosen:
            with output.progress(one.name) as on_progress:
                row[one.name] = attribute(
                    net,
                    readable,
                    one,
                    classes,
                    seed=seed,
                    forwarder=forwarders.of(one),
                    on_progress=on_progress,
                    **options[one.name],
                )
            row[one.name].save(out / f"{one.name}{f'-{_as_file(wanted)}' if wanted else ''}.safetensors")
    notes = {wanted: _notes(net, readable, row) if score else {} for wanted, row in found.items()}
    written = _draw(net, open_images(readable), predictions, found, notes, top, out)
    if as_json:
        output.print_json({"model": net.name, "methods": [m.name for m in chosen], "figures": list(map(str, written))})
    else:
        rows = [
            (name, attribution.labels[i], f"{float(attribution.confidences[i]):.3f}")
            for row in found.values()
            for attribution in list(row.values())[:1]
            for i, name in enumerate(attribution.names)
        ]
        output.print_table(net.name, ("image", "explained", net.score), rows, right=(2,))
        figures = f"{len(written)} figure{'s' if len(written) > 1 else ''}"
        output.note(f"Written to {out}: {figures}, and the raw maps of {', '.join(m.name for m in chosen)}")
    for skip in predictions.skipped:
        output.note(f"Skipped {skip.name}: {skip.reason}")
    if predictions.skipped:
        raise typer.Exit(1)


def methods_command(
    model: Annotated[str | None, typer.Option("--model", "-m", help="Say which fit this model.")] = None,
    as_json: AsJson = False,
) -> None:
    """List attribution methods: what they do, what they need of a model, and their options."""
    from suffice.attribution.method import all_methods

    net = None if model is None else load_model(model, None, True, "cpu")
    known = all_methods().values()
    if as_json:
        listed = [
            {
                "name": m.name, "about": m.about, "needs": m.needs, "options": dict(m.options), "aliases": m.aliases,
                "reference": m.reference, **({} if net is None else {"misfit": m.incompatibility(net)}),
            }
            for m in known
        ]  # fmt: skip
        output.print_json(listed)
        return
    columns = ["method", "what it shows", "needs", "options"]
    rows = [
        [m.name, m.about, ", ".join(m.needs) or "nothing", ", ".join(f"{k}={v}" for k, v in m.options.items())]
        for m in known
    ]
    if net is not None:
        columns.insert(1, "fits")
        for row, m in zip(rows, known, strict=True):
            reason = m.incompatibility(net)
            row.insert(1, "yes" if reason is None else f"no: {reason}")
    output.print_table("", columns, rows)


def _classes(wanted: str | None, images: Images, predictions: Predictions) -> Targets:
    """What ``--target`` asks for: the same class for all images, or one for each."""
    if wanted is None or not wanted.startswith("@"):
        return wanted
    if wanted == "@label":
        labels = [label for label in images.labels if label is not None]
        if len(labels) < len(images):
            raise OptionError(f"--target @label: {len(images) - len(labels)} of {len(images)} images have no label.")
        return labels
    classes = predictions.scores.shape[1]
    if not wanted[1:].isdecimal() or not 1 <= int(wanted[1:]) <= classes:
        raise OptionError(f"--target {wanted}: expected @label, or @1 to @{classes}.")
    return [best[-1][0] for best in predictions.top(int(wanted[1:]))]


def _draw(
    net: Classifier,
    images: Images,
    predictions: Predictions,
    found: dict[str, dict[str, Attribution]],
    notes: dict[str, dict[str, list[str]]],
    top: int,
    out: Path,
) -> list[Path]:
    from suffice.report import ClassRow, explanation_figure

    best = predictions.top(top)
    written = []
    for number, picture in enumerate(images):
        rows = []
        for wanted, by_method in found.items():
            any_one = next(iter(by_method.values()))
            maps = {name: attribution.maps[number] for name, attribution in by_method.items()}
            below = {name: texts[number] for name, texts in notes[wanted].items()}
            label = f"{any_one.labels[number]}{_ROLES.get(wanted, '')}"
            rows.append(ClassRow(label, float(any_one.confidences[number]), maps, below))
        said = [(label, score) for _, label, score in best[number]]
        figure = explanation_figure(
            net.geometry(picture.decode()), rows, title=Path(picture.name).name, model=net.name, top=said
        )
        path = out / f"{number:05d}-{_as_file(Path(picture.name).stem)}.svg"
        path.write_text(figure, encoding="utf-8")
        written.append(path)
    return written


def _notes(net: Classifier, images: Any, found: dict[str, Attribution]) -> dict[str, list[str]]:
    """Insertion and deletion of each map, by method, as text."""
    from suffice import measure
    from suffice.report.explanation import score_note

    notes = {}
    for name, attribution in found.items():
        with output.progress(f"{name}: insertion, deletion") as on_progress:
            scores = measure(net, images, attribution, ["insertion", "deletion"], on_progress=on_progress)
        notes[name] = [score_note(scores, number) for number in range(len(attribution.maps))]
    return notes


def _as_file(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)
