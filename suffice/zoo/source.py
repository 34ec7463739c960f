"""The trained networks by name: ``zoo/…``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from suffice.errors import CheckpointError, UnknownModel
from suffice.vision.classifier import Classifier
from suffice.vision.models import ModelEntry, Source, assemble, split_options, unknown_model
from suffice.zoo.architectures import ARCHITECTURES, build
from suffice.zoo.scenes import CLASSES, SIZE
from suffice.zoo.training.data import TrainingData
from suffice.zoo.training.weights import read_facts

WEIGHTS = Path(__file__).parent / "weights"


def build_classifier(name: str, *, pretrained: bool, checkpoint: str | Path | None, **options: Any) -> Classifier:
    """Make a classifier from the name of a network of the zoo; see :func:`suffice.load`."""
    if name not in ARCHITECTURES:
        raise unknown_model(f"The zoo has no network {name!r}.", name, ARCHITECTURES, "zoo")
    own, others = split_options(options)
    if checkpoint is None and pretrained:
        if name not in table():
            raise UnknownModel(
                f"The zoo has no trained weights of {name} yet. Train it with: suffice train {name}, and give them as "
                "checkpoint=; or write pretrained=False for random ones."
            )
        checkpoint = WEIGHTS / f"{name}.safetensors"
    facts = {} if checkpoint is None else _facts(checkpoint)
    if facts:  # other classes or images than scenes, perhaps
        others = {"num_classes": len(facts["classes"]), "size": facts["size"][0], **others}
    described: dict[str, Any] = {
        "size": others.get("size", SIZE),
        "mean": facts.get("mean", TrainingData.mean),
        "std": facts.get("std", TrainingData.std),
        "labels": facts.get("classes", CLASSES if others.get("num_classes", len(CLASSES)) == len(CLASSES) else None),
        "name": f"zoo/{name}",
        "family": ARCHITECTURES[name].family,
    }
    return assemble(build(name, **others).eval(), checkpoint, described, own)


def _facts(checkpoint: str | Path) -> dict[str, Any]:
    """What ``suffice train`` wrote beside the weights; nothing for weights that come from elsewhere."""
    try:
        return read_facts(checkpoint)
    except CheckpointError:
        return {}


def entries() -> Iterator[ModelEntry]:
    """All networks of the zoo, with accuracy and parameters of those that are trained."""
    for name, architecture in ARCHITECTURES.items():
        known = table().get(name)
        facts = () if known is None else (("accuracy", known["accuracy"]), ("parameters", known["parameters"]))
        yield ModelEntry(name, architecture.family, known is not None, facts)


@cache
def table() -> dict[str, dict[str, Any]]:
    """What is known about the shipped weights, by name of the network."""
    file = WEIGHTS / "table.json"
    return {row["name"]: row for row in json.loads(file.read_text(encoding="utf-8"))} if file.exists() else {}


SOURCE = Source(build_classifier, entries, "small networks trained on scenes; they come with the package")
