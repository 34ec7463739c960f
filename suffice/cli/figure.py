"""``suffice figure``: one figure of a study, or of a model and images, as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.errors import OptionError

if TYPE_CHECKING:
    from suffice.report.figures import Drawing, Figure
    from suffice.vision.stream import OnError, Skip

EXAMPLES = output.examples(
    "suffice figure  # lists all, with the figures of papers that they correspond to",
    "suffice figure landscape runs/first --out landscape.pdf",
    "suffice figure attention-graphs runs/first --image cat.jpg --model timm/resnet50,timm/deit_small_patch16_224",
    "suffice figure classes cat.jpg --model timm/deit_small_patch16_224 --method tis,cgw2 --targets @1,@2",
)
COLUMNS = ("figure", "what it shows", "made of", "in papers")


def figure(
    name: Annotated[str | None, typer.Argument(help="Name of the figure; without one, list all.")] = None,
    of: Annotated[
        list[str] | None, typer.Argument(metavar="RUN|IMAGES", help="Folder of a study; for some figures, images.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File (.svg, .png, .pdf) or folder; default: NAME.svg in the current folder.")
    ] = None,
    image: Annotated[str | None, typer.Option(help="Image of the study: its position or its name.")] = None,
    images: Annotated[str | None, typer.Option(help="Several images of the study, separated by commas.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model, or several, separated by commas.")] = None,
    method: Annotated[str | None, typer.Option(help="Method of the maps; for some figures, several.")] = None,
    metric: Annotated[str | None, typer.Option(help="Metric of the scores.")] = None,
    measurement: Annotated[str | None, typer.Option(help="Measurement of the study, if several would fit.")] = None,
    targets: Annotated[
        str | None,
        typer.Option(help="Classes to explain: labels, or @1, @2, … for the likeliest; separated by commas."),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Another option of the figure: NAME=VALUE; may be repeated.")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help=opt.CHECKPOINT)] = None,
    device: opt.Device = None,
    on_error: Annotated[
        Literal["skip", "raise"],
        typer.Option(help="If an image cannot be read: skip it and name it at the end, or raise an error and stop."),
    ] = "skip",
    dark: Annotated[bool, typer.Option("--dark", help="Draw the figure for a dark background.")] = False,
    width: Annotated[int | None, typer.Option(min=100, help="Width of a chart, in pixels.")] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Also write the numbers, as a CSV file beside the figure.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Draw a figure from a study, or from a model and images; without a name, list all figures."""
    from suffice.draw.files import check_format, is_picture
    from suffice.report.figures import find_figure

    if name is None:
        _list(as_json)
        return
    one = find_figure(name)
    if not of:
        raise OptionError(f"{name} is made of {_made_of(one)}; name it: suffice figure {name} {_placeholder(one)}")
    if out is not None and out.suffix and not is_picture(out):
        raise OptionError(f"--out {out}; expected a file that ends with .svg, .png or .pdf, or a folder.")
    if out is not None and out.suffix:
        kind: Any = out.suffix[1:].lower()
        check_format(kind)
        opt.check_file(out)
    else:
        opt.check_folder(out or Path())
    given: dict[str, Any] = {
        "image": image, "images": images, "method": method, "metric": metric, "measurement": measurement,
        "targets": targets, **_further(option),
    }  # fmt: skip
    chosen = {key: value for key, value in given.items() if value is not None}
    skipped: Sequence[Skip] = ()
    with output.asking(name):
        if one.of_model:
            made, skipped = _of_models(one, of, model, checkpoint, device, chosen, on_error)
        else:
            made = _drawn(one, of, model, device, chosen)
    if not made:
        raise OptionError(f"The study has too little for {name}: it has {_made_of(one)}, but nothing to compare.")
    files = [_saved(drawing, _place(out, drawing, len(made)), dark, width, table) for drawing in made]
    if as_json:
        said = ("name", "title", "reading", "alt", "source")
        pairs = zip(files, made, strict=True)
        output.print_json([{"file": str(f), **{name: getattr(d, name) for name in said}} for f, d in pairs])
    else:
        for file, drawing in zip(files, made, strict=True):
            print(file)
            output.note(drawing.title, f"  {drawing.reading}")
    output.finish(skipped)


