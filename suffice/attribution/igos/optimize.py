"""From images to the deletions that an objective likes best, by steps against the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from suffice.attribution.igos.objective import Objective, together
from suffice.attribution.igos.scores import ScorePath
from suffice.errors import OptionError
from suffice.perturb.batch import Batch
from suffice.vision.noise import ImageNoise, normal_noise
from suffice.vision.units import imagenet_unit

Optimizer = Literal["line-search", "nag"]
SearchLoss = Literal["integrated", "plain"]
Paths = Callable[[int], ScorePath]

# Each step is a fifth of the one before, and must pay by Armijo's rule until it is this small.
SHRINK = 0.2
ARMIJO = 1e-4
SMALL_STEP = 1e-5
# Smaller gains are rounding, which depends on the batch, and must not decide which step is taken.
ROUNDING = {torch.float32: 1e-6, torch.float64: 1e-12}
# Most steps of an image that share a batch; more would waste forwards where the first step is good.
TRIALS_AT_ONCE = 4


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

        own = [d * unit for d, unit in zip(self.deviations, imagenet_unit(batch.net.std), strict=True)]
        return ImageNoise(own, batch.seeds, batch.net.size, device, make)

    def _by_line_search(self, objective: Objective, deleted: Tensor, paths: Paths) -> Tensor:
        search = LineSearch(objective, self.step_size)
        active = torch.arange(len(deleted), device=deleted.device)
        plain = ScorePath() if self.search_loss == "plain" else None
        losses = deleted.new_zeros(len(deleted)) if plain is None else objective.losses(active, deleted, plain)
        for iteration in range(self.iterations):
            path, here = paths(iteration), deleted[active]
            integrated, gradients = objective.losses_and_gradients(active, here, path)
            before = integrated if plain is None else losses[active]
            deleted[active], losses[active] = search(active, here, before, gradients, plain or path)
            if path.noise is None:
                # Where nothing moved, not even by the last small step, the next gradient is the same.
                active = active[(deleted[active] != here).flatten(1).any(dim=1)]
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


class LineSearch:
    """For each image the first of ever smaller steps, beginning with ``step_size``, that pays.

    Where none does, the last one, too small to be tried, is taken anyway: it changes nothing that a model could see,
    but cells keep the order in which the gradient puts them.

    A few steps of an image are tried at once where they fit a batch, and steps whose penalty alone forbids them are not
    tried at all. The first that pays is taken, whatever the others do, so the result is that of trying one after the
    other.
    """

    def __init__(self, objective: Objective, step_size: float) -> None:
        self.objective = objective
        ladder = []
        while step_size >= SMALL_STEP:
            ladder.append(step_size)
            step_size *= SHRINK
        shown = objective.scores.shown
        self.ladder = torch.tensor(ladder, dtype=shown.dtype, device=shown.device)
        self.last = step_size

    def __call__(
        self, index: Tensor, deleted: Tensor, losses: Tensor, gradients: Tensor, path: ScorePath
    ) -> tuple[Tensor, Tensor]:
        """Take a step from deletions [K, P, s, s] of images [K] against their gradients.

        The losses [K] are those of these deletions along the path, on which steps are tried, always with the same
        noise. Returns deletions after the step, and their losses.
        """
        wanted = ARMIJO * self.ladder * gradients.square().sum(dim=(1, 2, 3))[:, None]
        limits = losses[:, None] - wanted.clamp(min=ROUNDING[deleted.dtype])
        order, worth = self._worth_trying(index, deleted, gradients, limits)

        after, losses_after = (deleted - self.last * gradients).clamp(0, 1), losses.clone()
        done, waiting = 0, worth.nonzero()[:, 0]
        while len(waiting):
            questions = len(waiting) * len(self.objective.scores.terms) * path.steps
            runner = self.objective.runner
            # A compiled model takes full batches only, so there more trials cost nothing.
            most = len(self.ladder) if runner.compiled else TRIALS_AT_ONCE
            at_once = min(max(1, runner.batch_size // questions), most, len(self.ladder) - done)
            row, column = (done + torch.arange(at_once, device=index.device) < worth[waiting, None]).nonzero().T
            rows = waiting[row]
            rung = order[rows, done + column]
            tried = (deleted[rows] - self.ladder[rung, None, None, None] * gradients[rows]).clamp(0, 1)
            found = self.objective.losses(index[rows], tried, path)
            pays = torch.zeros(len(waiting), at_once, dtype=torch.bool, device=index.device)
            pays[row, column] = found <= limits[rows, rung]  # never where a loss is NaN
            first = pays[row].int().argmax(dim=1)
            chosen = pays[row, column] & (column == first)
            after[rows[chosen]], losses_after[rows[chosen]] = tried[chosen], found[chosen]
            done += at_once
            waiting = waiting[~pays.any(dim=1) & (worth[waiting] > done)]
        return after, losses_after

    def _worth_trying(self, index: Tensor, deleted: Tensor, gradients: Tensor, limits: Tensor) -> tuple[Tensor, Tensor]:
        """The steps of each image with those that can pay first [K, steps], and how many these are [K]."""
        costs = [self.objective.penalties(index, (deleted - s * gradients).clamp(0, 1)) for s in self.ladder]
        hopeless = torch.stack(costs, dim=1) + self.objective.scores.least > limits
        return hopeless.int().argsort(dim=1, stable=True), (~hopeless).sum(dim=1)
