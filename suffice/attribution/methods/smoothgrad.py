"""Gradients averaged over noisy copies of the image."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.methods.gradient import Reduction, over_channels
from suffice.options import Amount, Count
from suffice.perturb.batch import Batch, Output
from suffice.perturb.half import at_least_float32
from suffice.vision.noise import normal_noise
from suffice.vision.units import imagenet_normalized, imagenet_unit


@method(
    "smoothgrad",
    aliases=("smooth-grad",),
    reference="Smilkov et al., SmoothGrad: removing noise by adding noise, ICML workshop 2017",
    needs=("gradients",),
    questions=lambda net, options: options["samples"],
)
def smoothgrad(
    batch: Batch,
    *,
    samples: Count = 50,
    noise: Amount = 0.15,
    variant: Literal["mean", "squared", "variance"] = "mean",
    times: Literal["nothing", "input"] = "nothing",
    reduction: Reduction = "max-abs",
    output: Output = "logit",
) -> Tensor:
    """Gradient averaged over noisy copies of the image.

    Args:
        batch: The images.
        samples: Noisy copies.
        noise: Standard deviation of the noise, relative to the range (largest less smallest value) of the image in
            ImageNet's units, for every model; see :mod:`suffice.vision.units`.
        variant: ``"mean"`` of the gradients, mean of their ``"squared"`` values, or their ``"variance"``.
        times: Multiply by the ``"input"`` as the model gets it; units are those of :func:`gradient`.
        reduction: How the three channels become one.
        output: Differentiate the ``"logit"`` or the ``"score"``.

    Returns:
        [B, H, W].
    """
    inputs = batch.inputs
    image = imagenet_normalized(batch.pixels)
    spread = noise * (image.amax(dim=(1, 2, 3)) - image.amin(dim=(1, 2, 3)))[:, None, None, None]
    spread = (spread * torch.tensor(imagenet_unit(batch.net.std), device=image.device)[:, None, None]).to(inputs.dtype)

    def noisy(versions: range) -> Tensor:
        draws = torch.tensor(list(versions), device=inputs.device).repeat_interleave(len(batch))
        chance = normal_noise(batch.seeds.repeat(len(versions)), draws, tuple(inputs.shape[1:]))
        around = inputs.repeat(len(versions), 1, 1, 1) + chance.to(inputs.dtype) * spread.repeat(len(versions), 1, 1, 1)
        found = at_least_float32(batch.gradients(around, output))  # squares of small numbers are none in fp16
        # Both moments in one pass, as the gradients are not kept.
        return torch.stack([found, found.square()], dim=1)

    first, second = batch.mean_over(samples, noisy).unbind(dim=1)
    found = {"mean": first, "squared": second, "variance": (second - first.square()).clamp(min=0)}[variant]
    return over_channels(found * inputs if times == "input" else found, reduction)
