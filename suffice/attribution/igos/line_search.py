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

    def __init__(self, objective: Objective, step_size: float, *, losses: bool = False) -> None:
        self.objective, self.losses = objective, losses
        scores = objective.scores
        ladder = []
        while step_size >= SMALL_STEP:
            ladder.append(step_size)
            step_size *= SHRINK
        self.ladder = torch.tensor(ladder, dtype=scores.dtype, device=scores.device)
        self.last = step_size

    @torch.no_grad()
    def __call__(
        self,
        index: Tensor,
        deleted: Tensor,
        losses: Tensor,
        gradients: Tensor,
        path: ScorePath,
        answers: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Take a step from deletions [K, P, s, s] of images [K] against their gradients.

        The losses [K] are those of these deletions along the path, on which steps are tried, always with the same
        noise. Where the answers [K, Q] behind them are given, they tell what is best asked first. Returns deletions
        after the step, and their losses where these are wanted.
        """
        wanted = ARMIJO * self.ladder * gradients.square().sum(dim=(1, 2, 3))[:, None]
        limits = losses[:, None] - wanted.clamp(min=ROUNDING[deleted.dtype])
        weights, order = self._order(len(index), path, answers)
        rest_low, rest_high = self._rest(weights.clamp(max=0)), self._rest(weights.clamp(min=0))
        costs = [self.objective.penalties(index, (deleted - s * gradients).clamp(0, 1)) for s in self.ladder]
        # What is known of each step: its penalty and the answers so far, and how many these are; [K, steps].
        known = torch.stack(costs, dim=1).to(weights.dtype)
        asked = torch.zeros_like(known, dtype=torch.long)
        place = torch.arange(order.shape[1], device=index.device)
        while True:
            complete = asked == len(place)
            pays = known + rest_high.gather(1, asked) <= limits  # never where a loss is NaN
            pays &= complete | (not self.losses)
            can_pay = ~(known + rest_low.gather(1, asked) > limits) & (pays | ~complete)
            found, first = can_pay.any(dim=1), can_pay.int().argmax(dim=1)
            waiting = found & ~pays.gather(1, first[:, None])[:, 0]
            images = int(waiting.sum())
            if not images:
                break
            ask = (place >= asked[:, :, None]) & can_pay[:, :, None] & waiting[:, None, None]
            ask &= ask.flatten(1).cumsum(dim=1).view(ask.shape) <= self._at_once(images, len(place))
            row, step, column = ask.nonzero().T
            said = self._answers(index, deleted, gradients, row, step, order[row, column], path)
            known.index_put_((row, step), weights[row, column] * said, accumulate=True)
            asked += ask.sum(dim=2)
        steps = torch.where(found, self.ladder[first], self.last)
        after = (deleted - steps[:, None, None, None] * gradients).clamp(0, 1)
        return after, torch.where(found, known.gather(1, first[:, None])[:, 0], losses)

    def _order(self, images: int, path: ScorePath, answers: Tensor | None) -> tuple[Tensor, Tensor]:
        """In which order questions are asked, [K, Q], and their weights."""
        weights = self.objective.scores.weights(path).expand(images, -1)
        if answers is None:
            return weights, torch.arange(weights.shape[1], device=weights.device).expand(images, -1)
        # Most steps that are tried are too long, and soonest known to be by what speaks against them: high scores of
        # deletion and low ones of insertion. After a step they are much as before it.
        order = torch.where(weights > 0, answers, 1 - answers).argsort(dim=1, descending=True)
        return weights.gather(1, order), order

    def _answers(
        self,
        index: Tensor,
        deleted: Tensor,
        gradients: Tensor,
        row: Tensor,
        step: Tensor,
        question: Tensor,
        path: ScorePath,
    ) -> Tensor:
        """Answers [M] to questions [M] about steps [M] from the deletions of rows [M]."""

        def cells(some: slice) -> Tensor:
            lengths = self.ladder[step[some], None, None, None]
            return (deleted[row[some]] - lengths * gradients[row[some]]).clamp(0, 1)

        return self.objective.scores.answers(index[row], question, cells, path)

    def _at_once(self, images: int, questions: int) -> int:
        """How many questions about each of so many images are asked at once."""
        runner, part = self.objective.runner, -(-questions // PARTS)
        if runner.compiled:  # it takes full batches only, so what fills them costs nothing
            return max(part, -(-images * part // runner.batch_size) * runner.batch_size // images)
        fitting = runner.batch_size // images
        return max(part, min(fitting, questions * min(max(1, fitting // questions), TRIALS_AT_ONCE)))

    def _rest(self, bounds: Tensor) -> Tensor:
        """From bounds [K, Q] of all answers to what those missing add in all when 0, 1, … Q are known, [K, Q + 1]."""
        rest = torch.nn.functional.pad(bounds.flip(1).cumsum(1).flip(1), (0, 1))
        if not self.objective.scores.bounded:
            rest[:, :-1] = torch.inf if bool((bounds > 0).any()) else -torch.inf
        return rest
