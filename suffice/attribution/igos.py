"""I-GOS as a function of all images at once, and the short run by which structured attention graphs rank cells.

The method itself is :mod:`suffice.attribution.methods.i_gos`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.attribution.call import forwarder_for
from suffice.attribution.masking.batches import in_batches
from suffice.attribution.method import find_method
from suffice.attribution.methods.i_gos import i_gos as optimized
from suffice.attribution.task import Task
from suffice.errors import OptionError
from suffice.perturb import Grid
from suffice.perturb.baselines import Baseline
from suffice.vision import Classifier, open_images
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.classifier import Targets


def i_gos(
    net: Classifier,
    images: Any,
    targets: Targets = None,
    *,
    size: int = 28,
    baseline: Baseline = "blur",
    l1: float = 1.0,
    l2: float = 20.0,
    steps: int = 20,
    iterations: int = 15,
    noise: float | Sequence[float] = 0.2,
    step_size: float = 200.0,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    ids: Sequence[str] | None = None,
) -> Tensor:
    """Where deleting pixels makes the target fade, by optimizing a mask with integrated gradients.

    All images are optimized at once and none depends on another.

    Args:
        net: The classifier, which must be differentiable. Its ``score`` is what fades.
        images: Anything that :func:`suffice.open_images` takes.
        targets: None (the predicted class), one class for all, or one per image.
        size: Height and width of the mask.
        baseline: What deleted pixels show; see :func:`suffice.perturb.make_baseline`.
        l1: Weight of the mean deletion; more makes it smaller.
        l2: Weight of the total variation; more makes it smoother.
        steps: Steps of the integrated gradient.
        iterations: Most steps of the optimization.
        noise: Standard deviation of the noise in the integrated gradient, in normalized units; one for all channels or
            one for each of three.
        step_size: First step that the line search tries.
        seed: Seed of the noise and of random baselines.
        batch_size: Masked images per forward, which bounds memory; halved when memory runs out.
        ids: Identity of each image, on which its noise depends; by content where not given.

    Returns:
        Maps [N, size, size] in [0, 1], float32, high = important: how much of each cell is deleted.

    Raises:
        OptionError: An option has no sense, or the model gives no gradients.

    Example:
        >>> from suffice.testing import WeightedSum
        >>> oracle = WeightedSum({5: 1.0, 6: 1.0}, threshold=1.0, grid=4, link="smooth")  # looks at cells 5 and 6
        >>> maps = i_gos(oracle.classifier(32), oracle.image(32), size=4, baseline="black", l2=0.1, iterations=3)
        >>> sorted(maps[0].flatten().topk(2).indices.tolist())
        [5, 6]
    """
    # Also under inference_mode, whose tensors could not be part of a gradient.
    with torch.inference_mode(False), torch.no_grad(), preserved(net.module, frozen=True):
        given = images.detach() if isinstance(images, Tensor) else open_images(images)
        pixels = net.prepare(given)
        ids = open_images(given).ids if ids is None else ids
        if len(ids) != len(pixels):
            raise OptionError(f"{len(ids)} ids were given for {len(pixels)} images; give one per image.")
        forwarder = forwarder_for(find_method("i-gos"), net, batch_size)

        def whole(rows: slice) -> Tensor:
            return net.scores(net.logits(net.normalize(pixels[rows])))

        scores = torch.cat(list(in_batches(forwarder, len(pixels), whole)))
        task = Task(net, pixels, net.targets(targets, scores), ids, seed, forwarder)
        maps = optimized(
            task,
            size=size,
            baseline=baseline,
            l1=l1,
            l2=l2,
            steps=steps,
            iterations=iterations,
            noise=noise,
            step_size=step_size,
        ).float()
    return maps.to(images.device) if isinstance(images, Tensor) else maps


def seed_map(
    net: Classifier,
    images: Any,
    targets: Targets = None,
    grid: int | Grid = 7,
    *,
    baseline: Baseline = "blur",
    seed: int = 0,
    noise_defect: bool = False,
    batch_size: int | Literal["auto"] = "auto",
    ids: Sequence[str] | None = None,
) -> Tensor:
    """The short I-GOS by which structured attention graphs rank the cells of a grid before they search.

    Args:
        net: The classifier, which must be differentiable.
        images: Anything that :func:`suffice.open_images` takes.
        targets: None (the predicted class), one class for all, or one per image.
        grid: The grid, or its cells a side.
        baseline: What deleted pixels show.
        seed: Seed of the noise and of random baselines.
        noise_defect: Noise as in the published code: meant to be 0.2 on every channel, but 0.4 on red and none on
            green and blue.
        batch_size: Masked images per forward; halved when memory runs out.
        ids: Identity of each image, on which its noise depends; by content where not given.

    Returns:
        Maps [N, side, side] in [0, 1], float32, high = important.

    Example:
        >>> from suffice.testing import WeightedSum
        >>> oracle = WeightedSum({24: 1.0}, threshold=0.5, grid=7, link="smooth")
        >>> seed_map(oracle.classifier(56), oracle.image(56), baseline="black").argmax()
        tensor(24)
    """
    return i_gos(
        net,
        images,
        targets,
        size=grid.side if isinstance(grid, Grid) else grid,
        baseline=baseline,
        iterations=2,
        noise=(0.4, 0.0, 0.0) if noise_defect else 0.2,
        seed=seed,
        batch_size=batch_size,
        ids=ids,
    )
