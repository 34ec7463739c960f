"""Gradients gathered on the way from a baseline to the image."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.methods.gradient import Reduction, over_channels
from suffice.options import Count
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output
from suffice.perturb.half import at_least_float32


@method(
    "integrated-gradients",
    aliases=("ig",),
    reference="Sundararajan, Taly, Yan, Axiomatic Attribution for Deep Networks, ICML 2017",
    needs=("gradients",),
    questions=lambda net, options: options["steps"] * str(options["baseline"]).count("+") + options["steps"],
)
def integrated_gradients(
    batch: Batch,
    *,
    baseline: Baseline = "black",
    steps: Count = 50,
    rule: Literal["gauss-legendre", "middle", "right"] = "gauss-legendre",
    times: Literal["difference", "nothing"] = "difference",
    reduction: Reduction = "sum",
    output: Output = "logit",
) -> Tensor:
    """Gradients integrated on the straight line from a baseline to the image.

    The numbers of one image add up to the model's output on it minus that on the baseline, the better the more steps.

    Args:
        batch: The images.
        baseline: Where the way begins; see :func:`suffice.perturb.make_baseline`. Several, separated by ``+``, are
            averaged: ``"black+noise"``.
        steps: Points on the way.
        rule: How the integral is taken: at Gauss–Legendre points, in the middle of equal steps, or at their right end.
        times: Multiply the mean gradient by the ``"difference"`` of image and baseline, or by ``"nothing"``.
        reduction: How the three channels become one.
        output: Differentiate the ``"logit"`` or the ``"score"``.

    Returns:
        [B, H, W].
    """
    points, weights = _rule(rule, steps, batch.inputs)
    starts = baseline.split("+") if isinstance(baseline, str) else [baseline]
    total = at_least_float32(torch.zeros_like(batch.inputs))
    for start in starts:
        hidden = batch.net.normalize(batch.baseline(start))
        way = batch.inputs - hidden

        def along(versions: range, hidden: Tensor = hidden, way: Tensor = way) -> Tensor:
            alpha, weight = (t[versions.start : versions.stop, None, None, None, None] for t in (points, weights))
            inputs = (hidden + alpha * way).flatten(0, 1)
            found = at_least_float32(batch.gradients(inputs, output)).unflatten(0, (len(versions), len(batch)))
            return (weight * found).flatten(0, 1)

        mean = batch.sum_over(steps, along)
        total += mean * way if times == "difference" else mean
    return over_channels(total / len(starts), reduction)


def _rule(rule: str, steps: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Points in [0, 1] and weights that sum to 1, [steps] each."""
    if rule == "gauss-legendre":
        nodes, weights = np.polynomial.legendre.leggauss(steps)
        points, weights = (nodes + 1) / 2, weights / 2
    else:
        points = (np.arange(steps) + (0.5 if rule == "middle" else 1.0)) / steps
        weights = np.full(steps, 1 / steps)
    return torch.as_tensor(points).to(like), torch.as_tensor(weights).to(like)
