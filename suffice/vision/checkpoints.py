"""Checkpoints: read safely, unwrapped, and checked against the model before they are used."""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from suffice.errors import CheckpointError

# Where training scripts put the weights inside a checkpoint.
WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "network", "weights", "params", "module")
# What wrappers such as DataParallel, torch.compile and Lightning put before every key.
PREFIXES = ("module.", "_orig_mod.", "model.", "net.", "network.")
# Counts batches during training; has no effect on the outputs of an evaluated model.
HARMLESS = ("num_batches_tracked",)

StateDict = dict[str, Tensor]


def read_state_dict(path: str | Path) -> StateDict:
    """Read the weights in a checkpoint, tensors by name, without running any code that it may contain.

    It is a ``.safetensors`` file, or one written by ``torch.save`` (read with ``weights_only=True``). Common wrappers
    around the weights (``state_dict``, ``model``, …) are taken off.
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise CheckpointError(f"The checkpoint {path} {what}; expected a .safetensors file or one from torch.save.")
    return _unwrap(_read(path), path)


def load_checkpoint(module: nn.Module, path: str | Path) -> None:
    """Load a checkpoint into a module, all of it or not at all.

    Args:
        module: Gets the weights. Untouched when they do not fit.
        path: See :func:`read_state_dict`. Prefixes such as ``module.`` are taken off where the module wants that.

    Raises:
        CheckpointError: The weights do not fit; the message names missing and unexpected keys and wrong shapes.
    """
    wanted = module.state_dict()
    given = _without_prefix(read_state_dict(path), wanted)
    missing = [k for k in wanted if k not in given and not k.endswith(HARMLESS)]
    unexpected = [k for k in given if k not in wanted and not k.endswith(HARMLESS)]
    other = [k for k in wanted if k in given and given[k].shape != wanted[k].shape]
    wrong = [f"{k}: checkpoint {list(given[k].shape)}, model {list(wanted[k].shape)}" for k in other]
    if missing or unexpected or wrong:
        lines = [
            f"The checkpoint {path} does not fit {type(module).__name__}.",
            f"Missing in the checkpoint: {_some(missing)}." if missing else "",
            f"Unexpected in the checkpoint: {_some(unexpected)}." if unexpected else "",
            f"Other shape: {_some(wrong)}. For another number of classes write num_classes=." if wrong else "",
        ]
        raise CheckpointError("\n  ".join(filter(None, lines)))
    module.load_state_dict({k: v for k, v in given.items() if k in wanted}, strict=False)


def _read(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise CheckpointError(f"The checkpoint {path} is not a readable safetensors file: {error}") from error
    try:
        # Training scripts (timm's among them) keep their arguments beside the weights; a Namespace is plain data.
        with torch.serialization.safe_globals([argparse.Namespace]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"The checkpoint {path} cannot be read as plain weights: {_first_line(error)}\n  Only weights are read, "
            "because unpickling anything else can run code. If you trust the file, re-save its weights with "
            "safetensors.torch.save_file(state_dict, 'weights.safetensors')."
        ) from error
    except Exception as error:  # torch.load raises many kinds on broken files; all mean the same to the user
        raise CheckpointError(f"The checkpoint {path} is not readable: {_first_line(error)}") from error


def _unwrap(content: Any, path: Path) -> StateDict:
    what, tensors = type(content).__name__, {}
    if isinstance(content, Mapping):
        for _ in range(3):  # wrappers may be nested
            content = next((content[w] for w in WRAPPERS if isinstance(content.get(w), Mapping)), content)
        what = f"keys {_some([str(k) for k in content])}"
        tensors = {str(k): v for k, v in content.items() if isinstance(v, Tensor)}
    if not tensors:
        raise CheckpointError(f"No weights found in the checkpoint {path}; it holds {what}. Expected tensors by name.")
    return tensors


def _without_prefix(state: StateDict, wanted: Iterable[str]) -> StateDict:
    """Take prefixes off for as long as that makes more keys fit."""
    wanted = set(wanted)

    def fitting(keys: Iterable[str]) -> int:
        return len(wanted.intersection(keys))

    while True:
        options = [
            {k.removeprefix(p): v for k, v in state.items()} for p in PREFIXES if all(k.startswith(p) for k in state)
        ]
        better = [o for o in options if fitting(o) > fitting(state) or (fitting(o) == 0 and len(options) == 1)]
        if not better:
            return state
        state = max(better, key=fitting)


def _some(items: list[str], most: int = 8) -> str:
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
