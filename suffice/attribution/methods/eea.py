"""EEA: a second network looks at the image and says what of it keeps the decision of the first."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
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
    read_explainer_facts,
)
from suffice.attribution.learned.fine_tuning import Choose, features_of, fine_tune
from suffice.attribution.learned.images import short_id
from suffice.attribution.learned.objective import MaskLoss, Objective
from suffice.attribution.learned.ready import explainer_file, file_record, lacks_explainer
from suffice.attribution.method import method
from suffice.errors import SufficeWarning
from suffice.options import Amount, Range
from suffice.perturb.batch import Batch
from suffice.vision import Classifier

Mode = Literal["fine-tuned", "pretrained", "scratch"]
Steps = Annotated[int, Range(0)]
Rate = Annotated[float, Range(0, above=True)]
Given = str | Path | TrainedExplainer | LoadedExplainer | None


def _lacks_explainer(net: Classifier, options: Mapping[str, Any]) -> str | None:
    """Why the method cannot begin with these options."""
    if options.get("mode") == "scratch":
        return None
    return lacks_explainer(net, options.get("explainer"), any_weights=bool(options.get("any_weights")))


def _records(net: Classifier, options: Mapping[str, Any]) -> dict[str, Any]:
    """The file of the explainer, and the objective that fine-tuning has from it."""
    given, recipe = options["explainer"], ExplainerRecipe()
    file: dict[str, str] = {}
    if options["mode"] != "scratch":
        if isinstance(given, (TrainedExplainer, LoadedExplainer)):  # the option itself says what its weights are
            recipe = given.recipe
        else:
            path = explainer_file(net, given, any_weights=options["any_weights"])
            file, recipe = file_record(path), ExplainerRecipe(**read_explainer_facts(path)["recipe"])
    if options["mode"] == "pretrained":
        return {"learned": file} if file else {}
    objective = _objective(recipe, options["mask_weight"], options["mask_loss"])
    return {"learned": {**file, **asdict(objective)}}


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
    records=_records,
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
            :func:`train_explainer` returned; default: the one that comes with the package for this model. Where a
            folder has several for it, the one that is called as the command calls it is taken.
        mode: ``"fine-tuned"`` for each image; ``"pretrained"``, one forward of the explainer; or ``"scratch"``: the
            model's own trunk with a head that was not trained, drawn by the seed alone, fine-tuned: an ablation.
        steps: Steps of fine-tuning.
        lr: Their length.
        choose: Which of the masks on the way to take: the one with the least ``"loss"``, or the ``"last"``. ``"pos"``
            takes the one that the metric POS likes best, as published: what is measured by it, or by anything like it,
            has then been chosen by the answer. Loss and POS are both of the class explained. Published is POS of the
            label, also where the loss is of the predicted class: that is not to be had here, and is another choice for
            images that are classified wrongly. With ``targets=`` the labels, the loss is of the label, too: that is the
            published variant for the label.
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
    objective = _objective(recipe, mask_weight, mask_loss)
    return fine_tune(batch, found.explainer, objective, steps=steps, lr=lr, choose=choose)


def _objective(recipe: ExplainerRecipe, mask_weight: float | None, mask_loss: MaskLoss | None) -> Objective:
    """That of the explainer's training, but for what was chosen otherwise."""
    weight = recipe.mask_weight if mask_weight is None else mask_weight
    return Objective(weight, mask_loss or recipe.mask_loss, recipe.baseline)


def _find(net: Classifier, explainer: Given, any_weights: bool) -> LoadedExplainer:
    """The explainer that was given, or the ready one, on the model's device."""
    if isinstance(explainer, TrainedExplainer):
        explainer = LoadedExplainer.of(explainer)
    if isinstance(explainer, LoadedExplainer):
        explainer.check(net, any_weights=any_weights)
        if explainer.explainer.device != net.device:
            explainer.explainer.to(net.device)
        return explainer
    return _loaded(explainer_file(net, explainer, any_weights=any_weights), net, any_weights)


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
