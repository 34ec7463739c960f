"""How much each pixel contributes to the difference between an image and a baseline, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from suffice.attribution.lrp.float64 import converted
from suffice.attribution.method import method
from suffice.attribution.methods.gradient import Reduction, over_channels
from suffice.attribution.rescale import contributions
from suffice.errors import AnatomyError, OptionError
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output
from suffice.perturb.runner import Runner
from suffice.vision import Classifier

# Why the methods do not fit a module, None where they do; found out by trying.
_REASONS: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()


def why_without_rules(net: Classifier) -> str | None:
    """Why the rescale rule does not fit a model; None where it does."""
    if net.module not in _REASONS:
        _REASONS[net.module] = _tried(net)
    return _REASONS[net.module]


@method(
    "deep-lift",
    aliases=("deeplift",),
    reference="Shrikumar, Greenside, Kundaje, Learning Important Features Through Propagating Activation Differences, "
    "ICML 2017",
    needs=("gradients", "relevance"),
    incompatible=why_without_rules,
    cost=2,
    questions=2,
)
def deep_lift(
    batch: Batch, *, baseline: Baseline = "black", reduction: Reduction = "sum", output: Output = "logit"
) -> Tensor:
    """Contributions of pixels to the difference from a baseline, by the rescale rule.

    The numbers of one image add up to the model's output on it minus that on the baseline. Activations may be modules
    or functions, in place or used again. See :mod:`suffice.attribution.slopes` for the rules of products, softmax and
    layer normalization, which are not in the paper; a model with other nonlinear operations is refused. Two forwards
    and one backward.

    Args:
        batch: The images.
        baseline: What they are compared with; see :func:`suffice.perturb.make_baseline`.
        reduction: How the three channels become one.
        output: Explain the ``"logit"`` or the ``"score"``.

    Returns:
        [B, H, W].
    """
    batch = _single(batch)
    reference = batch.net.normalize(batch.baseline(baseline))
    return over_channels(contributions(batch, reference, output)[0], reduction)


@method(
    "deep-shap",
    aliases=("deepshap", "deep-lift-shap"),
    reference="Lundberg, Lee, A Unified Approach to Interpreting Model Predictions, NeurIPS 2017",
    needs=("gradients", "relevance"),
    incompatible=why_without_rules,
    cost=2,
    questions=lambda net, options: 2 * len(_several(options["baselines"])),
)
def deep_shap(
    batch: Batch,
    *,
    baselines: Union[str, Tensor, Sequence[Baseline]] = "black+gray+blur+noise",
    reduction: Reduction = "sum",
    output: Output = "logit",
) -> Tensor:
    """DeepLIFT, averaged over several baselines.

    The numbers of one image add up to the model's output on it minus the mean of those on the baselines. For each
    baseline two forwards and one backward.

    Args:
        batch: The images.
        baselines: Names of baselines, separated by ``+``; a list of whatever a baseline can be; or pixels
            [K, 3, H, W] in [0, 1], such as other images of the data set, all of which serve for every image.
        reduction: How the three channels become one.
        output: Explain the ``"logit"`` or the ``"score"``.

    Returns:
        [B, H, W].
    """
    chosen, batch = _several(baselines), _single(batch)
    total = torch.zeros_like(batch.inputs)
    for baseline in chosen:
        total += contributions(batch, batch.net.normalize(batch.baseline(baseline)), output)[0]
    return over_channels(total / len(chosen), reduction)


def _single(batch: Batch) -> Batch:
    """The same images for a model in single precision at least: slopes of secants can exceed what fp16 holds."""
    wanted = torch.promote_types(batch.net.dtype, torch.float32)
    return batch if batch.net.dtype == wanted else converted(batch, wanted)


def _several(baselines: Union[str, Tensor, Sequence[Baseline]]) -> list[Baseline]:
    found: list[Baseline] = [*(baselines.split("+") if isinstance(baselines, str) else baselines)]
    if not found:
        raise OptionError("baselines= is empty; give at least one.")
    return found


def _tried(net: Classifier) -> str | None:
    noise = torch.rand(1, 3, *net.size, generator=torch.Generator().manual_seed(0)).to(net.device)
    runner = Runner(net).variant("relevance")
    batch = _single(Batch(net, noise, torch.zeros(1, dtype=torch.long, device=net.device), ["noise"], 0, runner))
    try:
        found, difference = contributions(batch, batch.net.normalize(torch.zeros_like(noise)))
    except (AnatomyError, OptionError) as error:
        return str(error)
    # Something that no rule saw, such as a mask made of the image, shows in the sum.
    scale, missing = found.abs().sum(), (found.sum() - difference.sum()).abs()
    adds_up = missing <= 0.02 * scale + 1e-4
    return None if adds_up else "contributions do not add up: it computes something that depends on the image unseen"
