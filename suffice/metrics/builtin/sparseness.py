"""Sparseness of a map."""

from __future__ import annotations

from typing import Literal

import torch

from suffice.metrics.map_batch import MapBatch
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome


@metric(
    "sparseness",
    higher_is_better=None,  # a map can be too sparse as well as too flat
    bounds=(0, 1),
    needs=("maps",),
    reference="Chalasani et al., Concise Explanations of Neural Networks using Adversarial Training, ICML 2020",
)
def sparseness(given: MapBatch, *, values: Literal["absolute", "shifted"] = "absolute") -> Outcome:
    """Gini index of the map: how unequally it is spread, from 0 for a constant map to near 1 if all lies in one pixel.

    Of its ``"absolute"`` values, or of values ``"shifted"`` so that the lowest is 1e-7.
    """
    flat = given.maps.flatten(1).double()
    flat = flat.abs() if values == "absolute" else flat - flat.amin(dim=1, keepdim=True) + 1e-7
    ordered = flat.sort(dim=1).values
    count = ordered.shape[1]
    rank = torch.arange(1, count + 1, dtype=torch.float64, device=flat.device)
    total = ordered.sum(dim=1)
    gini = ordered @ (2 * rank - count - 1) / (count * torch.where(total > 0, total, 1))
    return Outcome(gini)
