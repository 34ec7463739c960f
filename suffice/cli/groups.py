"""Groups of options that commands share: the images, and the model.

A command takes a group as one parameter, and :func:`flat` makes the options of the command line from its fields.
"""

from __future__ import annotations

import copy
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from suffice.cli import options as opt
from suffice.errors import ImageError, OptionError

if TYPE_CHECKING:
    from suffice.vision import Classifier, Images
    from suffice.vision.stream import OnError

Command = Callable[..., None]
Resize = Literal["crop", "squash"]

_MODEL, _IMAGES = "Model", "Images"  # headings of help
RUN, OUTPUT = "Run", "Output"  # headings that commands with many options put some of theirs under


def flat(command: Command) -> Command:
    """A command whose groups of options are options of its own."""
    # Not get_type_hints, which under Python 3.10 puts an Optional around the options whose default is None.
    declared = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: given.annotation for name, given in declared.items() if is_dataclass(given.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for name, given in declared.items():
        if name not in groups:
            parameters.append(given.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        own = get_type_hints(groups[name], include_extras=True)
        parameters += [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if one.default is MISSING else one.default,
                annotation=own[one.name],
            )
            for one in fields(groups[name])
        ]

    def called(**given: Any) -> None:
        whole = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        with ExitStack() as stack:
            for group in whole.values():
                stack.enter_context(group.in_force())
            command(**whole, **given)

    called.__name__, called.__doc__, called.__module__ = command.__name__, command.__doc__, command.__module__
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def under(headings: Mapping[str, tuple[str, ...]]) -> Callable[[Command], Command]:
    """A command whose help shows some of its options under headings.

    Args:
        headings: The parameters of each heading, in the order in which help shows them; others stay where they are.
    """

    def headed(command: Command) -> Command:
        declared = dict(inspect.signature(command, eval_str=True).parameters)
        moved = [_with_heading(declared.pop(name), heading) for heading, names in headings.items() for name in names]
        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*moved, *declared.values())]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return headed


def _with_heading(parameter: inspect.Parameter, heading: str) -> inspect.Parameter:
    option = copy.copy(parameter.annotation.__metadata__[0])
    option.rich_help_panel = heading
    return parameter.replace(annotation=Annotated[parameter.annotation.__origin__, option])


