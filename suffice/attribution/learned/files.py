"""Explainers in files: weights in half precision with all that they depend on, checked against the model when read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from suffice import __version__
from suffice.attribution.learned.explainer import Explainer
from suffice.attribution.learned.recipe import ExplainerRecipe
from suffice.attribution.learned.training import TrainedExplainer
from suffice.errors import CheckpointError
from suffice.vision import Classifier, load
from suffice.vision.identity import weights_hash
from suffice.vision.provenance import KEY, as_json
from suffice.zoo.training.weights import compact

Kind = Literal["explainer", "shapley"]  # `suffice train KIND` writes it
KIND: Kind = "explainer"
TRAINED_ON = "trained_on"  # identities of the images, beside the weights


class LoadedExplainer:
    """An explainer from a file, or just trained, and what is known about it.

    Attributes:
        explainer: The network, frozen.
        recipe: How it was trained.
        facts: All that the file says; see :func:`explainer_facts`.
        ids: Identities of the images that it was trained on, as :func:`.images.short_id` has them, int64 [N].
    """

    def __init__(self, explainer: Explainer, recipe: ExplainerRecipe, facts: dict[str, Any], ids: Tensor) -> None:
        self.explainer, self.recipe, self.facts = explainer.requires_grad_(False), recipe, facts
        self.ids = ids
        self.seen = frozenset(ids.tolist())

    def __repr__(self) -> str:
        """As records of results have it, where it was an option."""
        name = self.facts["explained"].get("name")
        return f"LoadedExplainer(of {name!r}, weights={weights_hash(self.explainer)!r})"

    @classmethod
    def of(cls, trained: TrainedExplainer) -> LoadedExplainer:
        """One that was just trained."""
        return cls(trained.explainer, trained.recipe, explainer_facts(trained), trained.ids)

    def check(self, net: Classifier, *, any_weights: bool = False) -> None:
        """Raise an error unless it was trained for this model, or, with ``any_weights``, for one of this size."""
        about = self.facts["explained"]
        if not any_weights and about["weights"] != weights_hash(net.module):
            raise CheckpointError(
                f"The explainer was trained for {about['name']} with weights {about['weights'][:8]}, but {net.name} "
                f"has weights {weights_hash(net.module)[:8]}. Train one for it: `suffice train explainer "
                f"--model {net.name} --images …`; or any_weights=True to see what it makes of an unknown model."
            )
        if list(net.size) != about["size"]:
            raise CheckpointError(f"The explainer takes images of {about['size']} pixels, {net.name} {list(net.size)}.")


def explainer_facts(trained: TrainedExplainer) -> dict[str, Any]:
    """All that is known about a trained explainer, for JSON."""
    trunk = trained.explainer.trunk
    last = trained.history[-1]
    return {
        "kind": KIND,
        "explained": {"name": trained.explained, "weights": trained.weights, "size": list(trained.size)},
        "trunk": {"name": trained.explainer.trunk_name, "layer": trunk.layer, "grid": list(trunk.grid)},
        "recipe": json.loads(trained.recipe.to_json()),
        "images": trained.images,
        "steps": last.steps,
        "validation": {"loss": last.validation, "confidence": last.confidence, "kept": last.kept},
        "seconds": round(trained.seconds, 1),
        "version": __version__,
    }


def save_explainer(trained: TrainedExplainer, path: str | Path) -> None:
    """Write an explainer as safetensors, matrices in fp16, with the facts as JSON under ``suffice`` in its metadata.

    The file appears as a whole or not at all.
    """
    from safetensors.torch import save_file

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    tensors = {**compact(trained.explainer.needed_weights()), TRAINED_ON: trained.ids.clone()}
    save_file(tensors, unfinished, metadata={KEY: as_json(explainer_facts(trained))})
    os.replace(unfinished, path)


def read_explainer_facts(path: str | Path, kind: Kind = KIND) -> dict[str, Any]:
    """The facts that :func:`save_explainer` wrote, without reading the weights.

    Args:
        path: The file.
        kind: What it holds; ``"shapley"``: what :func:`.shapley_files.save_shapley` wrote.

    Raises:
        CheckpointError: The file is missing, or no explainer of this kind.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise CheckpointError(f"There is no explainer {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            facts: dict[str, Any] = json.loads((file.metadata() or {})[KEY])
            if facts["kind"] != kind:
                raise KeyError("kind")
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} is no explainer that `suffice train {kind}` wrote ({type(error).__name__}: {error})."
        ) from error
    return facts


def load_explainer(
    path: str | Path, net: Classifier, *, trunk: Classifier | None = None, any_weights: bool = False
) -> LoadedExplainer:
    """An explainer of a classifier, on its device.

    Args:
        path: What :func:`save_explainer` wrote.
        net: The classifier to explain.
        trunk: A classifier of the trunk's architecture; default: the explained one where it is of that, else loaded by
            its name.
        any_weights: Take it also where the classifier has other weights than it was trained for.

    Raises:
        CheckpointError: The file cannot be used, or is of another model.
    """
    from safetensors.torch import load_file

    facts = read_explainer_facts(path)
    recipe = ExplainerRecipe(**facts["recipe"])
    tensors = load_file(path)
    ids = tensors.pop(TRAINED_ON)
    if trunk is None:
        own = facts["trunk"]["name"] == facts["explained"]["name"]
        trunk = net if own else load(facts["trunk"]["name"], pretrained=False, device="cpu")
    explainer = Explainer(trunk)
    wanted = explainer.needed_weights()
    wrong = [k for k in wanted if k not in tensors or tensors[k].shape != wanted[k].shape]
    if wrong or set(tensors) - set(wanted):
        raise CheckpointError(
            f"The explainer {path} does not fit a trunk like {trunk.name}: {len(wrong)} of its {len(wanted)} weights "
            f"are missing or of another shape{f', such as {wrong[0]}' if wrong else ''}."
        )
    explainer.load_state_dict({k: v.to(wanted[k].dtype) for k, v in tensors.items()}, strict=False)
    loaded = LoadedExplainer(explainer.to(net.device), recipe, facts, ids)
    loaded.check(net, any_weights=any_weights)
    return loaded
