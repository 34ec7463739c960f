"""Explainers that come with the package, found by the name of the model and checked by its weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import suffice.zoo
from suffice.attribution.learned.files import read_explainer_facts
from suffice.vision import Classifier
from suffice.vision.identity import weights_hash

READY = Path(suffice.zoo.__file__).parent / "weights" / "explainers"


def ready_name(model: str) -> str:
    """Name of the file of a model's explainer.

    Example:
        >>> ready_name("zoo/deit")
        'zoo-deit.safetensors'
    """
    return f"{model.replace('/', '-')}.safetensors"


def ready_explainer(net: Classifier, *, any_weights: bool = False) -> Path | None:
    """The file of the explainer that comes with the package for a model with these weights; None if there is none.

    Args:
        net: The classifier.
        any_weights: Look at its name alone.

    Example:
        >>> import suffice
        >>> ready_explainer(suffice.load("zoo/deit", device="cpu")).name
        'zoo-deit.safetensors'
        >>> ready_explainer(suffice.load("zoo/deit", pretrained=False, device="cpu")) is None
        True
    """
    for path, facts in _facts():
        same = net.name == facts["explained"]["name"] if any_weights else _same_weights(net, facts)
        if same:
            return path
    return None


def _same_weights(net: Classifier, facts: dict[str, Any]) -> bool:
    return bool(facts["explained"]["weights"] == weights_hash(net.module))


@cache
def _facts() -> list[tuple[Path, dict[str, Any]]]:
    return [(path, read_explainer_facts(path)) for path in sorted(READY.glob("*.safetensors"))]
