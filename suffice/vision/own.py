"""Models of one's own, by where they are made: ``"mymodule:make_model"``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn

from suffice.errors import OptionError, UnknownModel
from suffice.vision.checkpoints import load_checkpoint
from suffice.vision.classifier import Classifier
from suffice.vision.models import split_options


def is_own(name: str) -> bool:
    """Whether a name says where in Python a model is made.

    Example:
        >>> is_own("mymodule:make_model"), is_own("timm/resnet50")
        (True, False)
    """
    return re.fullmatch(r"[^\W\d][\w.]*:[^\W\d][\w.]*", name) is not None


def build_own(name: str, *, pretrained: bool, checkpoint: str | Path | None, **options: Any) -> Classifier:
    """The classifier that a module, or a function that makes one, stands for.

    Args:
        name: ``"package.module:name"`` of a function that returns an ``nn.Module`` or a :class:`Classifier`, or of one
            of these.
        pretrained: Must be true: the function decides which weights the model has.
        checkpoint: Weights for it.
        **options: Arguments of :class:`Classifier` go to it, the rest to the function.

    Raises:
        UnknownModel: There is no such module, or nothing of that name in it.
        OptionError: It is or returns something else, or its preprocessing is not known.
    """
    own, others = split_options(options)
    if not pretrained:
        raise OptionError(f"pretrained=False is for models that suffice makes; {name} makes its own weights.")
    found = _found(name)
    if not isinstance(found, (nn.Module, Classifier)):
        if not callable(found):
            raise OptionError(f"{name} is of type {type(found).__name__}; expected a function that makes a model.")
        _check_call(found, name, others)
        found = found(**others)
    elif others:
        raise OptionError(f"{name} is made already, and takes no {', '.join(others)}.")
    module = found.module if isinstance(found, Classifier) else found
    if not isinstance(module, nn.Module):
        raise OptionError(f"{name} returned {type(found).__name__}; expected an nn.Module or a suffice.Classifier.")
    if checkpoint is not None:
        load_checkpoint(module, checkpoint)
    if isinstance(found, Classifier):
        return found.replace(**own) if own else found
    return Classifier(module, **{"name": name, **own})


def _check_call(function: Callable[..., Any], name: str, options: dict[str, Any]) -> None:
    """Raise an error where a function does not take these options; those from inside it are left alone."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # some that are not written in Python have none
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        raise OptionError(f"{name} cannot be called so: {error}; it is {name}{signature}.") from error


def _found(name: str) -> Any:
    module_name, _, path = name.partition(":")
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        raise UnknownModel(
            f"There is no module {module_name!r} to import for the model {name!r}; it must lie in the current folder, "
            "or be installed."
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UnknownModel(f"{module_name} has no {path!r}.")
        found = getattr(found, part)
    return found
