"""Trained weights in a file: half precision where it does no harm, and all facts beside them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from suffice.errors import CheckpointError
from suffice.vision.checkpoints import load_checkpoint
from suffice.zoo.training.distill import Teacher
from suffice.zoo.training.networks import build_network
from suffice.zoo.training.trainer import Trained

HALF_MAX = 60_000.0  # fp16 ends at 65,504


def weights_path(folder: str | Path, name: str, seed: int) -> Path:
    """Where the weights of a run are kept.

    Example:
        >>> weights_path("trained", "timm/resnet10t", 3).as_posix()
        'trained/timm-resnet10t-seed3.safetensors'
    """
    return Path(folder) / f"{name.replace('/', '-')}-seed{seed}.safetensors"


def checkpoint_path(folder: str | Path, name: str, seed: int) -> Path:
    """Where the state of an unfinished run is kept.

    Example:
        >>> checkpoint_path("trained", "resnet", 0).as_posix()
        'trained/resnet-seed0/last.pt'
    """
    return weights_path(folder, name, seed).with_suffix("") / "last.pt"


def facts_of(trained: Trained) -> dict[str, Any]:
    """All that is known about a trained network, for JSON."""
    same = ("name", "data", "validation_accuracy", "test_accuracy", "training_accuracy", "accuracy", "parameters")
    return {
        **{key: getattr(trained, key) for key in same},
        "seed": trained.recipe.seed,
        "seconds": round(trained.seconds, 1),
        "classes": list(trained.classes),
        "mean": list(trained.mean),
        "std": list(trained.std),
        "size": list(trained.size),
        "recipe": json.loads(trained.recipe.to_json()),
    }


def compact(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights for a file: matrices and kernels in fp16, the rest as it is.

    Vectors (biases, norms and their running statistics) are few, and variances may be too large or too small for
    fp16; a matrix with a value beyond its range stays in fp32 too.

    Raises:
        CheckpointError: A weight is not a finite number.
    """
    kept = {}
    for key, value in state.items():
        tensor = value.detach().cpu()
        if tensor.is_floating_point():
            if not bool(tensor.isfinite().all()):
                raise CheckpointError(f"The weights {key} are not all finite numbers; the training diverged.")
            if tensor.ndim >= 2 and float(tensor.abs().max()) < HALF_MAX:
                tensor = tensor.half()
        kept[key] = tensor.contiguous().clone()
    return kept


def save_trained(trained: Trained, path: str | Path) -> None:
    """Write the weights as safetensors, with the facts as JSON under ``suffice`` in its metadata.

    The file appears as a whole or not at all.
    """
    from safetensors.torch import save_file

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    save_file(compact(trained.module.state_dict()), unfinished, metadata={"suffice": json.dumps(facts_of(trained))})
    os.replace(unfinished, path)


def read_facts(path: str | Path) -> dict[str, Any]:
    """The facts that :func:`save_trained` wrote, without reading the weights.

    Raises:
        CheckpointError: The file is missing or has no facts.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise CheckpointError(f"The weights {path} do not exist.")
    try:
        with safe_open(path, framework="pt") as file:
            facts: dict[str, Any] = json.loads((file.metadata() or {})["suffice"])
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} is not a file of weights that `suffice train` wrote ({type(error).__name__}: {error})."
        ) from error
    return facts


def load_trained(
    path: str | Path, device: str | torch.device = "cpu", *, module: nn.Module | None = None
) -> tuple[nn.Module, dict[str, Any]]:
    """A trained network, in evaluation mode and fp32, and the facts about it.

    Args:
        path: What :func:`save_trained` wrote.
        device: Where to put it.
        module: Gets the weights; default: made by the name in the facts.

    Raises:
        CheckpointError: The file cannot be used, or does not fit.
    """
    facts = read_facts(path)
    if module is None:
        size = (int(facts["size"][0]), int(facts["size"][1]))
        module = build_network(facts["name"], classes=len(facts["classes"]), size=size)
    load_checkpoint(module, path)
    return module.to(device).eval(), facts


def load_teacher(path: str | Path, device: str | torch.device = "cpu", *, module: nn.Module | None = None) -> Teacher:
    """A teacher from a file of weights; see :func:`load_trained`."""
    net, facts = load_trained(path, device, module=module)
    mean, std = (tuple(float(v) for v in facts[key]) for key in ("mean", "std"))
    return Teacher(net, tuple(facts["classes"]), mean, std, facts["name"], device)