@dataclass(frozen=True)
class ModelOptions:
    """The model that a command is about."""

    model: Annotated[
        str,
        typer.Option("--model", "-m", help="Model, such as timm/resnet50, or your own as mymodule:make_model."),
    ]
    checkpoint: Annotated[Path | None, typer.Option(help=opt.CHECKPOINT, rich_help_panel=_MODEL)] = None
    random_weights: Annotated[
        bool,
        typer.Option("--random-weights", help="Use random weights; nothing is downloaded.", rich_help_panel=_MODEL),
    ] = False
    device: Annotated[str | None, typer.Option(help=opt.DEVICE, rich_help_panel=_MODEL)] = None
    labels: Annotated[
        str | None,
        typer.Option(help="Class names: a,b,c, or a file with one name per line.", rich_help_panel=_MODEL),
    ] = None
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="For CLIP and SigLIP: text with {} for the label; repeat it to average several.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    num_classes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of classes, if it is not that of the published weights.", rich_help_panel=_MODEL
        ),
    ] = None
    size: Annotated[
        int | None, typer.Option(min=1, help="Input height and width, in pixels.", rich_help_panel=_MODEL)
    ] = None
    mean: Annotated[
        str | None,
        typer.Option(
            help="Mean of red, green, and blue, such as 0.485,0.456,0.406; for gray, one number.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    std: Annotated[
        str | None,
        typer.Option(help="Standard deviation in the same form, such as 0.229,0.224,0.225.", rich_help_panel=_MODEL),
    ] = None
    resize: Annotated[
        Resize | None,
        typer.Option(help="Override the resize rule that comes with the weights.", rich_help_panel=_MODEL),
    ] = None

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """While the command runs, modules in the current folder can be imported, as ``python -m`` can import them."""
        here = os.getcwd()
        sys.path.insert(0, here)
        try:
            yield
        finally:
            sys.path.remove(here)

    def load(self) -> Classifier:
        """Load it."""
        from suffice.vision import load

        how: dict[str, Any] = {"checkpoint": self.checkpoint, "pretrained": not self.random_weights}
        return load(self.model, device=self.device, **how, **self._options)

    def choice(self, **more: Any) -> dict[str, Any]:
        """The same for a study; with further arguments of ``load``, where they are not None."""
        checkpoint = {} if self.checkpoint is None else {"checkpoint": str(self.checkpoint)}
        options = self._options | {name: value for name, value in more.items() if value is not None}
        return {"name": self.model, "pretrained": not self.random_weights, **checkpoint, "options": options}

    @property
    def _options(self) -> dict[str, Any]:
        """Arguments of ``load`` that were given."""
        given = {
            "labels": _names(self.labels), "prompt": self.prompt or None, "num_classes": self.num_classes,
            "size": self.size, "mean": _numbers("mean", self.mean), "std": _numbers("std", self.std),
            "resize": self.resize,
        }  # fmt: skip
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class SeveralModels(ModelOptions):
    """The models that a command is about."""

    model: Annotated[str, typer.Option("--model", "-m", help="Models, separated by commas; suffice models lists them.")]

    @property
    def each(self) -> list[SeveralModels]:
        """One by one."""
        return [replace(self, model=name.strip()) for name in self.model.split(",")]


@dataclass(frozen=True)
class ImageOptions:
    """The images that a command is about."""

    images: Annotated[list[str], typer.Argument(help=opt.IMAGE_FILES)]
    root: Annotated[
        Path | None,
        typer.Option(
            help="Folder that paths in a list are relative to; default: the list's own.", rich_help_panel=_IMAGES
        ),
    ] = None
    max_pixels: Annotated[int | None, typer.Option(min=1, help=opt.MAX_PIXELS, rich_help_panel=_IMAGES)] = None
    on_error: Annotated[
        Literal["skip", "raise"],
        typer.Option(help=opt.ON_ERROR, rich_help_panel=_IMAGES),
    ] = "skip"

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """While the command runs, a larger limit of pixels is also that of Pillow, which some of its decoders heed."""
        if self.max_pixels is None:
            yield
            return
        from PIL import Image

        before = Image.MAX_IMAGE_PIXELS
        Image.MAX_IMAGE_PIXELS = None if before is None else max(before, self.max_pixels)
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before

    def open(self, count: int | None = None) -> Images:
        """Open them, or the first so many."""
        from suffice.vision import open_images

        named: Any = self.images[0] if len(self.images) == 1 else self.images
        return open_images(named, root=self.root, max_pixels=self.max_pixels)[:count]

    def choice(self, count: int | None = None) -> dict[str, Any]:
        """The same for a study."""
        root = None if self.root is None else str(self.root)
        return {"source": list(self.images), "root": root, "max_pixels": self.max_pixels, "take": count}

    def on_error_of(self, images: Images) -> OnError:
        """What to do about an image that cannot be read; where there is just one, nothing is left without it."""
        return "raise" if len(images) == 1 else self.on_error

    def check(self, images: Images) -> None:
        """See to it, before a study that would go on without them, that images can be read where that is wanted."""
        from suffice.vision.stream import readable

        if self.on_error_of(images) == "raise":
            _, skipped = readable(images)
            if skipped:
                raise ImageError(skipped[0].reason)


@dataclass(frozen=True)
class ImagesWithObjects(ImageOptions):
    """The images that a command is about, with the objects in them."""

    boxes: Annotated[
        Path | None,
        typer.Option(
            help="CSV or JSONL file with columns path and boxes: where the objects are.", rich_help_panel=_IMAGES
        ),
    ] = None

    def open(self, count: int | None = None) -> Images:
        """Open them, or the first so many."""
        from suffice.vision.images.listing import with_boxes

        opened = super().open(count)
        return opened if self.boxes is None else with_boxes(opened, self.boxes)

    def choice(self, count: int | None = None) -> dict[str, Any]:
        """The same for a study."""
        return {**super().choice(count), "boxes": None if self.boxes is None else str(self.boxes)}


def _names(text: str | None) -> list[str] | None:
    """The names of classes that ``--labels`` gives: separated by commas, or in a file with one a line."""
    if text is None:
        return None
    if os.path.isfile(text):
        names = Path(text).read_text("utf-8").splitlines()
    elif "," in text:
        names = text.split(",")
    else:
        raise OptionError(
            f"--labels {text} is not a file; write names as cat,dog (a single one ends with a comma: cat,)."
        )
    return [name.strip() for name in names if name.strip()]


def _numbers(name: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(f"--{name} {text}; expected numbers, as 0.5,0.5,0.5.") from None
