"""ViT-Shapley: Shapley values of cells, given by a network that has learned them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from suffice.attribution.learned.images import short_id
from suffice.attribution.learned.ready import explainer_file, file_record, lacks_explainer
from suffice.attribution.learned.shapley import LearnedShapley
from suffice.attribution.learned.shapley_files import KIND, load_shapley
from suffice.attribution.method import method
from suffice.errors import CheckpointError, SufficeWarning
from suffice.perturb.batch import Batch
from suffice.vision import Classifier
from suffice.vision.identity import weights_hash


def _lacks_explainer(net: Classifier, options: Mapping[str, Any]) -> str | None:
    return lacks_explainer(net, options.get("explainer"), kind=KIND)


def _records(net: Classifier, options: Mapping[str, Any]) -> dict[str, Any]:
    """The file of the explainer; one that was given as an object says itself what its weights are."""
    given = options["explainer"]
    return {} if isinstance(given, LearnedShapley) else {"learned": file_record(explainer_file(net, given, kind=KIND))}


@method(
    "vit-shapley",
    aliases=("learned-shapley",),
    reference="Covert, Kim, Lee, Learning to Estimate Shapley Values with Vision Transformers, ICLR 2023",
    lacks=_lacks_explainer,
    questions=0,
    as_it_is=True,
    records=_records,
)
def vit_shapley(batch: Batch, *, explainer: str | Path | LearnedShapley | None = None) -> Tensor:
    """Shapley values of cells as a network has learned them: one forward of it and two of a surrogate.

    Args:
        batch: The images.
        explainer: File that ``suffice train shapley`` wrote, a folder with one for this model, or what
            :func:`suffice.attribution.learned.train_shapley` returned. Where a folder has several for it, the one that
            is called as the command calls it is taken.

    Returns:
        [B, h, w], at the resolution of the explainer's last layer. They add up to the surrogate's score of the image
        less that of the baseline.
    """
    learned = _find(batch.net, explainer)
    seen = set(learned.ids.tolist())
    if count := sum(short_id(i) in seen for i in batch.ids):
        warnings.warn(
            f"{count} of {len(batch)} images are among those that the explainer was trained on.",
            SufficeWarning,
            stacklevel=5,
        )
    values = learned.values(batch.pixels)
    return values[torch.arange(len(batch), device=values.device), batch.targets]


def _find(net: Classifier, explainer: str | Path | LearnedShapley | None) -> LearnedShapley:
    if not isinstance(explainer, LearnedShapley):
        path = explainer_file(net, explainer, kind=KIND)
        key, kept = (str(path.resolve()), path.stat().st_mtime_ns if path.is_file() else 0), _kept(net)
        if key not in kept:
            kept.clear()
            kept[key] = load_shapley(path, net)
        explainer = kept[key]
    if explainer.weights != weights_hash(net.module):
        raise CheckpointError(
            f"The explainer was trained for {explainer.explained} with other weights than {net.name} has."
        )
    if explainer.surrogate.device != net.device:
        explainer.surrogate.to(net.device)
        explainer.explainer.to(net.device)
        explainer.__dict__.pop("runner", None)  # it was made for the other device
    return explainer


def _kept(net: Classifier) -> dict[Any, LearnedShapley]:
    """Read once for all batches of a model."""
    found: dict[Any, LearnedShapley] = net.__dict__.setdefault("_shapley", {})
    return found
