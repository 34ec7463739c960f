"""A classifier of whatever people have: a classifier, or a module that knows its own preprocessing."""

from __future__ import annotations

from typing import Union

from torch import nn

from suffice.errors import OptionError
from suffice.vision.classifier import Classifier

Model = Union[Classifier, nn.Module]
"""What functions take: a classifier, or a module whose preprocessing is known; see :func:`as_classifier`."""


def as_classifier(model: Model) -> Classifier:
    """A classifier as it is; a module of timm with the preprocessing that it brings along.

    Raises:
        OptionError: The preprocessing of a module is not known; the message says how to give it.

    Example:
        >>> import timm
        >>> as_classifier(timm.create_model("resnet10t"))
        Classifier('timm/resnet10t', family='newer-cnn', size=176×176, device='cpu')
    """
    if isinstance(model, Classifier):
        return model
    if not isinstance(model, nn.Module):
        raise OptionError(
            f"Expected a classifier or a module, not {type(model).__name__}; write suffice.load(…) or "
            "suffice.Classifier(module, …)."
        )
    try:
        return Classifier(model)
    except OptionError as error:
        where = getattr(getattr(model, "config", None), "_name_or_path", None)
        instead = f'suffice.load("hf/{where}")' if where else "suffice.Classifier(module, size=…, mean=…, std=…)"
        raise OptionError(f"{error} For that, make a classifier of it first: net = {instead}.") from error