def _of_models(
    one: Figure,
    of: list[str],
    model: str | None,
    checkpoint: Path | None,
    device: str | None,
    chosen: dict[str, Any],
    on_error: OnError,
) -> tuple[list[Drawing], Sequence[Skip]]:
    """Make a figure of models and images, without the images that cannot be read, and what does not fit a model."""
    from suffice.vision import load, open_images
    from suffice.vision.stream import readable

    if model is None:
        raise OptionError(f"{one.name} needs --model.")
    how: dict[str, Any] = {"device": device, **({} if checkpoint is None else {"checkpoint": checkpoint})}
    nets = [load(name.strip(), **how) for name in model.split(",")]
    misfits = one.fitting(nets, chosen)
    named = opt.listed(str({**one.options, **chosen}.get("method", "")))
    fits = [net for net in nets if not named or len(misfits.get(net.name, [])) < len(named)]
    opened = open_images(of[0] if len(of) == 1 else of)
    count = {**one.options, **chosen}.get("count", one.images)
    most = count if isinstance(count, int) and count > 0 else None  # what is none, the figure refuses
    used, skipped = readable(opened, "raise" if len(opened) == 1 else on_error, most)
    # Where no model is left, the figure itself says why.
    made = one.drawings(fits or nets, used, **chosen)
    for name, methods in misfits.items():
        opt.note_misfits(name, methods)
    return made, skipped


def _drawn(one: Figure, of: list[str], model: str | None, device: str | None, chosen: dict[str, Any]) -> list[Drawing]:
    """Open the study, or the files, that a figure is made of, and make it."""
    from suffice.study import Study

    if len(of) > 1:
        raise OptionError(f"{one.name} is made of {_made_of(one)}: expected one folder, and got {len(of)}.")
    if one.of_file:
        return one.drawings(Path(of[0]), **chosen)
    if model is not None:
        chosen["models" if "models" in one.options else "model"] = model
    if device is not None and one.asks:
        chosen["device"] = device
    return one.drawings(Study.open(of[0]), **chosen)


def _further(option: list[str] | None) -> dict[str, Any]:
    return opt.method_options(option or [], [""])[""]


def _place(out: Path | None, drawing: Drawing, count: int) -> Path:
    """The file of a drawing; where a figure has several, each has its own name."""
    if out is None or not out.suffix:
        return (out or Path()) / f"{drawing.name}.svg"
    return out if count == 1 else out.with_name(f"{out.stem}-{drawing.name}{out.suffix}")


def _saved(drawing: Drawing, file: Path, dark: bool, width: int | None, table: bool) -> Path:
    how: dict[str, Any] = {} if width is None else {"width": width}
    drawing.save(file, dark, **how)
    if table and drawing.table is not None:
        import pyarrow.csv

        pyarrow.csv.write_csv(drawing.table, file.with_suffix(".csv"))
    return file


def _list(as_json: bool) -> None:
    from suffice.report.figures import find_figure, list_figures

    every = [find_figure(name) for name in list_figures()]
    if as_json:
        output.print_json(
            [
                {"name": f.name, "title": f.title, "needs": f.needs, "papers": f.papers, "asks": f.asks,
                 "options": dict(f.options)}
                for f in every
            ]
        )  # fmt: skip
        return
    output.print_table("", COLUMNS, [(f.name, f.title, _made_of(f), "; ".join(f.papers)) for f in every])


def _made_of(one: Figure) -> str:
    if one.of_model:
        return "a model and images"
    if one.of_file:
        return "what suffice sanity --out wrote"
    return f"a study with {' and '.join(one.needs)}"


def _placeholder(one: Figure) -> str:
    return "IMAGES --model MODEL" if one.of_model else "RUN"
