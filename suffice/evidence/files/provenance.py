"""Where evidence comes from: the model, its weights and preprocessing, every setting, and what computed it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from suffice import __version__
from suffice.evidence.settings import Settings
from suffice.perturb.runner import Runner
from suffice.vision.classifier import Classifier, Targets
from suffice.vision.geometry import Geometry
from suffice.vision.identity import weights_hash

# What may differ between two runs whose rows lie in one table.
_INCIDENTAL = ("family", "checkpoint", "device", "date")


def provenance(
    net: Classifier,
    runner: Runner,
    settings: Settings,
    targets: Targets = None,
    *,
    checkpoint: str | Path | None = None,
) -> dict[str, Any]:
    """All that has to be known to find the same evidence again, as plain values for JSON.

    Args:
        net: The classifier.
        runner: What ran it.
        settings: Every choice of the search.
        targets: The classes asked about.
        checkpoint: The file of its weights, where they came from one.

    Returns:
        ``model``, ``family``, ``weights`` (hash of the state dict), ``checkpoint`` (name of the file), ``score``,
        ``preprocessing``, ``settings``, ``target``, ``precision`` (of the search), ``confirmed`` (in which precision
        every reported set holds, ``"ieee"``: fp32 that never rounds; None where they were not confirmed), ``versions``,
        ``device``, ``date``.

    Example:
        >>> from suffice.testing import AnyOf
        >>> net = AnyOf([(5,)], grid=4).classifier(32)
        >>> about = provenance(net, Runner(net), Settings())
        >>> about["preprocessing"]["size"], about["precision"], about["settings"]["threshold"]
        ([32, 32], 'fp32', 0.9)
    """
    return {
        "model": net.name,
        "family": net.family,
        "weights": weights_hash(net.module),
        "checkpoint": None if checkpoint is None else Path(checkpoint).name,
        "score": net.score,
        "preprocessing": _preprocessing(net),
        "settings": settings.to_dict(),
        "target": _asked(targets),
        "precision": runner.precision,
        "confirmed": "ieee" if runner.exact or settings.confirm != "none" else None,
        "versions": {"suffice": __version__, "torch": torch.__version__},
        "device": _device(runner.device),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def differences(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two provenances in a way that would change evidence, each in words.

    Example:
        >>> differences({"settings": {"grid": 7, "seed": 0}, "date": "a"}, {"settings": {"grid": 5, "seed": 0}})
        ['grid is 5, was 7']
    """
    before, after = ({k: v for k, v in _flat(about).items() if k not in _INCIDENTAL} for about in (earlier, now))
    return [
        f"{name} is {after.get(name)}, was {before.get(name)}"
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def _flat(about: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name, those of settings, preprocessing and versions beside the others."""
    flat: dict[str, Any] = {}
    for name, value in about.items():
        if name == "versions":
            flat |= {f"the version of {package}": version for package, version in value.items()}
        elif isinstance(value, Mapping):
            flat |= value
        else:
            flat[name] = value
    return flat


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
