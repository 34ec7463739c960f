"""Fine-tuning of an explainer for each image, all images of a batch at once, each with parameters of its own.

The trunk runs once for an image and stays as it is; the head's parameters are stacked, one set an image, and take steps
of Adam, which sees each number for itself. So an image's mask does not depend on the images beside it, and a step costs
what the explained model's forward and backward cost.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Literal

import torch
from torch import Tensor, nn

from suffice.attribution.learned.explainer import Explainer
from suffice.attribution.learned.objective import Objective
from suffice.perturb import Batch, Probe, RankMasks, enlarge
from suffice.perturb.batch import require_gradient

Choose = Literal["loss", "last", "pos"]
POS_STEPS = 9  # 10, 20, … 90 % of the pixels are removed


class HeadOfEach:
    """A head's parameters once for each of so many images.

    Example:
        >>> head = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        >>> features = torch.rand(3, 9, 4)
        >>> torch.allclose(HeadOfEach(head, 3)(features), head(features), atol=1e-6)
        True
    """

    def __init__(self, head: nn.Sequential, count: int) -> None:
        layers = [part for part in head if isinstance(part, nn.Linear)]
        self.weights = [_for_each(layer.weight, count) for layer in layers]
        self.biases = [_for_each(layer.bias, count) for layer in layers]

    @property
    def parameters(self) -> list[Tensor]:
        """All of them, [N, ...] each."""
        return [*self.weights, *self.biases]

    def __call__(self, features: Tensor) -> Tensor:
        """What each image's head says of its features, from [N, T, C] to [N, T, outputs]."""
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            features = torch.baddbmm(bias[:, None], features.tanh() if number else features, weight.mT)
        return features


def _for_each(parameter: Tensor, count: int) -> Tensor:
    return parameter.detach().expand(count, *parameter.shape).clone().requires_grad_()


@torch.no_grad()
def features_of(batch: Batch, explainer: Explainer) -> Tensor:
    """What an explainer's trunk finds in the images of a batch, [B, h·w, C] float32.

    The trunk runs in half precision where the explained model does.
    """
    runner = batch.runner
    half = runner.dtype in (torch.bfloat16, torch.float16)
    with torch.autocast(runner.device.type, runner.dtype) if half else nullcontext():
        return explainer.trunk(batch.pixels).float()


def fine_tune(
    batch: Batch, explainer: Explainer, objective: Objective, *, steps: int, lr: float, choose: Choose
) -> Tensor:
    """The masks that fine-tuning ends with, or the best on the way, [B, h, w].

    Args:
        batch: The images; its runner is the explained model's, in the variant for gradients.
        explainer: Where it begins.
        objective: What is made small.
        steps: Steps of Adam. Masks before, between and after them are looked at.
        lr: Their length.
        choose: Which of the masks to take: the one with the least ``"loss"``, the ``"last"``, or the one with the least
            ``"pos"`` score, which is a metric's own; of the batch's targets, as the loss is.
    """
    features = features_of(batch, explainer)
    heads = HeadOfEach(explainer.head, len(batch))
    optimizer = torch.optim.Adam(heads.parameters, lr=lr)
    probe = batch.probe("black", remember=0) if choose == "pos" else None
    best = features.new_full((len(batch),), float("inf"))
    kept = features.new_zeros(len(batch), *explainer.grid)
    for step in range(steps + 1):
        with torch.enable_grad():
            masks = heads(features)[..., 0].sigmoid().unflatten(1, explainer.grid)
            if step < steps or choose == "loss":  # after the last step, what is not compared is not asked
                losses = objective(batch.runner, batch.pixels, batch.targets, masks).total
            if step < steps:
                require_gradient(losses, batch.net)
                slopes = torch.autograd.grad(losses.sum(), heads.parameters)
        if choose == "last":
            kept = masks.detach()
        else:
            found = losses.detach() if probe is None else pos_scores(probe, masks.detach())
            better = found < best
            best, kept = torch.where(better, found, best), torch.where(better[:, None, None], masks.detach(), kept)
        if step < steps:
            for parameter, slope in zip(heads.parameters, slopes, strict=True):
                parameter.grad = slope
            optimizer.step()
    return kept


def pos_scores(probe: Probe, masks: Tensor) -> Tensor:
    """The POS score of masks [B, h, w] of a probe's images: how long the class wins while pixels turn black, [B].

    The most important go first. It is the area under that curve from none to 90 % of the pixels, as ``pos`` of the
    protocol ``eea`` has it.
    """
    size = probe.net.size
    ranks = enlarge(masks, size).flatten(1).argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    count = ranks.shape[1]
    removed = torch.tensor([round(count * k / (POS_STEPS + 1)) for k in range(POS_STEPS + 1)], device=ranks.device)
    which = torch.arange(len(masks), device=ranks.device).repeat_interleave(len(removed))
    asked = RankMasks(ranks.view(-1, *size), which, removed.repeat(len(masks)), show="rest")
    wins = probe.respond(which, asked).correct.float().view(len(masks), -1)
    return torch.trapezoid(wins, dx=1 / (POS_STEPS + 1), dim=1).to(masks.device)
