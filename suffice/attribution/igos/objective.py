"""What the optimization of masks minimizes, for many images at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Literal

import torch
from torch import Tensor

from suffice.attribution.igos.blending import enlarged
from suffice.attribution.igos.scores import MaskedScores, ScorePath
from suffice.perturb import Runner
from suffice.vision.units import imagenet_normalized

Edges = Literal["gray", "channels", "asymmetric"]

# The contrast of neighboring pixels, squared and in ImageNet's units, beyond which a mask may have edges.
CONTRAST = 0.01


def together(deleted: Tensor) -> Tensor:
    """What planes [K, P, s, s] delete together, [K, s, s]: 1 - the product of what each keeps."""
    # Not by that product itself, which would round small deletions to the neighbors of 1.
    return reduce(lambda a, b: a + b - a * b, deleted.unbind(dim=1))


@dataclass(frozen=True, eq=False)
class Objective:
    """Scores plus penalties of deletions [K, P, s, s], each for itself.

    ``l1`` weights the mean deletion and ``l2`` the variation, the plain one where ``bilateral`` is None. Scores have
    the weight ``share`` in gradients, while it is 1 in losses.
    """

    scores: MaskedScores
    l1: float
    l2: float
    bilateral: BilateralVariation | None = None
    share: float = 1.0

    @property
    def runner(self) -> Runner:
        """Puts inputs through the model."""
        return self.scores.batch.runner

    def with_gradients(self, index: Tensor, deleted: Tensor, path: ScorePath) -> tuple[Tensor, Tensor, Tensor]:
        """Answers [K, Q], losses [K] and descent's gradients [K, P, s, s].

        Gradients are 0 where the model's is not a number.
        """
        answers, gradients = self.scores.answers_and_gradients(index, deleted, path)

        def cost(rows: slice) -> tuple[Tensor, Tensor]:
            with torch.enable_grad():
                leaf = deleted[rows].clone().requires_grad_()
                costs = self._penalties(index[rows], leaf)
                return costs.detach(), torch.autograd.grad(costs.sum(), leaf)[0]

        costs, rises = zip(*self.runner.run(len(index), cost), strict=True)
        gradients = self.share * gradients + torch.cat(rises)
        losses = answers.to(self.scores.fine) @ self.scores.weights(path) + torch.cat(costs)
        return answers, losses, gradients.where(gradients.isfinite(), 0)

    def losses(self, index: Tensor, deleted: Tensor, path: ScorePath) -> Tensor:
        """The loss [K] of deletions [K, P, s, s] from images [K]."""
        weights = self.scores.weights(path)
        version = torch.arange(len(index), device=index.device).repeat_interleave(len(weights))
        question = torch.arange(len(weights), device=index.device).repeat(len(index))
        answers = self.scores.answers(index[version], question, lambda rows: deleted[version[rows]], path)
        return answers.to(self.scores.fine).unflatten(0, (len(index), -1)) @ weights + self.penalties(index, deleted)

    def penalties(self, index: Tensor, deleted: Tensor) -> Tensor:
        """The part of the loss that does not need the model, [K]."""
        parts = self.runner.run(len(index), lambda rows: self._penalties(index[rows], deleted[rows]))
        return torch.cat(list(parts))

    def _penalties(self, index: Tensor, deleted: Tensor) -> Tensor:
        cells = together(deleted)
        variation = total_variation(cells) if self.bilateral is None else self.bilateral(index, cells)
        return self.l1 * amount(cells) + self.l2 * variation


def amount(deleted: Tensor) -> Tensor:
    """Mean deletion [K] of [K, s, s]."""
    # The absolute value matters at 0, where every deletion begins: its gradient is 0 there, and not 1.
    return deleted.abs().mean(dim=(1, 2))


def total_variation(deleted: Tensor) -> Tensor:
    """Mean squared difference of vertical plus that of horizontal neighbors, [K] of [K, s, s]."""
    return _mean(deleted.diff(dim=1).square()) + _mean(deleted.diff(dim=2).square())


class BilateralVariation:
    """Total variation, half of it in cells and half in pixels, where edges of a mask along edges of the image are free.

    The half in pixels is the mean over neighbors of w·(difference of the enlarged mask)², with w = exp(-(difference of
    the image)² / 0.01), and pixels [N, 3, H, W] taken in ImageNet's units, whatever the model's own: see
    :mod:`suffice.vision.units`. The difference of an image is for ``"gray"`` edges that of the mean of its channels;
    for ``"channels"`` that of each channel, and w is the mean over them; ``"asymmetric"`` is the first between vertical
    neighbors and the second between horizontal ones, as the published code has it.
    """

    def __init__(self, pixels: Tensor, edges: Edges = "gray") -> None:
        self.size = (pixels.shape[2], pixels.shape[3])
        images = imagenet_normalized(pixels)
        self.vertical = _smoothness(images.diff(dim=2), gray=edges != "channels")
        self.horizontal = _smoothness(images.diff(dim=3), gray=edges == "gray")

    def __call__(self, index: Tensor, deleted: Tensor) -> Tensor:
        """Variation [K] of deletions [K, s, s] from images [K]."""
        fine = enlarged(deleted, self.size)
        vertical = _mean(self.vertical[index] * fine.diff(dim=1).square())
        horizontal = _mean(self.horizontal[index] * fine.diff(dim=2).square())
        return 0.5 * (total_variation(deleted) + vertical + horizontal)


def _smoothness(difference: Tensor, gray: bool) -> Tensor:
    """How alike neighbors are [N, a, b], from differences [N, 3, a, b]; 1 = the same."""
    if gray:
        return torch.exp(-difference.mean(dim=1).square() / CONTRAST)
    return torch.exp(-difference.square() / CONTRAST).mean(dim=1)


def _mean(values: Tensor) -> Tensor:
    """Mean of each map [K, a, b]; 0 where it has no values, as the differences within a map of one cell."""
    return values.sum(dim=(1, 2)) / max(values[0].numel(), 1)
