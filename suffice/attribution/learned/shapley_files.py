"""Learned Shapley values in files: surrogate and explainer, with what they depend on."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from suffice import __version__
from suffice.attribution.learned.files import TRAINED_ON, Kind, read_explainer_facts
from suffice.attribution.learned.shapley import LearnedShapley, ShapleyExplainer, ShapleyRecipe
from suffice.errors import CheckpointError
from suffice.vision import Classifier, load
from suffice.vision.anatomy.copies import forget_computed, working_copy
from suffice.vision.identity import weights_hash
from suffice.vision.provenance import KEY, as_json
from suffice.zoo.training.weights import compact

KIND: Kind = "shapley"


def save_shapley(learned: LearnedShapley, path: str | Path) -> None:
    """Write a surrogate and its explainer as safetensors, with all facts in the metadata, whole or not at all."""
    from safetensors.torch import save_file

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    surrogate = {f"surrogate.{k}": v for k, v in learned.surrogate.module.state_dict().items()}
    explainer = {f"explainer.{k}": v for k, v in learned.explainer.state_dict().items()}
    tensors = {**compact({**surrogate, **explainer}), TRAINED_ON: learned.ids.clone()}
    save_file(tensors, unfinished, {KEY: as_json(shapley_facts(learned))})
    os.replace(unfinished, path)


def shapley_facts(learned: LearnedShapley) -> dict[str, Any]:
    """All that is known about learned Shapley values, for JSON."""
    return {
        "kind": KIND,
        "explained": {"name": learned.explained, "weights": learned.weights},
        "trunk": learned.explainer.trunk_name,
        "grid": list(learned.explainer.grid),
        "classes": learned.explainer.classes,
        "recipe": asdict(learned.recipe),
        "images": len(learned.ids),
        "losses": list(learned.losses),
        "validation": dict(learned.validation),
        "version": __version__,
    }


def load_shapley(path: str | Path, net: Classifier, *, trunk: Classifier | None = None) -> LearnedShapley:
    """What :func:`save_shapley` wrote, for the classifier that it was trained for.

    Raises:
        CheckpointError: The file cannot be used, or is of another model.
    """
    from safetensors.torch import load_file

    facts = read_explainer_facts(path, KIND)
    tensors: dict[str, Tensor] = load_file(path)
    about = facts["explained"]
    if about["weights"] != weights_hash(net.module):
        raise CheckpointError(f"{path} was trained for {about['name']} with other weights than {net.name} has.")
    surrogate = net.with_module(working_copy(net.module).requires_grad_(False))
    if trunk is None:
        trunk = net if facts["trunk"] == about["name"] else load(facts["trunk"], pretrained=False, device="cpu")
    recipe = ShapleyRecipe(**facts["recipe"])
    explainer = ShapleyExplainer(trunk, facts["classes"], grid=recipe.grid)
    for part, module in (("surrogate.", surrogate.module), ("explainer.", explainer)):
        own = {k.removeprefix(part): v for k, v in tensors.items() if k.startswith(part)}
        try:
            module.load_state_dict({k: v.to(module.state_dict()[k].dtype) for k, v in own.items()})
        except (KeyError, RuntimeError) as error:
            raise CheckpointError(f"The weights in {path} do not fit {trunk.name}.") from error
    forget_computed(surrogate.module)
    explainer.to(net.device).requires_grad_(False)
    return LearnedShapley(
        about["name"],
        about["weights"],
        surrogate,
        explainer,
        recipe,
        tuple(facts["losses"]),
        tensors[TRAINED_ON],
        facts.get("validation", {}),
    )
