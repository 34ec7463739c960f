"""Baselines of protocols that need more than the room of perturbation knows: the model's normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from suffice.attribute.noise import uniform_noise
from suffice.errors import OptionError

if TYPE_CHECKING:
    from suffice.measure.trial import Trial


def tis_noise(trial: Trial) -> Tensor:
    """Uniform noise in [0, 1) in normalised units, as in the evaluation of TIS; each image its own."""
    draws = torch.zeros_like(trial.seeds)
    return _as_pixels(trial, uniform_noise(trial.seeds, draws, tuple(trial.pixels.shape[1:])))


def tis_mean(trial: Trial) -> Tensor:
    """One number in normalised units, the mean over pixels and channels, as in the evaluation of TIS."""
    normalised = (trial.pixels - _channels(trial, trial.net.mean)) / _channels(trial, trial.net.std)
    return _as_pixels(trial, normalised.mean(dim=(1, 2, 3), keepdim=True).expand_as(normalised))


CANVASES: dict[str, Callable[[Trial], Tensor]] = {"tis-noise": tis_noise, "tis-mean": tis_mean}


def canvas(trial: Trial, baseline: Any) -> Any:
    """A baseline as the probe takes it.

    Args:
        trial: The images.
        baseline: What :func:`suffice.perturb.make_baseline` takes, with one image for each of all images where it is a
            tensor [N, 3, H, W]; ``"tis-noise"``; or ``"tis-mean"``.

    Returns:
        The baseline of the images of this trial.
    """
    if isinstance(baseline, str) and baseline in CANVASES:
        return CANVASES[baseline](trial)
    if isinstance(baseline, Tensor) and baseline.dim() == 4 and len(baseline) > 1:
        if len(baseline) != trial.total:
            raise OptionError(f"{len(baseline)} baseline images were given for {trial.total} images; give one or each.")
        return baseline[trial.index.to(baseline.device)]
    return baseline


def _as_pixels(trial: Trial, normalised: Tensor) -> Tensor:
    """Normalised values as pixels; those that no pixel can have are cut off."""
    return (normalised * _channels(trial, trial.net.std) + _channels(trial, trial.net.mean)).clamp(0, 1)


def _channels(trial: Trial, values: Any) -> Tensor:
    return torch.tensor(values, device=trial.pixels.device).view(1, 3, 1, 1)
