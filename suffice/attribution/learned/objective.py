"""What an explainer is trained for: a small mask under which the explained model decides as before.

The loss of an image is ``-log p(class | image under the mask) + λ · penalty(mask)``. Where the mask is below 1 the
baseline shows through: black, as published.

The penalty is called a cross-entropy of the mask with 0. Of a mask m in [0, 1] that is the mean of ``-log(1 - m)``:
``"bce"``. The published code takes m for a logit, though it is a sigmoid already, and so computes the mean of
``log(1 + e^m)``, which lies between 0.69 and 1.31 and is nearly a straight line: ``"bce-of-logit"``. The mean of m is
``"l1"``. One λ does not mean the same for all three: at an empty mask their slopes are 1, 1/2 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from suffice.perturb import Runner, enlarge, make_baseline
from suffice.vision import Classifier

MaskLoss = Literal["bce", "bce-of-logit", "l1"]


@dataclass(frozen=True)
class Losses:
    """Losses of each image [B], and the mean of its mask."""

    prediction: Tensor
    mask: Tensor
    kept: Tensor
    weight: float

    @property
    def total(self) -> Tensor:
        """What is made small, [B]."""
        return self.prediction + self.weight * self.mask


@dataclass(frozen=True)
class Objective:
    """The loss of masks; see the module's docstring.

    Attributes:
        mask_weight: λ, the weight of the penalty; 0 leaves it out.
        mask_loss: Which penalty.
        baseline: What shows where the mask hides.
    """

    mask_weight: float
    mask_loss: MaskLoss = "bce"
    baseline: str = "black"

    def __call__(self, runner: Runner, pixels: Tensor, targets: Tensor, masks: Tensor) -> Losses:
        """Losses of masks [B, h, w] of pixels [B, 3, H, W], for classes [B]; part of the graph of the masks.

        The explained model is run by its runner, in the variant for gradients.
        """
        net = runner.net
        hidden = make_baseline(self.baseline, pixels, mean=net.mean)
        visible = enlarge(masks, net.size, "bilinear")[:, None]
        inputs = torch.lerp(net.normalize(hidden).float(), net.normalize(pixels).float(), visible)
        logits = runner.logits_with_graph(inputs).float()
        prediction = -log_score(net, logits).gather(1, targets[:, None])[:, 0]
        return Losses(prediction, penalty(masks, self.mask_loss), masks.mean(dim=(1, 2)), self.mask_weight)


def penalty(masks: Tensor, kind: MaskLoss = "bce") -> Tensor:
    """How much masks [B, h, w] in [0, 1] keep, [B].

    Example:
        >>> [round(float(penalty(torch.full((1, 2, 2), 0.5), kind)), 3) for kind in ("bce", "bce-of-logit", "l1")]
        [0.693, 0.974, 0.5]
    """
    if kind == "bce":
        each = -torch.log1p(-masks.clamp(max=1 - 1e-6))
    else:
        each = softplus(masks) if kind == "bce-of-logit" else masks
    return each.mean(dim=(1, 2))


def log_score(net: Classifier, logits: Tensor) -> Tensor:
    """Logarithms of scores [B, classes]; of classifiers that score by logits, of their softmax."""
    return logsigmoid(logits) if net.score == "sigmoid" else logits.log_softmax(dim=-1)
