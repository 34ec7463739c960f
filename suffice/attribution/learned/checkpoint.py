"""The state of an unfinished training of an explainer in a file, checked before it is used."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

from suffice.errors import CheckpointError


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Save the state of a run, with what it is ``about``; the file is replaced as a whole, also in a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    torch.save(state, unfinished)
    os.replace(unfinished, path)


def read_checkpoint(path: Path, about: dict[str, str], device: torch.device) -> dict[str, Any]:
    """The state that :func:`write_checkpoint` saved.

    Raises:
        CheckpointError: There is none, it cannot be read, or it is about another run.
    """
    if not path.is_file():
        raise CheckpointError(f"There is nothing to resume: {path} does not exist. Start without resuming.")
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        stored = state["about"]
        recipe: dict[str, Any] = json.loads(stored["recipe"])
    except Exception as error:  # torch.load raises many kinds on broken files; all mean the same to the user
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{path} is not a readable checkpoint of an explainer: {first}") from error
    here = json.loads(about["recipe"])
    names = dict.fromkeys([*recipe, *here])
    if different := [f"{n}: {recipe.get(n)} and {here.get(n)}" for n in names if recipe.get(n) != here.get(n)]:
        raise CheckpointError(
            f"{path} was made with another recipe (there and here): {'; '.join(different)}. Resume with the same "
            "options, or remove the file to start again."
        )
    words = {"weights": "another model", "trunk": "another trunk", "images": "other images"}
    if other := [words[key] for key in words if stored.get(key) != about[key]]:
        raise CheckpointError(f"{path} is a run with {' and '.join(other)}; resume with the same, or remove the file.")
    return state
