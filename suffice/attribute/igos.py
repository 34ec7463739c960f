"""I-GOS: the smallest, smoothest deletion that makes the class fade, optimised by integrated gradients.

Reference: Qi, Khorram, Fuxin, "Visualizing Deep Networks by Optimizing with Integrated Gradients", AAAI 2020. A mask m
(1 = keep, 0 = delete) of low resolution, enlarged to M, minimises

    L(m) = l1 · mean|1 - m| + l2 · TV(m) + f(x·M + b·(1 - M)),

where f is the score of the target, x the image, b its baseline, and TV the mean squared difference of vertical plus
that of horizontal neighbours. Each step goes against the gradient of the first two terms plus the integrated gradient
of the third: the gradient of (1/n) Σ f(x·(k/n)M + b·(1 - (k/n)M) + noise) over k = 1 … n. Its length comes from a line
search on L itself, without noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.attribute.deletion import Deletion
from suffice.attribute.noise import ImageNoise
from suffice.errors import OptionError
from suffice.perturb import Forwarder, Grid, make_baseline
from suffice.perturb.baselines import Baseline
from suffice.vision import Classifier, open_images
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.classifier import Targets
from suffice.vision.identity import image_seed

# The line search: each step is a fifth of the one before, and must pay by Armijo's rule until it is this small.
SHRINK = 0.2
ARMIJO = 1e-4
SMALL_STEP = 1e-5
# Scores are float32: smaller gains are rounding, which depends on the batch, and must not decide which step is taken.
ROUNDING = 1e-6
# Steps of the line search that share a forward; more would waste forwards where the first step is good.
TRIALS_AT_ONCE = 4
# Forwards with gradients keep their activations, so fewer fit than without.
AUTO_BATCH = {"cuda": 128, "cpu": 16}


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
    """Where deleting pixels makes the target fade, by optimising a mask with integrated gradients.

    All images are optimised at once and none depends on another.

    Args:
        net: The classifier, which must be differentiable. Its ``score`` is what fades.
        images: Anything that :func:`suffice.open_images` takes.
        targets: None (the predicted class), one class for all, or one per image.
        size: Height and width of the mask.
        baseline: What deleted pixels show; see :func:`suffice.perturb.make_baseline`.
        l1: Weight of the mean deletion; more makes it smaller.
        l2: Weight of the total variation; more makes it smoother.
        steps: Steps of the integrated gradient.
        iterations: Most steps of the optimisation.
        noise: Standard deviation of the noise in the integrated gradient, in normalised units; one for all channels or
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
    deviations = _deviations(noise)
    _check(net, size=size, steps=steps, iterations=iterations, step_size=step_size)
    # Also under inference_mode, whose tensors could not be part of a gradient.
    with torch.inference_mode(False), torch.no_grad(), preserved(net.module, frozen=True):
        given = images.detach() if isinstance(images, Tensor) else open_images(images)
        pixels = net.prepare(given)
        ids = open_images(given).ids if ids is None else ids
        if len(ids) != len(pixels):
            raise OptionError(f"{len(ids)} ids were given for {len(pixels)} images; give one per image.")
        hidden = make_baseline(baseline, pixels, mean=net.mean, ids=ids, seed=seed)
        auto = AUTO_BATCH.get(net.device.type, 64)
        forwarder = Forwarder(net, batch_size=auto if batch_size == "auto" else batch_size, channels_last=False)
        deletion = Deletion(net, pixels, hidden, targets, forwarder, l1=l1, l2=l2)
        seeds = [image_seed(seed, i) for i in ids]
        chance = ImageNoise(deviations, seeds, net.size, net.device) if any(deviations) else None
        maps = _optimise(deletion, chance, size, steps, iterations, step_size).float()
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


