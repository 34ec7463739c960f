"""Classifiers from torchvision: preprocessing and label names from the weights' own entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from suffice.errors import UnknownModel
from suffice.vision.build import fetching, split_options
from suffice.vision.checkpoints import load_checkpoint
from suffice.vision.classifier import Classifier
from suffice.vision.families import default_family
from suffice.vision.geometry import split_preprocessing
from suffice.vision.models import ModelEntry, Source, unknown_model


def build(name: str, *, pretrained: bool, checkpoint: str | Path | None, **options: Any) -> Classifier:
    """Make a classifier from the name of a torchvision model; see :func:`suffice.load`."""
    from torchvision import models

    architecture, _, tag = name.partition(".")
    known = models.list_models(module=models)
    if architecture not in known:
        raise unknown_model(f"torchvision has no model {name!r}.", architecture, known, "torchvision")
    choices = models.get_model_weights(architecture)
    if tag and tag.upper() not in choices.__members__:
        raise UnknownModel(
            f"torchvision has no weights {tag!r} of {architecture}; it has {', '.join(choices.__members__)}."
        )
    # DEFAULT is an alias of the newest weights; its preprocessing also serves random weights and checkpoints.
    weights = choices[tag.upper()] if tag else choices["DEFAULT"]
    fetch = pretrained and checkpoint is None
    own, others = split_options(options)
    with fetching(f"torchvision/{name}"):
        module = models.get_model(architecture, weights=weights if fetch else None, **others)
    if checkpoint is not None:
        load_checkpoint(module, checkpoint)

    geometry, mean, std = split_preprocessing(weights.transforms())
    recipe = f".{weights.name}" if fetch or tag else ""
    described: dict[str, Any] = {
        "name": f"torchvision/{name}",
        "family": default_family(architecture + recipe),
        "geometry": geometry,
        "mean": mean,
        "std": std,
    }
    categories = weights.meta.get("categories")
    if categories and others.get("num_classes", len(categories)) == len(categories):
        described["labels"] = categories
        if len(categories) == 1000:
            from timm.data import ImageNetInfo

            described["synsets"] = list(ImageNetInfo().label_names())
    return Classifier(module, **{**described, **own})


def entries() -> Iterator[ModelEntry]:
    """All classification models of torchvision."""
    from torchvision import models

    for name in models.list_models(module=models):
        default = models.get_model_weights(name).__members__.get("DEFAULT")
        yield ModelEntry(name, default_family(f"{name}.{default.name}" if default else name), default is not None)


SOURCE = Source(build, entries, "torchvision's classification models; a tag after a dot chooses the weights")
