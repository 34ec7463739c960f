"""Baselines of protocols that need more than the room of perturbation knows: the model's normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.vision.noise import uniform_noise

if TYPE_CHECKING:
    from suffice.metrics.trial import Trial


def tis_noise(trial: Trial) -> Tensor:
    """Uniform noise in [0, 1) in normalized units, as in the evaluation of TIS; each image its own."""
    draws = torch.zeros_like(trial.seeds)
    return _as_pixels(trial, uniform_noise(trial.seeds, draws, tuple(trial.pixels.shape[1:])))


def tis_mean(trial: Trial) -> Tensor:
    """One number in normalized units, the mean over pixels and channels, as in the evaluation of TIS."""
    normalized = (trial.pixels - _channels(trial, trial.net.mean)) / _channels(trial, trial.net.std)
    return _as_pixels(trial, normalized.mean(dim=(1, 2, 3), keepdim=True).expand_as(normalized))


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


def _as_pixels(trial: Trial, normalized: Tensor) -> Tensor:
    """Normalized values as pixels; those that no pixel can have are cut off."""
    return (normalized * _channels(trial, trial.net.std) + _channels(trial, trial.net.mean)).clamp(0, 1)


def _channels(trial: Trial, values: Any) -> Tensor:
    return torch.tensor(values, device=trial.pixels.device).view(1, 3, 1, 1)
