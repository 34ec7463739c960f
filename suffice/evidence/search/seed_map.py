"""The seed map: a short run of I-GOS by which structured attention graphs rank cells before they search."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from suffice.attribution import explain
from suffice.evidence.settings import Settings
from suffice.perturb import Batch
from suffice.perturb.runner import Runner


def seed_map(runner: Runner, pixels: Tensor, targets: Tensor, settings: Settings, ids: Sequence[str]) -> Tensor:
    """Rank the cells of images [N, 3, H, W] for a class each, [N]; returns maps [N, side, side] in [0, 1].

    Of the settings, ``grid``, ``baseline``, ``seed`` and ``noise_defect`` are heeded. The defect is that of the
    published code: noise meant to be 0.2 (ImageNet's units) on every channel is 0.4 on red, none on green and blue.

    Example:
        >>> import torch
        >>> from suffice.testing import WeightedSum
        >>> oracle = WeightedSum({24: 1.0}, threshold=0.5, grid=7, link="smooth")
        >>> pixels, target = oracle.image(56)[None], torch.tensor([1])
        >>> seed_map(Runner(oracle.classifier(56)), pixels, target, Settings(baseline="black"), ["a"]).argmax()
        tensor(24)
    """
    batch = Batch(runner.net, pixels.to(runner.device), targets, ids, settings.seed, runner.variant("gradients"))
    noise = (0.4, 0.0, 0.0) if settings.noise_defect else 0.2
    return explain(batch, "i-gos", size=settings.grid, baseline=settings.baseline, iterations=2, noise=noise)
