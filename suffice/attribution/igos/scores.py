"""What a model says of masked images, along paths of ever weaker masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from suffice.perturb import enlarge
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

    At fractions 1/steps, 2/steps, … 1 of what the mask keeps; one step asks of the masked image alone. The noise, from
    images [B] and draws [B], is added to the inputs; ``first`` is the first draw of this path.
    """

    steps: int = 1
    noise: Callable[[Tensor, Tensor], Tensor] | None = None
    first: int = 0


class MaskedScores:
    """Integrated scores of the target in masked images, summed over terms, and their gradients, for many at once.

    They are those of :mod:`suffice.attribution.methods.igos`; masks are enlarged with corners aligned.
    """

    def __init__(self, batch: Batch, baseline: Baseline, terms: Sequence[Term]) -> None:
        self.batch, self.net, self.terms = batch, batch.net, terms
        # Deletions grow by small steps, so they and what they blend are never in half precision.
        self.dtype = torch.float64 if batch.net.dtype == torch.float64 else torch.float32
        self.shown = batch.inputs.to(self.dtype)
        self.hidden = batch.net.normalize(batch.baseline(baseline)).to(self.dtype)
        device = self.shown.device
        self.inserts = torch.tensor([term.inserts for term in terms], device=device)
        self.signs = torch.tensor([-1 if term.inserts else 1 for term in terms], device=device)
        count = 1 + max(max(term.planes) for term in terms)
        self.uses = torch.tensor([[p in term.planes for p in range(count)] for term in terms], device=device)

    @property
    def planes(self) -> int:
        """How many planes of cells an image has."""
        return self.uses.shape[1]

    @property
    def least(self) -> float:
        """What the sum of terms cannot be below."""
        return -float(self.inserts.sum()) if self.net.score in ("softmax", "sigmoid") else -torch.inf

    def values(self, index: Tensor, deleted: Tensor, path: ScorePath) -> Tensor:
        """Sum of the terms for deletions [K, P, s, s] from images [K]; [K]."""

        def ask(rows: slice) -> Tensor:
            version, term, step = self._question(rows, path, index.device)
            return self._score(index[version], deleted[version], term, step, path)

        return self._total(list(self.batch.runner.run(self._count(index, path), ask)), path)

    def values_and_gradients(self, index: Tensor, deleted: Tensor, path: ScorePath) -> tuple[Tensor, Tensor]:
        """Sum of the terms for deletions [K, P, s, s] from images [K], and its gradient; [K] and [K, P, s, s]."""

        def ask(rows: slice) -> tuple[Tensor, Tensor, Tensor]:
            version, term, step = self._question(rows, path, index.device)
            with torch.enable_grad():
                leaf = deleted[version].requires_grad_()  # a copy for each row, as indexing makes one
                score = self._score(index[version], leaf, term, step, path)
                require_gradient(score, self.net)
                gradient = torch.autograd.grad((self.signs[term] * score).sum(), leaf)[0]
            return version, score.detach(), gradient

        # So fine that how batches are cut, and in which order a GPU adds, does not show in the sum.
        fine = torch.float32 if deleted.device.type == "mps" else torch.float64
        total = torch.zeros_like(deleted, dtype=fine)
        scores = []
        for version, score, gradient in self.batch.runner.run(self._count(index, path), ask):
            total.index_add_(0, version, gradient.to(fine))
            scores.append(score)
        return self._total(scores, path), (total / path.steps).to(self.dtype)

    def _count(self, index: Tensor, path: ScorePath) -> int:
        return len(index) * len(self.terms) * path.steps

    def _question(self, rows: slice, path: ScorePath, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Version, term and step of some rows: all steps of a term after each other, all terms of a version."""
        row = torch.arange(rows.start, rows.stop, device=device)
        step, row = row % path.steps, row // path.steps
        return row // len(self.terms), row % len(self.terms), step

    def _score(self, index: Tensor, deleted: Tensor, term: Tensor, step: Tensor, path: ScorePath) -> Tensor:
        """Score of the target [B] of images [B] under deletions [B, P, s, s], for the term and step of each row."""
        kept = ((step + 1).to(self.dtype) / path.steps)[:, None, None]
        for plane, used in zip(deleted.unbind(dim=1), self.uses[term].unbind(dim=1), strict=True):
            kept = kept * (1 - enlarge(plane * used[:, None, None], self.net.size, "bilinear-corners"))
        visible = torch.where(self.inserts[term][:, None, None], 1 - kept, kept)
        inputs = torch.lerp(self.hidden[index], self.shown[index], visible[:, None])
        if path.noise is not None:
            inputs = inputs + path.noise(index, path.first + term * path.steps + step)
        logits = self.batch.runner.logits_with_graph(inputs).to(self.dtype)  # float64 stays so, unlike elsewhere
        return self.net.scores(logits).gather(1, self.batch.targets[index][:, None])[:, 0]

    def _total(self, scores: list[Tensor], path: ScorePath) -> Tensor:
        each = torch.cat(scores).unflatten(0, (-1, len(self.terms), path.steps)).mean(dim=2)
        return (self.signs * each).sum(dim=1)
