"""What a method gets to work on: a batch of images, and the ways to ask the model about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.perturb import Forwarder, Probe, make_baseline
from suffice.perturb.baselines import Baseline
from suffice.vision import Classifier
from suffice.vision.identity import image_seed

Output = Literal["logit", "score"]


@dataclass
class Task:
    """Images to explain, and their model in evaluation mode with frozen parameters.

    Attributes:
        net: The classifier.
        pixels: [B, 3, H, W] in [0, 1], on the model's device.
        targets: Class to explain in each image, [B] int64.
        ids: Identity of each image, on which everything random about it depends.
        seed: The user's seed.
        forwarder: Puts batches through the model without gradients; knows how many inputs fit.
    """

    net: Classifier
    pixels: Tensor
    targets: Tensor
    ids: Sequence[str]
    seed: int
    forwarder: Forwarder

    def __len__(self) -> int:
        return len(self.pixels)

    @cached_property
    def inputs(self) -> Tensor:
        """Normalized images, [B, 3, H, W], in the precision of the model."""
        return self.net.normalize(self.pixels)

    @cached_property
    def seeds(self) -> Tensor:
        """Seed of each image, [B] int64."""
        return torch.tensor([image_seed(self.seed, i) for i in self.ids], device=self.pixels.device)

    def baseline(self, baseline: Baseline) -> Tensor:
        """Baseline pixels of each image, [B, 3, H, W] in [0, 1]."""
        return make_baseline(baseline, self.pixels, mean=self.net.mean, ids=self.ids, seed=self.seed)

    def probe(self, baseline: Baseline, **options: Any) -> Probe:
        """A probe of these images; see :class:`suffice.Probe`."""
        return Probe(
            self.net,
            self.pixels,
            self.targets,
            baseline=baseline,
            forwarder=self.forwarder,
            ids=self.ids,
            seed=self.seed,
            **options,
        )

    def logits(self, inputs: Tensor) -> Tensor:
        """Logits [K, classes] float32 of normalized inputs, part of the graph where gradients are on.

        Where the model is not compiled, what happens inside ``self.forwarder.module`` can be watched.
        """
        return self.forwarder.logits_in_graph(inputs).float()

    def outputs(self, inputs: Tensor, output: Output = "logit") -> Tensor:
        """What the model says of the target, part of the graph where gradients are on.

        Args:
            inputs: Normalized, [K·B, 3, H, W]: K versions of all images, one after the other.
            output: The ``"logit"``, or the ``"score"`` of the classifier (softmax unless told otherwise).

        Returns:
            [K·B] float32.
        """
        logits = self.logits(inputs)
        if output not in ("logit", "score"):
            raise OptionError(f"output={output!r}; it can be 'logit' or 'score'.")
        scores = logits if output == "logit" else self.net.scores(logits)
        return scores.gather(1, self.targets.repeat(len(inputs) // len(self))[:, None])[:, 0]

    def gradients(self, inputs: Tensor, output: Output = "logit") -> Tensor:
        """Gradients of what the model says of the target, with respect to its inputs.

        Args:
            inputs: As for :meth:`outputs`.
            output: As for :meth:`outputs`.

        Returns:
            [K·B, 3, H, W].
        """
        with torch.enable_grad():
            leaf = inputs.detach().requires_grad_()
            said = self.outputs(leaf, output)
            if not said.requires_grad:
                raise OptionError(
                    f"The scores of {self.net.name} have no gradient with respect to the pixels; use a method "
                    "that needs none."
                )
            return torch.autograd.grad(said.sum(), leaf)[0]

    def portions(self, count: int) -> Iterator[range]:
        """Split a number of versions of every image into portions that fit the model's batch."""
        at_once = max(1, self.forwarder.batch_size // len(self))
        return (range(start, min(start + at_once, count)) for start in range(0, count, at_once))

    def mean_over(self, count: int, work: Callable[[range], Tensor]) -> Tensor:
        """Mean of something over many versions of every image, portion by portion.

        Args:
            count: How many versions.
            work: From a portion of K versions to values [K·B, ...], all images of a version after each other.

        Returns:
            [B, ...].
        """
        return self.sum_over(count, work) / count

    def sum_over(self, count: int, work: Callable[[range], Tensor]) -> Tensor:
        """Sum of something over many versions of every image; see :meth:`mean_over`."""
        total: Tensor | None = None
        for portion in self.portions(count):
            part = work(portion).unflatten(0, (len(portion), len(self))).sum(dim=0)
            total = part if total is None else total + part
        assert total is not None, "nothing to sum over"
        return total


def at_least_float32(values: Tensor) -> Tensor:
    """Values of a model in half precision as float32, so that sums over them are exact enough; others as they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
