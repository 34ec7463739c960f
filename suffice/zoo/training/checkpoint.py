"""The state of an unfinished run in a file, checked before it is used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from suffice.errors import CheckpointError
from suffice.zoo.training.data import TrainingData
from suffice.zoo.training.recipe import Recipe

if TYPE_CHECKING:
    from suffice.zoo.training.loop import Loop


def write_checkpoint(path: Path, name: str, loop: Loop) -> None:
    """Save a run. The file is replaced as a whole, so that a crash never leaves half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    about = {"name": name, "recipe": loop.recipe.to_json(), "data": loop.data.fingerprint()}
    torch.save({**about, **loop.state()}, unfinished)
    os.replace(unfinished, path)


def read_checkpoint(path: Path, name: str, recipe: Recipe, data: TrainingData) -> dict[str, Any]:
    """Read the state of a run, for :meth:`~suffice.zoo.training.loop.Loop.restore`.

    Args:
        path: What :func:`write_checkpoint` wrote.
        name: The network that is to go on.
        recipe: Its recipe.
        data: Its data, with labels permuted if the recipe says so.

    Returns:
        The state, on the device of the data.

    Raises:
        CheckpointError: There is none, it cannot be read, or it is of another run.
    """
    if not path.is_file():
        raise CheckpointError(f"There is nothing to resume: {path} does not exist. Start without resuming.")
    try:
        # The states of generators are not stored, so everything may live on the device of the run.
        state: dict[str, Any] = torch.load(path, map_location=data.device, weights_only=True)
        stored = Recipe.from_json(state["recipe"])
        parts = (state["name"], state["data"], state["module"], state["optimizer"], state["step"])
    except Exception as error:  # torch.load raises many kinds on broken files; all mean the same to the user
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{path} is not a readable checkpoint of a run: {first}") from error
    if parts[0] != name:
        raise CheckpointError(f"{path} is a run of {parts[0]}, not of {name}; resume with the same name.")
    if different := stored.differences(recipe):
        raise CheckpointError(
            f"{path} was made with another recipe (there and here): {'; '.join(different)}. Resume with the same "
            "options, or remove the file to start again."
        )
    if parts[1] != data.fingerprint():
        raise CheckpointError(f"{path} is a run on other images than {data.name}; resume with the same data.")
    return state
