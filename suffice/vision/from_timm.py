"""Classifiers from timm: preprocessing from ``pretrained_cfg``, ImageNet label names from timm's own tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from suffice.errors import OptionError, UnknownModel
from suffice.vision.build import fetching, split_options
from suffice.vision.checkpoints import load_checkpoint
from suffice.vision.classifier import Classifier
from suffice.vision.families import default_family
from suffice.vision.geometry import Geometry, resize_for
from suffice.vision.models import ModelEntry, Source, unknown_model


def build(name: str, *, pretrained: bool, checkpoint: str | Path | None, **options: Any) -> Classifier:
    """Make a classifier from the name of a timm model; see :func:`suffice.load`."""
    import timm

    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        raise unknown_model(f"timm has no model {name!r}.", name, timm.list_models(), "timm")
    tagged = timm.list_pretrained(f"{architecture}.*")
    if tag and name not in tagged:
        raise unknown_model(f"timm has no weights {tag!r} of {architecture}.", name, tagged, "timm")
    fetch = pretrained and checkpoint is None
    if fetch and not timm.is_model_pretrained(architecture):
        raise UnknownModel(
            f"timm has no weights of {architecture}. Write pretrained=False for random ones, or checkpoint=."
        )
    own, others = split_options(options)
    with fetching(f"timm/{name}", from_hub=fetch):
        module = timm.create_model(name, pretrained=fetch, **others)
    if checkpoint is not None:
        load_checkpoint(module, checkpoint)

    # Which weights they are decides the family; a checkpoint of the user's may come from any recipe.
    recipe = f".{module.pretrained_cfg.get('tag', '')}" if fetch and not tag else ""
    family = default_family(name + recipe)
    return Classifier(module, **{"name": f"timm/{name}", "family": family, **describe_module(module), **own})


def describe_module(module: nn.Module) -> dict[str, Any]:
    """The preprocessing and labels of a timm module, as arguments of a classifier."""
    from timm.data import ImageNetInfo, infer_imagenet_subset, resolve_data_config

    config = resolve_data_config({}, model=module)
    size = tuple(config["input_size"][-2:])
    rules = {"center": "crop", "squash": "squash"}
    if config["crop_mode"] not in rules:
        raise OptionError(
            f"The weights want timm's crop mode {config['crop_mode']!r}; supported are 'center' and 'squash'. Give "
            "preprocess= with timm.data.create_transform(...) instead."
        )
    interpolation = config["interpolation"] if config["interpolation"] != "random" else "bicubic"
    geometry = Geometry(size, rules[config["crop_mode"]], resize_for(size, config["crop_pct"]), interpolation)  # type: ignore[arg-type]
    described: dict[str, Any] = {"geometry": geometry, "mean": config["mean"], "std": config["std"]}
    subset = infer_imagenet_subset(module)
    if subset:
        info = ImageNetInfo(subset)
        # The first name of a synset is the one people know: "tench, Tinca tinca".
        described["labels"] = [d.split(",")[0] for d in info.label_descriptions()]
        described["synsets"] = list(info.label_names())
    return described


def entries() -> Iterator[ModelEntry]:
    """All architectures that timm can make."""
    import timm

    weighted = {n.partition(".")[0] for n in timm.list_pretrained()}
    for name in timm.list_models():
        yield ModelEntry(name, default_family(name), name in weighted)


SOURCE = Source(build, entries, "PyTorch image models; a tag after a dot chooses the weights")
