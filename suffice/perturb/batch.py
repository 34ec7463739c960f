"""The batch: some images, their model, and the ways to ask it about them; what methods and metrics work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.perturb.baselines import Baseline, make_baseline
from suffice.perturb.probe import Probe
from suffice.perturb.runner import Runner
from suffice.vision.anatomy import record
from suffice.vision.classifier import Classifier
from suffice.vision.identity import image_seed

Output = Literal["logit", "score"]


@dataclass(eq=False)
class Batch:
    """Images, and their model in evaluation mode with frozen parameters.

    Attributes:
        net: The classifier.
        pixels: [B, 3, H, W] in [0, 1], on the model's device.
        targets: Class asked about in each image, [B] int64.
        ids: Identity of each image, on which everything random about it depends.
        seed: The user's seed.
        runner: Puts inputs through the model, in the variant that the work needs.
        index: Position of each image among all that were given, [B] int64; default: these are all.
        total: How many were given; default: as many as there are here.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(5,)], grid=4)
        >>> net, pixels = oracle.classifier(32), oracle.image(32).repeat(3, 1, 1, 1)
        >>> batch = Batch(net, pixels, torch.tensor([1, 0, 1]), ["a", "b", "c"], 0, Runner(net))
        >>> len(batch), batch[1:].targets
        (3, tensor([0, 1]))
    """

    net: Classifier
    pixels: Tensor
    targets: Tensor
    ids: Sequence[str]
    seed: int
    runner: Runner
    index: Tensor | None = None
    total: int | None = None

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, rows: slice) -> Batch:
        """Some of the images."""
        if (rows.start or 0) == 0 and (rows.stop is None or rows.stop >= len(self)):
            return self
        index = torch.arange(len(self)) if self.index is None else self.index
        return replace(
            self,
            pixels=self.pixels[rows],
            targets=self.targets[rows],
            ids=self.ids[rows],
            index=index[rows],
            total=self.total or len(self),
        )

    @cached_property
    def inputs(self) -> Tensor:
        """Normalized images, [B, 3, H, W], in the precision of the model."""
        return self.net.normalize(self.pixels)

    @cached_property
    def seeds(self) -> Tensor:
        """Seed of each image, [B] int64."""
        return torch.tensor([image_seed(self.seed, i) for i in self.ids], device=self.pixels.device)

    def baseline(self, baseline: Baseline) -> Tensor:
        """Baseline pixels of each image, [B, 3, H, W] in [0, 1].

        It is what :func:`suffice.perturb.make_baseline` takes; a tensor [N, 3, H, W] has one image for each of all that
        were given.
        """
        if isinstance(baseline, Tensor) and baseline.dim() == 4 and len(baseline) > 1:
            total = self.total or len(self)
            if len(baseline) != total:
                raise OptionError(f"{len(baseline)} baseline images were given for {total} images; give one or each.")
            baseline = baseline if self.index is None else baseline[self.index.to(baseline.device)]
        return make_baseline(baseline, self.pixels, mean=self.net.mean, ids=self.ids, seed=self.seed)

    def probe(self, baseline: Baseline, **options: Any) -> Probe:
        """A probe of these images; see :class:`suffice.Probe`."""
        return Probe(
            self.net,
            self.pixels,
            self.targets,
            baseline=self.baseline(baseline),
            runner=self.runner,
            ids=self.ids,
            seed=self.seed,
            **options,
        )

    def outputs(self, inputs: Tensor, output: Output = "logit") -> Tensor:
        """What the model puts out for the target, [K·B] float32, part of the graph where gradients are on.

        Args:
            inputs: Normalized, [K·B, 3, H, W]: K versions of all images, one after the other.
            output: The ``"logit"``, or the ``"score"`` of the classifier (softmax unless told otherwise).
        """
        logits = self.runner.logits_with_graph(inputs).float()
        scores = logits if output == "logit" else self.net.scores(logits)
        return scores.gather(1, self.targets.repeat(len(inputs) // len(self))[:, None])[:, 0]

    def gradients(self, inputs: Tensor, output: Output = "logit") -> Tensor:
        """Gradients [K·B, 3, H, W] of :meth:`outputs` with respect to the inputs."""
        with torch.enable_grad():
            leaf = inputs.detach().requires_grad_()
            outputs = self.outputs(leaf, output)
            require_gradient(outputs, self.net)
            return torch.autograd.grad(outputs.sum(), leaf)[0]

    def activations(self, layers: Sequence[str]) -> dict[str, Tensor]:
        """What layers of the classifier's own module put out for the images, by name of the layer."""
        self.runner.counters.count(len(self))
        with record(self.net.module, activations=layers) as seen:
            self.net.logits(self.inputs)
        return dict(seen.activations)

    def sum_over(self, count: int, work: Callable[[range], Tensor]) -> Tensor:
        """Sum of something over many versions of every image, [B, ...], as many at once as fit.

        Args:
            count: How many versions.
            work: From K versions to values [K·B, ...], all images of a version after each other.
        """

        def some(rows: slice) -> Tensor:
            versions = range(rows.start, rows.stop)
            return work(versions).unflatten(0, (len(versions), len(self))).sum(dim=0)

        return reduce(torch.add, self.runner.run(count, some, cost=len(self)))

    def mean_over(self, count: int, work: Callable[[range], Tensor]) -> Tensor:
        """Mean of something over many versions of every image; see :meth:`sum_over`."""
        return self.sum_over(count, work) / count


def require_gradient(outputs: Tensor, net: Classifier) -> None:
    """Raise an error where what a model puts out does not depend on its inputs in a way that can be differentiated."""
    if not outputs.requires_grad:
        raise OptionError(
            f"The scores of {net.name} have no gradient with respect to the pixels; use a method that needs none."
        )
