"""Sensitivity of a map to small changes of the image."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.attribution import find_method
from suffice.attribution.call import GRADIENT_BATCH, explain, forwarder_for
from suffice.errors import OptionError
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.trial import Trial
from suffice.vision.noise import uniform_noise

Explain = Callable[[Any, Tensor, Tensor], Tensor]


@metric(
    "sensitivity-max",
    higher_is_better=False,
    range=(0, math.inf),
    needs=("maps", "model", "method"),
    reference="Yeh et al., On the (In)fidelity and Sensitivity of Explanations, NeurIPS 2019",
)
def sensitivity_max(
    trial: Trial,
    *,
    samples: int = 10,
    radius: float = 0.02,
    space: Literal["pixels", "normalized"] = "pixels",
    method: Explain | None = None,
) -> Outcome:
    """How much the map changes at most under small random changes of the image, relative to its own size.

    Args:
        trial: The images, and the attribution by the method in question.
        samples: How many changes to try.
        radius: Each pixel changes by at most this, and stays between black and white.
        space: Whether the radius is in ``"pixels"`` or in ``"normalized"`` units.
        method: ``method(net, pixels, targets)``, from images [B, 3, H, W] to maps [B, h, w], for maps that were not
            made by :func:`suffice.attribute`.

    Returns:
        Values [B].
    """
    if samples < 1 or radius < 0 or space not in ("pixels", "normalized"):
        raise OptionError(
            f"samples={samples}, radius={radius}, space={space!r}; expected 1 or more, 0 or more, and 'pixels' or "
            "'normalized'."
        )
    again = _explainer(trial, method)
    reach = torch.tensor(trial.net.std if space == "normalized" else (1.0,) * 3, device=trial.pixels.device)
    reach = reach.view(1, 3, 1, 1) * radius
    shape = tuple(trial.pixels.shape[1:])
    size = _norm(trial.maps)
    most = torch.zeros_like(size)
    for sample in range(samples):
        noise = uniform_noise(trial.seeds, torch.full_like(trial.seeds, sample), shape) * 2 - 1
        maps = again((trial.pixels + noise * reach).clamp(0, 1))
        if maps.shape != trial.maps.shape:
            raise OptionError(
                f"The method makes maps {list(maps.shape)}, but {list(trial.maps.shape)} were given; sensitivity "
                "compares maps as the method makes them."
            )
        most = torch.maximum(most, _norm(maps - trial.maps))
    # A map of zeros has no size to compare with.
    return Outcome(most / torch.where(size > 0, size, 1))


def _explainer(trial: Trial, given: Explain | None) -> Callable[[Tensor], Tensor]:
    """From changed images to their maps, everything else as it was."""
    if given is not None:
        return lambda pixels: given(trial.net, pixels, trial.targets).float()
    settings = {} if trial.attribution is None else trial.attribution.settings
    if trial.attribution is None or not {"method", "options", "seed"} <= settings.keys():
        raise OptionError(
            "sensitivity-max explains changed images again: give what suffice.attribute returned instead of bare maps, "
            "or method=, a function from (net, pixels, targets) to maps."
        )
    found = find_method(settings["method"])
    targets = trial.attribution.targets.to(trial.pixels.device)
    forwarder = trial.forwarder
    if "gradients" in found.needs:
        size = min(GRADIENT_BATCH.get(trial.net.device.type, 64), forwarder.batch_size)
        forwarder = forwarder_for(found, trial.net, size)

    def again(pixels: Tensor) -> Tensor:
        rows = range(0, len(pixels), forwarder.batch_size)
        parts = [slice(start, start + rows.step) for start in rows]
        # The identities are those of the images as they were, so that a method's own randomness is no part of this.
        return torch.cat(
            [
                explain(
                    found,
                    trial.net,
                    pixels[part],
                    targets[part],
                    trial.ids[part],
                    settings["seed"],
                    forwarder,
                    settings["options"],
                )
                for part in parts
            ]
        )

    return again


def _norm(maps: Tensor) -> Tensor:
    return maps.double().flatten(1).norm(dim=1)
