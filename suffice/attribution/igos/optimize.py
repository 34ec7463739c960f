"""From images to the deletions that an objective likes best, by steps against the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from suffice.attribution.igos.line_search import LineSearch
from suffice.attribution.igos.objective import Objective, together
from suffice.attribution.igos.scores import ScorePath
from suffice.errors import OptionError
from suffice.vision.units import imagenet_unit

Optimizer = Literal["line-search", "nag"]
SearchLoss = Literal["integrated", "plain"]
Paths = Callable[[int], ScorePath]


@dataclass(frozen=True)
class Descent:
    """How masks are optimized; the options are those of :func:`suffice.attribution.methods.igos.igos_plus_plus`."""

    size: int
    steps: int
    iterations: int
    noise: float | Sequence[float]
    step_size: float
    optimizer: Optimizer
    search_loss: SearchLoss

    def __post_init__(self) -> None:
        if len(self.deviations) != 3:
            raise OptionError(f"noise={self.noise!r}; it can be one number, or three for red, green and blue.")

    @property
    def deviations(self) -> list[float]:
        """Standard deviation of the noise on each channel, in ImageNet's units."""
        return [float(d) for d in self.noise] if isinstance(self.noise, Sequence) else [float(self.noise)] * 3

    def __call__(self, objective: Objective) -> Tensor:
        """What is deleted of each cell in the end, [N, size, size]."""
        scores = objective.scores
        net, images = scores.net, len(scores.batch)
        if not 1 <= self.size <= min(net.size):
            raise OptionError(f"size={self.size}; it can be 1 to {min(net.size)}, the input size of {net.name}.")
        deviations = None
        if any(self.deviations):
            own = [d * unit for d, unit in zip(self.deviations, imagenet_unit(net.std), strict=True)]
            deviations = torch.tensor(own, device=scores.device)[:, None, None]
        draws = self.steps * len(scores.terms)

        def paths(iteration: int) -> ScorePath:
            return ScorePath(self.steps, deviations, iteration * draws)

        deleted = torch.zeros(images, scores.planes, self.size, self.size, dtype=scores.dtype, device=scores.device)
        descend = self._by_line_search if self.optimizer == "line-search" else self._by_nesterov
        return together(descend(objective, deleted, paths))

    def _by_line_search(self, objective: Objective, deleted: Tensor, paths: Paths) -> Tensor:
        active = torch.arange(len(deleted), device=deleted.device)
        plain = ScorePath() if self.search_loss == "plain" else None
        search = LineSearch(objective, self.step_size, losses=plain is not None)
        losses = deleted.new_zeros(len(deleted)) if plain is None else objective.losses(active, deleted, plain)
        for iteration in range(self.iterations):
            path, here = paths(iteration), deleted[active]
            answers, integrated, gradients = objective.with_gradients(active, here, path)
            if plain is None:
                deleted[active], _ = search(active, here, integrated, gradients, path, answers)
            else:
                deleted[active], losses[active] = search(active, here, losses[active], gradients, plain)
            if path.deviations is None:
                # Where nothing moved, not even by the last small step, the next gradient is the same.
                active = active[(deleted[active] != here).flatten(1).any(dim=1)]
                if not len(active):
                    break
        return deleted

    def _by_nesterov(self, objective: Objective, deleted: Tensor, paths: Paths) -> Tensor:
        everything = torch.arange(len(deleted), device=deleted.device)
        before = deleted
        for iteration in range(self.iterations):
            _, _, gradients = objective.with_gradients(everything, deleted, paths(iteration))
            ahead = deleted - self.step_size * gradients
            deleted = (ahead + iteration / (iteration + 3) * (ahead - before)).clamp(0, 1)
            before = ahead
        return deleted
