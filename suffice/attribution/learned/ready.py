"""Explainers in a folder, such as those that come with the package, found by the weights of the explained model."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import suffice.zoo
from suffice.attribution.learned.files import read_explainer_facts
from suffice.errors import CheckpointError
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


def ready_explainer(net: Classifier, *, any_weights: bool = False, folder: str | Path = READY) -> Path | None:
    """The file of the explainer of a model with these weights that a folder has; None if there is none.

    Args:
        net: The classifier.
        any_weights: Look at its name alone.
        folder: Where to look; default: among those that come with the package.

    Example:
        >>> import suffice
        >>> ready_explainer(suffice.load("zoo/deit", device="cpu")).name
        'zoo-deit.safetensors'
        >>> ready_explainer(suffice.load("zoo/deit", pretrained=False, device="cpu")) is None
        True
    """
    for path in sorted(Path(folder).glob("*.safetensors")):
        explained = _facts(path, path.stat().st_mtime_ns).get("explained", {})
        same = net.name == explained.get("name") if any_weights else _same_weights(net, explained)
        if same:
            return path
    return None


def _same_weights(net: Classifier, explained: dict[str, Any]) -> bool:
    return bool(explained.get("weights") == weights_hash(net.module))


@cache
def _facts(path: Path, changed: int) -> dict[str, Any]:
    """Facts about an explainer; none where the file is something else, such as weights of another kind."""
    try:
        return read_explainer_facts(path)
    except CheckpointError:
        return {}
