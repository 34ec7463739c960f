"""How far to go against a gradient: the first of ever smaller steps that pays, for many images at once."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.attribution.igos.objective import Objective
from suffice.attribution.igos.scores import ScorePath

# Each step is a fifth of the one before, and must pay by Armijo's rule until it is this small.
SHRINK = 0.2
ARMIJO = 1e-4
SMALL_STEP = 1e-5
# Smaller gains are rounding, which depends on the batch, and must not decide which step is taken.
ROUNDING = {torch.float32: 1e-6, torch.float64: 1e-12}
# Of the questions about a step, how many parts are asked one after the other, as the first may settle it.
PARTS = 8
# Most steps of an image that share a batch; more would waste forwards where the first step is good.
TRIALS_AT_ONCE = 4


class LineSearch:
    """For each image the first of ever smaller steps, beginning with ``step_size``, that pays.

    Where none does, the last one, too small to be tried, is taken anyway: it changes nothing that a model could see,
    but cells keep the order in which the gradient puts them.

    The result is that of asking everything about one step after the other, but less is asked. Scores are between 0 and
    1, so a few answers, or the penalty alone, can be enough to know that a step does not pay, or that it does. On the
    other hand, several steps of an image are tried at once where they fit a batch. Where the ``losses`` after steps are
    wanted, everything is asked about the steps that are taken.
    """

    def __init__(self, objective: Objective, step_size: float, path: ScorePath, *, losses: bool = False) -> None:
        self.objective, self.losses = objective, losses
        scores = objective.scores
        ladder = []
        while step_size >= SMALL_STEP:
            ladder.append(step_size)
            step_size *= SHRINK
        self.ladder = torch.tensor(ladder, dtype=scores.dtype, device=scores.device)
        self.last = step_size
        # First the masked images themselves, in which a step shows most, by every term; then weaker masks.
        weights = scores.weights(path)
        self.questions = torch.arange(len(weights), device=scores.device).view(-1, path.steps).flip(1).T.flatten()
        self.weights = weights[self.questions]
        self.rest_low, self.rest_high = self._rest(self.weights.clamp(max=0)), self._rest(self.weights.clamp(min=0))

    @torch.no_grad()
    def __call__(
        self, index: Tensor, deleted: Tensor, losses: Tensor, gradients: Tensor, path: ScorePath
    ) -> tuple[Tensor, Tensor]:
        """Take a step from deletions [K, P, s, s] of images [K] against their gradients.

        The losses [K] are those of these deletions along the path, on which steps are tried, always with the same
        noise. Returns deletions after the step, and their losses where these are wanted.
        """
        wanted = ARMIJO * self.ladder * gradients.square().sum(dim=(1, 2, 3))[:, None]
        limits = losses[:, None] - wanted.clamp(min=ROUNDING[deleted.dtype])
        costs = [self.objective.penalties(index, (deleted - s * gradients).clamp(0, 1)) for s in self.ladder]
        # What is known of each step: its penalty and the answers so far, and how many these are; [K, steps].
        known = torch.stack(costs, dim=1).to(self.weights.dtype)
        asked = torch.zeros_like(known, dtype=torch.long)
        place = torch.arange(len(self.questions), device=index.device)
        while True:
            pays = known + self.rest_high[asked] <= limits  # never where a loss is NaN
            complete = asked == len(place)
            pays &= complete | (not self.losses)
            open_ = ~(known + self.rest_low[asked] > limits) & (pays | ~complete)
            found, first = open_.max(dim=1)
            waiting = found & ~pays.gather(1, first[:, None])[:, 0]
            count = int(waiting.sum())
            if not count:
                break
            ask = (place >= asked[:, :, None]) & open_[:, :, None] & waiting[:, None, None]
            ask &= ask.flatten(1).cumsum(dim=1).view(ask.shape) <= self._at_once(count)
            row, step, question = ask.nonzero().T
            answers = self._answers(index, deleted, gradients, (row, step, question), path)
            known.index_put_((row, step), self.weights[question] * answers, accumulate=True)
            asked += ask.sum(dim=2)
        steps = torch.where(found, self.ladder[first], self.last)
        after = (deleted - steps[:, None, None, None] * gradients).clamp(0, 1)
        return after, torch.where(found, known.gather(1, first[:, None])[:, 0], losses)

    def _answers(
        self,
        index: Tensor,
        deleted: Tensor,
        gradients: Tensor,
        which: tuple[Tensor, Tensor, Tensor],
        path: ScorePath,
    ) -> Tensor:
        """Answers [M] to questions [M] about the steps [M] of rows [M]."""
        row, step, question = which

        def cells(some: slice) -> Tensor:
            lengths = self.ladder[step[some], None, None, None]
            return (deleted[row[some]] - lengths * gradients[row[some]]).clamp(0, 1)

        return self.objective.scores.answers(index[row], self.questions[question], cells, path)

    def _at_once(self, images: int) -> int:
        """How many questions about each of so many images are asked at once."""
        runner, questions = self.objective.runner, len(self.questions)
        part = -(-questions // PARTS)
        if runner.compiled:  # it takes full batches only, so what fills them costs nothing
            return max(part, -(-images * part // runner.batch_size) * runner.batch_size // images)
        return max(part, min(runner.batch_size // images, TRIALS_AT_ONCE * questions))

    def _rest(self, bounds: Tensor) -> Tensor:
        """What the answers that are missing add at least, or at most, when 0, 1, … of them are known."""
        rest = torch.nn.functional.pad(bounds.flip(0).cumsum(0).flip(0), (0, 1))
        if not self.objective.scores.bounded:
            rest[:-1] = torch.inf if float(bounds.sum()) > 0 else -torch.inf
        return rest
