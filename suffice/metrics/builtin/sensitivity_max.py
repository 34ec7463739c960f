"""Sensitivity of a map to small changes of the image."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.attribution import explain
from suffice.errors import OptionError
from suffice.metrics.map_batch import MapBatch
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.options import Amount, Count
from suffice.vision.noise import uniform_noise
from suffice.vision.units import imagenet_std

Explain = Callable[[Any, Tensor, Tensor], Tensor]


@metric(
    "sensitivity-max",
    higher_is_better=False,
    bounds=(0, math.inf),
    needs=("maps", "model", "method"),
    reference="Yeh et al., On the (In)fidelity and Sensitivity of Explanations, NeurIPS 2019",
)
def sensitivity_max(
    given: MapBatch,
    *,
    samples: Count = 10,
    radius: Amount = 0.02,
    space: Literal["pixels", "imagenet"] = "pixels",
    method: Explain | None = None,
) -> Outcome:
    """Largest change of the map under small random changes of the image, relative to its size.

    Args:
        given: The images, and the attribution by the method in question.
        samples: How many changes to try.
        radius: Each pixel changes by at most this, and stays between black and white.
        space: Whether the radius is a share of the range of ``"pixels"`` or in ``"imagenet"``'s units, for every model;
            see :mod:`suffice.vision.units`.
        method: ``method(net, pixels, targets)``, from images [B, 3, H, W] to maps [B, h, w], for maps that were not
            made by :func:`suffice.attribute`; called with as many images as fit.
    """
    again, batch = _explainer(given, method), given.batch
    channels = batch.pixels.shape[1]
    unit = imagenet_std(channels) if space == "imagenet" else (1.0,) * channels
    reach = torch.tensor(unit, device=given.device)[:, None, None] * radius
    size = _norm(given.maps)
    most = torch.zeros_like(size)
    for sample in range(samples):
        noise = uniform_noise(batch.seeds, torch.full_like(batch.seeds, sample), tuple(batch.pixels.shape[1:])) * 2 - 1
        maps = again((batch.pixels + noise * reach).clamp(0, 1))
        if maps.shape != given.maps.shape:
            raise OptionError(
                f"The method makes maps {list(maps.shape)}, but {list(given.maps.shape)} were given; sensitivity "
                "compares maps as the method makes them."
            )
        most = torch.maximum(most, _norm(maps - given.maps))
    # A map of zeros has no size to compare with.
    return Outcome(most / torch.where(size > 0, size, 1))


def _explainer(given: MapBatch, function: Explain | None) -> Callable[[Tensor], Tensor]:
    """From changed images to their maps, everything else as it was."""
    if function is not None:
        batch, runner = given.batch, given.batch.runner.variant("gradients")

        def by_function(pixels: Tensor) -> Tensor:
            parts = runner.run(len(batch), lambda rows: function(batch.net, pixels[rows], batch.targets[rows]))
            return torch.cat(list(parts)).float()

        return by_function
    settings = {} if given.attribution is None else given.attribution.settings
    if given.attribution is None or not {"method", "options", "seed"} <= settings.keys():
        raise OptionError(
            "sensitivity-max explains changed images again: give what suffice.attribute returned instead of bare maps, "
            "or method=, a function from (net, pixels, targets) to maps."
        )
    targets = given.attribution.targets.to(given.device)
    # The identities are those of the images as they were, so that a method's own randomness is no part of this.
    same = replace(given.batch, targets=targets, seed=settings["seed"])

    def again(pixels: Tensor) -> Tensor:
        return explain(replace(same, pixels=pixels), settings["method"], **settings["options"])

    return again


def _norm(maps: Tensor) -> Tensor:
    return maps.double().flatten(1).norm(dim=1)
