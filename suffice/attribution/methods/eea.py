"""EEA: a second network looks at the image and says what of it keeps the decision of the first."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from suffice.attribution.learned import (
    Explainer,
    ExplainerRecipe,
    LoadedExplainer,
    TrainedExplainer,
    load_explainer,
    ready_explainer,
)
from suffice.attribution.learned.fine_tuning import Choose, features_of, fine_tune
from suffice.attribution.learned.images import short_id
from suffice.attribution.learned.objective import MaskLoss, Objective
from suffice.attribution.method import method
from suffice.errors import OptionError, SufficeWarning
from suffice.options import Amount, Range
from suffice.perturb.batch import Batch
from suffice.vision import Classifier

Mode = Literal["fine-tuned", "pretrained", "scratch"]
Steps = Annotated[int, Range(0)]
Rate = Annotated[float, Range(0, above=True)]
Given = str | Path | TrainedExplainer | LoadedExplainer | None


def _lacks_explainer(net: Classifier, options: Mapping[str, Any]) -> str | None:
    """Why the method cannot begin with these options."""
    given, train = options.get("explainer"), f"`suffice train explainer --model {net.name} --images …`"
    if options.get("mode") == "scratch" or isinstance(given, (TrainedExplainer, LoadedExplainer)):
        return None
    if given is not None and not Path(given).exists():
        return f"there is no explainer {given}; {train} trains one"
    if _file(net, given, bool(options.get("any_weights"))) is not None:
        return None
    if given is not None:
        return f"the folder {given} has no explainer of it; {train} trains one"
    return f"no explainer of it is ready; train one with {train} and give its file as explainer=PATH"


def _file(net: Classifier, given: str | Path | None, any_weights: bool) -> Path | None:
    """The file that was given, the one for the model in the folder that was given, or the ready one."""
    if given is None:
        return ready_explainer(net, any_weights=any_weights)
    path = Path(given)
    return ready_explainer(net, any_weights=any_weights, folder=path) if path.is_dir() else path


def _questions(net: Classifier, options: Mapping[str, Any]) -> float:
    """The explained model's own forwards; the explainer's are not counted."""
    if options["mode"] == "pretrained":
        return 0
    steps = int(options["steps"])
    if options["choose"] == "pos":
        return steps + 10 * (steps + 1) + 1  # ten images for the curve of each mask, and the whole one
    return steps if options["choose"] == "last" else steps + 1


@method(
    "eea",
    aliases=("ltx",),
    reference="Barkan et al., Explainer-Explained Architecture for Vision Models (Learning To eXplain, ICDM 2023)",
    needs=("gradients",),
    lacks=_lacks_explainer,
    questions=_questions,
)
def eea(
    batch: Batch,
    *,
    explainer: Given = None,
    mode: Mode = "fine-tuned",
    steps: Steps = 25,
    lr: Rate = 0.002,
    choose: Choose = "loss",
    mask_weight: Amount | None = None,
    mask_loss: MaskLoss | None = None,
    any_weights: bool = False,
) -> Tensor:
    """What an explainer network keeps of the image, trained beforehand and for each image again.

    The explainer was trained on other images to keep little of them and the decision of the model. Its first mask knows
    no class; fine-tuning is for the class asked about. Images that the explainer was trained on are warned about.

    Args:
        batch: The images.
        explainer: File that ``suffice train explainer`` wrote, a folder with one for this model, or what
            :func:`train_explainer` returned; default: the one that comes with the package for this model.
        mode: ``"fine-tuned"`` for each image; ``"pretrained"``, one forward of the explainer; or ``"scratch"``: the
            model's own trunk with a head that was not trained, drawn by the seed alone, fine-tuned: an ablation.
        steps: Steps of fine-tuning.
        lr: Their length.
        choose: Which of the masks on the way to take: the one with the least ``"loss"``, or the ``"last"``. ``"pos"``
            takes the one that the metric POS likes best, as published: what is measured by it, or by anything like it,
            has then been chosen by the answer. It asks whether the class explained wins; published is the label, also
            where the predicted class is explained, so for that give ``targets=`` the labels.
        mask_weight: λ of fine-tuning; default: that of the explainer's training.
        mask_loss: Its penalty, likewise.
        any_weights: Take an explainer also for a model with other weights than it was trained for, as for sanity
            checks; a ready one is then found by the model's name.

    Returns:
        [B, h, w] in [0, 1], at the resolution of the explainer's last layer.
    """
    found = _untrained(batch) if mode == "scratch" else _find(batch.net, explainer, any_weights)
    recipe = found.recipe
    _warn_of_seen(found, batch)
    if mode == "pretrained":
        return found.explainer.masks(features_of(batch, found.explainer))
    weight = recipe.mask_weight if mask_weight is None else mask_weight
    objective = Objective(weight, mask_loss or recipe.mask_loss, recipe.baseline)
    return fine_tune(batch, found.explainer, objective, steps=steps, lr=lr, choose=choose)


def _find(net: Classifier, explainer: Given, any_weights: bool) -> LoadedExplainer:
    """The explainer that was given, or the ready one, on the model's device."""
    if isinstance(explainer, TrainedExplainer):
        explainer = LoadedExplainer.of(explainer)
    if isinstance(explainer, LoadedExplainer):
        explainer.check(net, any_weights=any_weights)
        if explainer.explainer.device != net.device:
            explainer.explainer.to(net.device)
        return explainer
    path = _file(net, explainer, any_weights)
    if path is None:
        raise OptionError(f"eea does not fit {net.name}: {_lacks_explainer(net, {'explainer': explainer})}.")
    return _loaded(path, net, any_weights)


def _loaded(path: Path, net: Classifier, any_weights: bool) -> LoadedExplainer:
    """Read once for all batches of a model: kept beside its anatomy, in the classifier."""
    stamp = path.stat().st_mtime_ns if path.is_file() else 0
    key = (str(path.resolve()), stamp, any_weights, net.device)
    kept = net.__dict__.setdefault("_explainers", {})
    if key not in kept:
        kept.clear()
        kept[key] = load_explainer(path, net, any_weights=any_weights)
    kept[key].check(net, any_weights=any_weights)
    return kept[key]


def _untrained(batch: Batch) -> LoadedExplainer:
    facts = {"explained": {"size": list(batch.net.size)}}
    explainer = Explainer(batch.net, seed=batch.seed)
    return LoadedExplainer(explainer, ExplainerRecipe(), facts, torch.zeros(0, dtype=torch.int64))


def _warn_of_seen(found: LoadedExplainer, batch: Batch) -> None:
    if seen := sum(short_id(i) in found.seen for i in batch.ids):
        warnings.warn(
            f"{seen} of {len(batch)} images are among those that the explainer was trained on; results on them say "
            "nothing about others.",
            SufficeWarning,
            stacklevel=6,
        )
