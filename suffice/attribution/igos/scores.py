"""What a model says of masked images, along paths of ever weaker masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from suffice.attribution.igos.blending import masked_inputs
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, require_gradient


@dataclass(frozen=True)
class Term:
    """One score in an objective: ``planes`` are the planes of cells that delete, together.

    Where it ``inserts``, the image shows where it is deleted, and its baseline elsewhere. Deletion shall make the
    target fade, so its score counts as it is; insertion shall bring the target out, so its score counts negatively.
    """

    planes: tuple[int, ...]
    inserts: bool = False


@dataclass(frozen=True)
class ScorePath:
    """Where on the way from the baseline to the masked image the model is asked.

    At fractions 1/steps, 2/steps, … 1 of what the mask keeps; one step asks of the masked image alone. Noise of these
    ``deviations`` [3, 1, 1], in the model's units, is added to the inputs; ``first`` is the first draw of this path.
    """

    steps: int = 1
    deviations: Tensor | None = None
    first: int = 0


class MaskedScores:
    """Integrated scores of the target in masked images, summed over terms, and their gradients, for many at once.

    They are those of :mod:`suffice.attribution.methods.igos`; masks are enlarged with corners aligned. A *question* is
    one step of one term, so a path has Q = terms · steps of them: all steps of a term after each other.
    """

    def __init__(self, batch: Batch, baseline: Baseline, terms: Sequence[Term]) -> None:
        self.batch, self.net, self.terms = batch, batch.net, terms
        # Deletions grow by small steps, so they and what they blend are never in half precision.
        self.dtype = torch.float64 if batch.net.dtype == torch.float64 else torch.float32
        # So fine that how batches are cut does not show in a sum.
        self.fine = torch.float32 if batch.pixels.device.type == "mps" else torch.float64
        self._shown = self._stored(batch.inputs)
        self._hidden = self._stored(batch.net.normalize(batch.baseline(baseline)))
        self.inserts = torch.tensor([term.inserts for term in terms], device=self.device)
        count = 1 + max(max(term.planes) for term in terms)
        self.uses = torch.tensor([[p in term.planes for p in range(count)] for term in terms], device=self.device)
        self._inputs = batch.runner.fused(masked_inputs)

    @property
    def device(self) -> torch.device:
        """Where everything is."""
        return self.batch.pixels.device

    @property
    def planes(self) -> int:
        """How many planes of cells an image has."""
        return self.uses.shape[1]

    @property
    def bounded(self) -> bool:
        """Whether a score cannot leave [0, 1]."""
        return self.net.score in ("softmax", "sigmoid")

    def weights(self, path: ScorePath) -> Tensor:
        """With which weight the answer to each question counts in the sum of terms, [Q]."""
        signs = torch.where(self.inserts, -1.0, 1.0).to(self.fine)
        return (signs / path.steps).repeat_interleave(path.steps)

    def answers(self, index: Tensor, question: Tensor, cells: Callable[[slice], Tensor], path: ScorePath) -> Tensor:
        """Scores of the target [K] for questions [K] about images [K]; from some rows to deletions [B, P, s, s]."""

        def ask(rows: slice) -> Tensor:
            return self._score(index[rows], cells(rows), question[rows], path)

        return torch.cat(list(self.batch.runner.run(len(index), ask)))

    def answers_and_gradients(self, index: Tensor, deleted: Tensor, path: ScorePath) -> tuple[Tensor, Tensor]:
        """Answers [K, Q] for deletions [K, P, s, s] from images [K], and the gradient of the sum of terms."""
        weights = self.weights(path)

        def ask(rows: slice) -> tuple[Tensor, Tensor, Tensor]:
            row = torch.arange(rows.start, rows.stop, device=index.device)
            version, question = row // len(weights), row % len(weights)
            with torch.enable_grad():
                leaf = deleted[version].requires_grad_()  # a copy for each row, as indexing makes one
                score = self._score(index[version], leaf, question, path)
                require_gradient(score, self.net)
                sign = torch.where(weights[question] > 0, 1.0, -1.0).to(score.dtype)
                gradient = torch.autograd.grad((sign * score).sum(), leaf)[0]
            return version, score.detach(), gradient

        total = torch.zeros_like(deleted, dtype=self.fine)
        scores = []
        for version, score, gradient in self.batch.runner.run(len(index) * len(weights), ask):
            total.index_add_(0, version, gradient.to(self.fine))
            scores.append(score)
        return torch.cat(scores).unflatten(0, (-1, len(weights))), (total / path.steps).to(self.dtype)

    def _stored(self, images: Tensor) -> Tensor:
        """Images [N, 3, H, W] as they are blended: [N, H, W, 3] where the model wants the channels last."""
        runner = self.batch.runner
        images = (images.permute(0, 2, 3, 1) if runner.channels_last else images).to(self.dtype).contiguous()
        if runner.compiled:  # once for any number of images, but torch would compile anew for a single one
            images = images if len(images) > 1 else images.repeat(2, 1, 1, 1)
            torch._dynamo.maybe_mark_dynamic(images, 0)
        return images

    def _score(self, index: Tensor, deleted: Tensor, question: Tensor, path: ScorePath) -> Tensor:
        """Score of the target [B] of images [B] under deletions [B, P, s, s], for the question of each row."""
        runner, count = self.batch.runner, len(index)
        index, deleted, question = (runner.padded(rows) for rows in (index, deleted, question))
        term, step = question // path.steps, question % path.steps
        inputs = self._inputs(
            self._shown,
            self._hidden,
            index,
            deleted * self.uses[term][:, :, None, None],
            self.inserts[term],
            (step + 1).to(self.dtype) / path.steps,
            self.batch.seeds[index],
            path.first + question,
            path.deviations,
            runner.dtype,
            runner.channels_last,
        )[:count]
        logits = runner.logits_with_graph(inputs).to(self.dtype)  # float64 stays so, unlike elsewhere
        return self.net.scores(logits).gather(1, self.batch.targets[index[:count]][:, None])[:, 0]