def _optimise(
    deletion: Deletion, chance: ImageNoise | None, size: int, steps: int, iterations: int, step_size: float
) -> Tensor:
    """The best deletions [N, size, size] of all images."""
    shown = deletion.shown
    deleted = torch.zeros(len(shown), size, size, dtype=shown.dtype, device=shown.device)
    active = torch.arange(len(deleted), device=deleted.device)
    losses = deletion.losses(active, deleted)
    for iteration in range(iterations):

        def noise(images: Tensor, step: Tensor, first: int = iteration * steps) -> Tensor:
            return chance(images, first + step) if chance else torch.zeros((), device=images.device)

        gradients = deletion.gradients(active, deleted[active], steps, noise)
        deleted[active], losses[active], paid = _line_search(
            deletion, active, deleted[active], losses[active], gradients, step_size
        )
        if chance is None:
            # Without noise, the next gradient would be the same, and would not pay either.
            active = active[paid]
            if not len(active):
                break
    return deleted


def _line_search(
    deletion: Deletion, index: Tensor, deleted: Tensor, losses: Tensor, gradients: Tensor, step_size: float
) -> tuple[Tensor, Tensor, Tensor]:
    """For each image the first of ever smaller steps that pays.

    Where none does, the last one, too small to be tried, is taken anyway: it changes nothing that a model could see,
    but cells keep the order in which the gradient puts them.

    Several steps are tried in one forward. The first that pays is taken, whatever the others do, so the result is that
    of trying one after the other.

    Args:
        deletion: What is minimised.
        index: Which image each deletion belongs to [K].
        deleted: [K, s, s].
        losses: Of these deletions [K].
        gradients: [K, s, s].
        step_size: First step to try.

    Returns:
        Deletions [K, s, s] after the step, their losses [K], and whether a step paid [K].
    """
    ladder = []
    while step_size >= SMALL_STEP:
        ladder.append(step_size)
        step_size *= SHRINK
    slopes = gradients.square().sum(dim=(1, 2))
    after, losses_after = (deleted - step_size * gradients).clamp(0, 1), losses.clone()
    waiting = torch.arange(len(index), device=index.device)
    for trials in torch.tensor(ladder, dtype=deleted.dtype, device=deleted.device).split(TRIALS_AT_ONCE):
        moves = trials[:, None, None] * gradients[waiting, None]
        tried = (deleted[waiting, None] - moves).clamp(0, 1)
        found = deletion.losses(index[waiting].repeat_interleave(len(trials)), tried.flatten(0, 1))
        found = found.unflatten(0, (len(waiting), len(trials)))
        wanted = (ARMIJO * trials * slopes[waiting, None]).clamp(min=ROUNDING)
        pays = found <= losses[waiting, None] - wanted  # never where a loss is NaN
        settled, first = pays.any(dim=1), pays.int().argmax(dim=1)
        rows, first = waiting[settled], first[settled]
        after[rows] = tried[settled, first]
        losses_after[rows] = found[settled, first]
        waiting = waiting[~settled]
        if not len(waiting):
            break
    paid = torch.ones(len(index), dtype=torch.bool, device=index.device)
    paid[waiting] = False
    return after, losses_after, paid


def _deviations(noise: float | Sequence[float]) -> list[float]:
    deviations = [float(d) for d in noise] if isinstance(noise, Sequence) else [float(noise)] * 3
    if len(deviations) != 3 or not all(0 <= d < float("inf") for d in deviations):
        raise OptionError(f"noise={noise!r}; it can be one standard deviation, or three for red, green and blue, ≥ 0.")
    return deviations


def _check(net: Classifier, *, size: int, steps: int, iterations: int, step_size: float) -> None:
    if not 1 <= size <= min(net.size):
        raise OptionError(f"size={size}; it can be 1 to {min(net.size)}, the input size of {net.name}.")
    if steps < 1 or iterations < 0:
        raise OptionError(f"steps={steps} and iterations={iterations}; give at least one step, and no negative number.")
    if not SMALL_STEP <= step_size < float("inf"):
        raise OptionError(f"step_size={step_size}; it can be any finite number from {SMALL_STEP:g} on.")
