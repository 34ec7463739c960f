"""Where a result comes from: the model, its weights and preprocessing, every setting, and what computed it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import torch

from suffice import __version__
from suffice.vision.classifier import Classifier, Targets
from suffice.vision.geometry import Geometry
from suffice.vision.identity import weights_hash

if TYPE_CHECKING:
    import pyarrow

KEY = "suffice"
"""Under this name files of tables and maps carry, as JSON, what they are about."""


def provenance(
    net: Classifier,
    settings: Mapping[str, Any],
    targets: Targets = None,
    *,
    precision: str = "fp32",
) -> dict[str, Any]:
    """All that has to be known to find the same again, as plain values for JSON.

    Args:
        net: The classifier.
        settings: Every choice of the work.
        targets: The classes asked about.
        precision: Of the model.

    Returns:
        ``model``, ``family``, ``weights`` (hash of the state dict), ``checkpoint`` (name of the file), ``score``,
        ``preprocessing``, ``settings``, ``target``, ``precision``, ``versions``, ``device``, ``date``.

    Example:
        >>> from suffice.testing import AnyOf
        >>> about = provenance(AnyOf([(5,)], grid=4).classifier(32), {"threshold": 0.9})
        >>> about["preprocessing"]["size"], about["precision"], about["settings"], about["target"]
        ([32, 32], 'fp32', {'threshold': 0.9}, 'predicted')
    """
    return {
        "model": net.name,
        "family": net.family,
        "weights": weights_hash(net.module),
        "checkpoint": net.checkpoint,
        "score": net.score,
        "preprocessing": _preprocessing(net),
        "settings": dict(settings),
        "target": _asked(targets),
        "precision": precision,
        "versions": {KEY: __version__, "torch": torch.__version__},
        "device": _device(net.device),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def as_json(about: Mapping[str, Any]) -> str:
    """What a file is about, as JSON; what JSON does not know as Python writes it.

    Example:
        >>> as_json({"baseline": torch.float32, "seed": 0})
        '{"baseline": "torch.float32", "seed": 0}'
    """
    return json.dumps(about, ensure_ascii=False, default=repr)


def with_about(table: pyarrow.Table, about: Mapping[str, Any], **more: str) -> pyarrow.Table:
    """A table whose schema says what it is about, under ``suffice``; ``more`` stands beside it."""
    return table.replace_schema_metadata({KEY: as_json(about), **more})


def _preprocessing(net: Classifier) -> dict[str, Any]:
    geometry = net.geometry
    known = vars(geometry) if isinstance(geometry, Geometry) else {"size": geometry.size, "rule": "custom"}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in known.items()}
    return {**plain, "mean": list(net.mean), "std": list(net.std)}


def _asked(targets: Targets) -> str:
    if targets is None:
        return "predicted"
    return str(targets) if isinstance(targets, (int, str)) else "one for each image"


def _device(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
