"""From images to the deletions that an objective likes best."""

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
from suffice.perturb.batch import Batch
from suffice.vision.noise import ImageNoise, normal_noise

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
        """Standard deviation of the noise on each channel."""
        return [float(d) for d in self.noise] if isinstance(self.noise, Sequence) else [float(self.noise)] * 3

    def __call__(self, objective: Objective) -> Tensor:
        """What is deleted of each cell in the end, [N, size, size]."""
        net, batch, shown = objective.scores.net, objective.scores.batch, objective.scores.shown
        if not 1 <= self.size <= min(net.size):
            raise OptionError(f"size={self.size}; it can be 1 to {min(net.size)}, the input size of {net.name}.")
        noise = self._noise(batch, shown.device) if any(self.deviations) else None
        draws = self.steps * len(objective.scores.terms)

        def paths(iteration: int) -> ScorePath:
            return ScorePath(self.steps, noise, iteration * draws)

        planes = (len(shown), objective.scores.planes, self.size, self.size)
        deleted = torch.zeros(planes, dtype=shown.dtype, device=shown.device)
        descend = self._by_line_search if self.optimizer == "line-search" else self._by_nesterov
        return together(descend(objective, deleted, paths))

    def _noise(self, batch: Batch, device: torch.device) -> ImageNoise:
        """Noise of at most a batch of inputs at a time; made in one pass where the model is compiled."""
        runner = batch.runner
        fused = runner.fused(normal_noise)

        @torch.no_grad()  # which is part of what a function is compiled for
        def make(seeds: Tensor, draws: Tensor, shape: tuple[int, ...]) -> Tensor:
            return fused(runner.padded(seeds), runner.padded(draws), shape)[: len(seeds)]

        return ImageNoise(self.deviations, batch.seeds, batch.net.size, device, make)

    def _by_line_search(self, objective: Objective, deleted: Tensor, paths: Paths) -> Tensor:
        search = LineSearch(objective, self.step_size)
        active = torch.arange(len(deleted), device=deleted.device)
        plain = ScorePath() if self.search_loss == "plain" else None
        losses = deleted.new_zeros(len(deleted)) if plain is None else objective.losses(active, deleted, plain)
        for iteration in range(self.iterations):
            path = paths(iteration)
            integrated, gradients = objective.losses_and_gradients(active, deleted[active], path)
            before = integrated if plain is None else losses[active]
            deleted[active], losses[active], paid = search(
                active, deleted[active], before, gradients, path if plain is None else plain
            )
            if path.noise is None:
                # Without noise, the next gradient would be the same, and would not pay either.
                active = active[paid]
                if not len(active):
                    break
        return deleted

    def _by_nesterov(self, objective: Objective, deleted: Tensor, paths: Paths) -> Tensor:
        everything = torch.arange(len(deleted), device=deleted.device)
        before = deleted
        for iteration in range(self.iterations):
            _, gradients = objective.losses_and_gradients(everything, deleted, paths(iteration))
            ahead = deleted - self.step_size * gradients
            deleted = (ahead + iteration / (iteration + 3) * (ahead - before)).clamp(0, 1)
            before = ahead
        return deleted
