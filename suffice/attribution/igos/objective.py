"""What the optimization of masks minimizes, for many images at once."""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor

from suffice.attribution.igos.penalty import BilateralVariation, amount, total_variation
from suffice.attribution.igos.scores import MaskedScores, ScorePath


def together(deleted: Tensor) -> Tensor:
    """What planes [K, P, s, s] delete together, [K, s, s]: 1 - the product of what each keeps."""
    # Not by that product itself, which would round small deletions to the neighbors of 1.
    return reduce(lambda a, b: a + b - a * b, deleted.unbind(dim=1))


class Objective:
    """Scores plus penalties of deletions [K, P, s, s], each for itself.

    Args:
        scores: What the model says.
        l1: Weight of the mean deletion.
        l2: Weight of the variation.
        bilateral: The variation that knows the images; None for the plain one.
        share: Weight of the scores in gradients, while it is 1 in losses.
    """

    def __init__(
        self,
        scores: MaskedScores,
        *,
        l1: float,
        l2: float,
        bilateral: BilateralVariation | None = None,
        share: float = 1.0,
    ) -> None:
        self.scores, self.l1, self.l2, self.bilateral, self.share = scores, l1, l2, bilateral, share
        self.runner = scores.batch.runner

    def losses(self, index: Tensor, deleted: Tensor, path: ScorePath) -> Tensor:
        """The loss [K] of deletions [K, P, s, s] from images [K]."""
        return self.scores.values(index, deleted, path) + self.penalties(index, deleted)

    def losses_and_gradients(self, index: Tensor, deleted: Tensor, path: ScorePath) -> tuple[Tensor, Tensor]:
        """Losses [K] and descent's gradients [K, P, s, s], which are 0 where the model's is not a number."""
        values, gradients = self.scores.values_and_gradients(index, deleted, path)

        def cost(rows: slice) -> tuple[Tensor, Tensor]:
            with torch.enable_grad():
                leaf = deleted[rows].clone().requires_grad_()
                costs = self._penalties(index[rows], leaf)
                return costs.detach(), torch.autograd.grad(costs.sum(), leaf)[0]

        costs, rises = zip(*self.runner.run(len(index), cost), strict=True)
        gradients = self.share * gradients + torch.cat(rises)
        return values + torch.cat(costs), gradients.where(gradients.isfinite(), 0)

    def penalties(self, index: Tensor, deleted: Tensor) -> Tensor:
        """The part of the loss that does not need the model, [K]."""

        def cost(rows: slice) -> Tensor:
            return self._penalties(index[rows], deleted[rows])

        return torch.cat(list(self.runner.run(len(index), cost)))

    def _penalties(self, index: Tensor, deleted: Tensor) -> Tensor:
        cells = together(deleted)
        variation = total_variation(cells) if self.bilateral is None else self.bilateral(index, cells)
        return self.l1 * amount(cells) + self.l2 * variation
