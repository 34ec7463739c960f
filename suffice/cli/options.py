"""Options that several commands share, and what they mean.

Commands import the rooms inside their functions, so that ``--help`` answers at once.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
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

# Help that options of several commands share, which are declared in more than one way.
CHECKPOINT = "Weights file to use instead of the published weights."
DEVICE = "Device, such as cpu, cuda, or cuda:1; default: the first GPU, or the CPU if there is none."
FIRST_IMAGES = "Use only the first N images."
IMAGE_FILES = "Image files, folders, CSV/JSONL lists, or built-in scenes such as scenes:test[:5]."
INPUTS = "Inputs per forward pass."
MASKED_IMAGES = "Masked images per forward pass."
MAX_PIXELS = "Refuse to decode images with more pixels than this."
ON_ERROR = "If a file cannot be read: skip it and name it at the end, or raise an error and stop."
OPEN_REPORT = "Open the report in the browser."
STEPS = "Steps of the curves; default: set by the protocol."

Device = Annotated[str | None, typer.Option(help=DEVICE)]
MethodNames = Annotated[
    str, typer.Option("--method", help="Attribution methods, separated by commas, or all; see suffice methods.")
]
MethodOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", help="Method option: NAME=VALUE for all methods, METHOD.NAME=VALUE for one; may be repeated."
    ),
]
FirstImages = Annotated[int | None, typer.Option("--images", min=1, help=FIRST_IMAGES)]
Seed = Annotated[int, typer.Option(help="Seed for everything random.")]
Batch = Annotated[int | None, typer.Option(min=1, help=INPUTS)]
ModelPrecision = Annotated[
    Precision, typer.Option("--precision", help="Precision of the model; fp16 rounds less than bf16.")
]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the model with torch.compile.")]
PictureFormat = Annotated[
    Format, typer.Option("--format", help="Format of pictures; png and pdf need vl-convert-python.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Delete the study in the folder and start over.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
# Of commands that train.
TrainingImages = Annotated[
    list[str], typer.Option("--images", help="Images to train on: a folder, files, or a list; repeat for several.")
]
Never = Annotated[
    list[str] | None,
    typer.Option("--never", help="Images for later evaluation: left out of training, recognized by their content."),
]
OnError = Annotated[Literal["skip", "raise"], typer.Option("--on-error", help=ON_ERROR)]
Alters = Annotated[
    bool, typer.Option("--alters", help="Randomly crop and mirror images each time they are seen; for small sets.")
]
Steps = Annotated[int | None, typer.Option(min=1, help="Number of batches; overrides --epochs.")]
TrainingBatch = Annotated[int | None, typer.Option("--batch", min=1, help="Images per batch; default: 32.")]
CheckpointEvery = Annotated[int, typer.Option(min=1, help="Steps between two checkpoints.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue where the same command was stopped.")]


def listed(text: str) -> list[str]:
    """Names that are separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def writable(folder: Path | None) -> Path | None:
    """See to it, before any work, that the folder of ``--out`` can be written to; nothing is left behind."""
    if folder is not None:
        check_folder(folder)
    return folder


def check_folder(folder: Path, option: str = "--out", named: Path | None = None) -> None:
    """Raise an error, before any work, where a folder cannot be written to; nothing is left behind.

    Args:
        folder: That exists, or will be made.
        option: What it was given by.
        named: What the error names instead, such as a file in it.
    """
    try:
        # No folder is made and removed again: another process may be about to use it.
        with tempfile.TemporaryFile(dir=next(part for part in (folder, *folder.absolute().parents) if part.exists())):
            pass
    except OSError as error:
        raise OptionError(f"{option} {named or folder} cannot be written to: {error.strerror or error}.") from error


def check_file(file: Path, option: str = "--out") -> None:
    """Raise an error, before any work, where a file cannot be written; nothing is left behind, and none is changed."""
    if file.is_dir():
        raise OptionError(f"{option} {file} is a folder; expected a file.")
    if not file.exists():
        check_folder(file.parent, option, named=file)
    elif not os.access(file, os.W_OK):
        raise OptionError(f"{option} {file} cannot be written to: {os.strerror(errno.EACCES)}.")


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
        output.note(f"Left out because they do not fit {model}: {', '.join(names)}.")


def note_earlier(earlier: int, images: int) -> None:
    """Say how many of the images of a study were finished before, if any were."""
    if earlier:
        output.note(f"{earlier} of {images} images were already done.")


def note_unfinished(folder: str | Path) -> None:
    """Say where the finished part of a study is, and how to go on; or that nothing of it was begun."""
    from suffice.study.plan import PLAN
    from suffice.study.store import Store

    if not Store(folder).exists(PLAN):
        output.note("Nothing was started yet; run the same command again to begin.")
        return
    output.note(f"What is finished is in {folder}; run the same command again to continue.")


def label_of(text: str) -> str:
    """A text as a part of the name of a measurement, which has letters, digits and ``.+-_`` only."""
    return re.sub(r"[^\w.+-]+", "-", text).strip("-")


def note_precision(precision: Precision, methods: list[Method]) -> None:
    """Say which methods run in fp32 though a lower precision is asked for."""
    in_fp32 = [one.name for one in methods if one.only_fp32]
    if in_fp32 and precision != "fp32":
        output.note(f"These methods always run in fp32: {', '.join(in_fp32)}.")


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
            raise OptionError(f"--grid {text!r}; expected METHOD.NAME=VALUE,VALUE,…; methods: {', '.join(axes)}.")
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
