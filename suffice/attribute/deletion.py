"""Deletion by a mask: what I-GOS minimises, and its integrated gradient, for many images at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.perturb import Forwarder, enlarge
from suffice.vision import Classifier
from suffice.vision.classifier import Targets


class Deletion:
    """How much of the target is left, and what it costs, when parts of images are deleted.

    Deletions are what :mod:`suffice.attribute.igos` calls 1 - m: 0 = keep, 1 = delete. Most are close to 0, where
    floating point numbers are fine; beside 1 they are coarse.

    Args:
        net: The classifier.
        pixels: Images [N, 3, H, W] in [0, 1].
        hidden: Their baselines [N, 3, H, W] in [0, 1].
        targets: As users give them.
        forwarder: Knows how many inputs go through the model at once.
        l1: Weight of the mean deletion.
        l2: Weight of the total variation.
    """

    def __init__(
        self,
        net: Classifier,
        pixels: Tensor,
        hidden: Tensor,
        targets: Targets,
        forwarder: Forwarder,
        *,
        l1: float,
        l2: float,
    ) -> None:
        self.net, self.forwarder, self.l1, self.l2 = net, forwarder, l1, l2
        # Deletions grow by small steps, so they and what they blend are never in half precision.
        self.dtype = torch.float64 if net.dtype == torch.float64 else torch.float32
        self.shown, self.hidden = (net.normalise(images).to(self.dtype) for images in (pixels, hidden))
        whole = self._in_batches(len(pixels), lambda rows: self._scores(self.shown[rows]))
        self.targets = net.targets(targets, whole)

    def losses(self, index: Tensor, deleted: Tensor) -> Tensor:
        """The loss of deletions [K, s, s] from images [K]; [K]."""
        remaining = self._in_batches(len(index), lambda rows: self._remaining(index[rows], deleted[rows], 1.0))
        return remaining + self.penalties(deleted)

    def gradients(
        self, index: Tensor, deleted: Tensor, steps: int, noise: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Integrated gradients plus those of the penalties, with respect to the deletions.

        Args:
            index: Which image each deletion belongs to [K].
            deleted: [K, s, s].
            steps: Steps of the integral.
            noise: From images [B] and steps [B], 0 and up, to what is added to their inputs.

        Returns:
            [K, s, s]; 0 where the model's is not a number.
        """
        row = torch.arange(len(index), device=index.device).repeat_interleave(steps)
        step = torch.arange(steps, device=index.device).repeat(len(index))

        def slopes(part: slice) -> Tensor:
            images = index[row[part]]
            with torch.enable_grad():
                # A copy for each step, so that sums over steps do not depend on how batches are cut.
                leaf = deleted[row[part]].requires_grad_()
                fraction = ((step[part] + 1) / steps).to(self.dtype)[:, None, None]
                remaining = self._remaining(images, leaf, fraction, noise(images, step[part]))
                if not remaining.requires_grad:
                    raise OptionError(
                        f"The scores of {self.net.name} have no gradient with respect to the pixels, "
                        "which I-GOS needs; use a method that needs none."
                    )
                return torch.autograd.grad(remaining.sum(), leaf)[0]

        integrated = self._in_batches(len(row), slopes).unflatten(0, (len(index), steps)).mean(dim=1)
        with torch.enable_grad():
            leaf = deleted.clone().requires_grad_()
            gradients = integrated + torch.autograd.grad(self.penalties(leaf).sum(), leaf)[0]
        return gradients.where(gradients.isfinite(), 0)

    def penalties(self, deleted: Tensor) -> Tensor:
        """The terms of the loss that do not need the model, for deletions [K, s, s]; [K]."""
        # The absolute value matters at 0, where every deletion begins: its gradient is 0 there, and not 1.
        amount = deleted.abs().mean(dim=(1, 2))
        variation = _mean(deleted.diff(dim=1).square()) + _mean(deleted.diff(dim=2).square())
        return self.l1 * amount + self.l2 * variation

    def _remaining(
        self, index: Tensor, deleted: Tensor, fraction: Tensor | float, noise: Tensor | float = 0.0
    ) -> Tensor:
        """Score of the target [B] of images [B] when a fraction of what is not deleted [B, s, s] is shown."""
        visible = fraction * (1 - enlarge(deleted, self.net.size, "bilinear-corners"))
        inputs = torch.lerp(self.hidden[index], self.shown[index], visible[:, None]) + noise
        return self._scores(inputs).gather(1, self.targets[index][:, None])[:, 0]

    def _scores(self, inputs: Tensor) -> Tensor:
        return self.net.scores(self.net.logits(inputs.to(self.net.dtype)))

    def _in_batches(self, count: int, work: Callable[[slice], Tensor]) -> Tensor:
        """Results of all rows, computed as many at once as memory allows."""
        parts: list[Tensor] = []
        start = 0
        while start < count:
            rows = slice(start, min(start + self.forwarder.batch_size, count))
            try:
                parts.append(work(rows))
            except RuntimeError as error:  # out of memory is one, on the GPU and on the CPU
                self.forwarder.make_room(error)
                continue
            start = rows.stop
        return torch.cat(parts)


def _mean(values: Tensor) -> Tensor:
    """Mean of each map [K, a, b]; 0 where it has no values, as the differences within a map of one cell."""
    return values.sum(dim=(1, 2)) / max(values[0].numel(), 1)
