"""Options that several commands share, and what they mean.

Commands import the rooms inside their functions, so that ``--help`` answers at once.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from suffice.cli import output
from suffice.errors import OptionError

if TYPE_CHECKING:
    from suffice.attribution import Method
    from suffice.metrics import Entry
    from suffice.vision import Classifier

Precision = Literal["fp32", "ieee", "tf32", "bf16", "fp16"]
AnyPrecision = Literal["fp32", "ieee", "tf32", "bf16", "fp16", "auto"]
Format = Literal["svg", "png", "pdf"]

Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, …; default the first GPU, else the CPU.")]
MethodNames = Annotated[
    str, typer.Option("--method", help="Methods, separated by commas, or all; see suffice methods.")
]
MethodOptions = Annotated[
    list[str] | None,
    typer.Option("--option", help="Option of a method: NAME=VALUE, or METHOD.NAME=VALUE where several differ."),
]
FirstImages = Annotated[int | None, typer.Option("--images", min=1, help="Use the first so many images.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Batch = Annotated[int | None, typer.Option(min=1, help="Inputs per forward.")]
ModelPrecision = Annotated[
    Precision, typer.Option("--precision", help="Precision of the model; fp16 is finer than bf16.")
]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the model with torch.compile.")]
PictureFormat = Annotated[Format, typer.Option("--format", help="Of pictures; png, pdf: needs vl-convert-python.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Remove the study that is in the folder first.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def listed(text: str) -> list[str]:
    """Names that are separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def writable(folder: Path | None) -> Path | None:
    """See to it, before any work, that a folder can be written to; nothing is left behind."""
    if folder is None:
        return None
    try:
        # No folder is made and removed again: another process may be about to use it.
        with tempfile.TemporaryFile(dir=next(part for part in (folder, *folder.absolute().parents) if part.exists())):
            pass
    except OSError as error:
        raise OptionError(f"--out {folder} cannot be written to: {error.strerror or error}.") from error
    return folder


def chosen_methods(named: str, option: list[str] | None) -> tuple[list[Method], dict[str, dict[str, Any]]]:
    """The methods of ``--method``, or all, and the options of each, checked before any work."""
    from suffice.attribution import find_method, list_methods

    names = list_methods() if named.strip() == "all" else named.split(",")
    chosen = [find_method(name.strip()) for name in names if name.strip()]
    if not chosen:
        raise OptionError("--method names no method.")
    options = method_options(option or [], [m.name for m in chosen])
    for one in chosen:
        one.check(options[one.name])
    return chosen, options


def note_left_out(methods: list[Method], net: Classifier, options: dict[str, dict[str, Any]]) -> None:
    """Say which methods, with their options, do not fit a model."""
    note_misfits(net.name, [m.name for m in methods if m.incompatibility(net, options.get(m.name, {})) is not None])


def note_misfits(model: str, names: list[str]) -> None:
    """Say that these do not fit a model, if there are any."""
    if names:
        output.note(f"Left out, as they do not fit {model}: {', '.join(names)}.")


def label_of(text: str) -> str:
    """A text as a part of the name of a measurement, which has letters, digits and ``.+-_`` only."""
    return re.sub(r"[^\w.+-]+", "-", text).strip("-")


def note_precision(precision: Precision, methods: list[Method]) -> None:
    """Say which methods run in fp32 though a lower precision is asked for."""
    in_fp32 = [one.name for one in methods if one.only_fp32]
    if in_fp32 and precision != "fp32":
        output.note(f"In fp32, which they want: {', '.join(in_fp32)}.")


def named_precision(precision: AnyPrecision, net: Classifier) -> Precision:
    """The precision that is meant; of a study it has a name, as parts of it may be done on different machines."""
    from suffice.perturb import Runner

    named = Runner(net, precision=precision).precision
    if precision == "auto":
        output.note(f"Precision: {named}.")
    return named


def grid_entries(methods: list[Method], options: dict[str, dict[str, Any]], grid: list[str] | None) -> list[Entry]:
    """One line of a table for each method, or for each combination of the values that ``--grid`` gives its options."""
    from suffice.metrics import Entry

    axes: dict[str, dict[str, list[Any]]] = {one.name: {} for one in methods}
    for text in grid or []:
        key, sign, values = text.partition("=")
        owner, dot, name = key.rpartition(".")
        if not sign or not dot or owner not in axes:
            raise OptionError(f"--grid {text!r}; expected METHOD.NAME=VALUE,VALUE,…, of {', '.join(axes)}.")
        axes[owner][name] = [_value(value) for value in values.split(",")]
    entries = []
    for one in methods:
        for point in itertools.product(*axes[one.name].values()):
            own = dict(zip(axes[one.name], point, strict=True))
            one.check(own)
            label = " ".join([one.name, *(f"{name}={value}" for name, value in own.items())])
            entries.append(Entry(one, {**options[one.name], **own}, label))
    return entries


def method_options(given: list[str], names: list[str]) -> dict[str, dict[str, Any]]:
    """Options of each method from NAME=VALUE and METHOD.NAME=VALUE."""
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign:
            raise OptionError(f"--option {text!r}; expected NAME=VALUE, such as masks=1000.")
        owner, dot, name = key.rpartition(".")
        if dot and owner not in options:
            raise OptionError(f"--option {text!r}: {owner!r} is not among the methods {', '.join(names)}.")
        for method in [owner] if dot else names:
            options[method][name] = _value(value)
    return options


def _value(text: str) -> Any:
    """A number, truth value or nothing where the text is one, else the text."""
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
