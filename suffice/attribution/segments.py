"""Images cut into segments, and what a model says when it sees only some of them.

Shared by methods that fit a simple model to such answers. A coalition is a set of segments that are shown; the model of
an image is fitted on the CPU in float64, which is little work beside asking.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from suffice.errors import MissingExtra
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output
from suffice.perturb.probe import Probe

Segments = Literal["grid", "superpixels"]


class Fit(Protocol):
    """A simple model of images that all have the same number of segments."""

    coalitions: Tensor  # that the classifier is asked about, bool [S, segments]

    def values(self, answers: Tensor, whole: Tensor) -> Tensor:
        """Values of segments [B, segments] from answers [B, S] and those to whole images [B], all float64."""


def segment_values(
    batch: Batch, make: Callable[[int], Fit], *, segments: Segments, grid: int, baseline: Baseline, output: Output
) -> Tensor:
    """Values of the segments of each image: [B, grid, grid] for cells, [B, H, W] for superpixels.

    Args:
        batch: The images.
        make: From a number of segments to what is asked about them; all images with so many are asked the same.
        segments: ``"grid"`` for square cells, ``"superpixels"`` for regions of similar color (SLIC).
        grid: Cells per side. There are about as many superpixels as cells.
        baseline: What shows in hidden segments.
        output: What is asked of the model.
    """
    probe = batch.probe(baseline, output=output, grid=grid)
    whole = probe.whole.cpu().double()
    if segments == "grid":
        images, fit = torch.arange(len(batch)), make(grid**2)
        regions = probe.grid.from_bits(fit.coalitions).repeat(len(batch), *[1] * (probe.grid.words > 1))
        answers = probe.ask(images.repeat_interleave(len(fit.coalitions)), regions).cpu()
        found = fit.values(answers.double().view(len(batch), -1), whole)
        return found.view(-1, grid, grid).float().to(batch.pixels.device)  # not all devices have float64
    labels = superpixels(batch.pixels, grid**2)
    count = labels.flatten(1).amax(dim=1) + 1
    maps = torch.zeros(labels.shape, dtype=torch.float64)
    for number in count.unique().tolist():
        images = (count == number).nonzero().flatten()
        found = _of_superpixels(probe, images, labels[images], make(number), whole[images])
        maps[images] = found.gather(1, labels[images].flatten(1)).view(-1, *labels.shape[1:])
    return maps.float().to(batch.pixels.device)


def superpixels(pixels: Tensor, count: int) -> Tensor:
    """Cut images [B, 3, H, W] in [0, 1] into about so many regions of similar color; their numbers, int64 [B, H, W].

    By SLIC of scikit-image, with its own compactness. They are numbered from 0 without gaps.
    """
    try:
        from skimage.segmentation import slic
    except ImportError as error:
        raise MissingExtra(
            "Superpixels need scikit-image: pip install 'suffice[superpixels]'; or write segments='grid'."
        ) from error
    images = pixels.permute(0, 2, 3, 1).double().cpu().numpy()
    made = [np.unique(slic(image, n_segments=count, start_label=0), return_inverse=True)[1] for image in images]
    return torch.from_numpy(np.stack(made)).long().view(len(pixels), *pixels.shape[2:])


def _of_superpixels(probe: Probe, images: Tensor, labels: Tensor, fit: Fit, whole: Tensor) -> Tensor:
    asked = CoalitionMasks(fit.coalitions, labels)
    answers = probe.ask(images.repeat_interleave(len(fit.coalitions)), asked)
    return fit.values(answers.cpu().double().view(len(images), -1), whole)


class CoalitionMasks:
    """Masks that show coalitions [S, segments] of the segments of images, labels [B, H, W]; all of one image first."""

    def __init__(self, coalitions: Tensor, labels: Tensor) -> None:
        self.coalitions, self.labels = coalitions, labels

    def __len__(self) -> int:
        return len(self.labels) * len(self.coalitions)

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """Some of the masks, bool [B, H, W]; see :class:`suffice.perturb.Masks`."""
        question = torch.arange(rows.start, min(rows.stop, len(self)))
        shown = self.coalitions[question % len(self.coalitions)].to(device)
        where = self.labels[question // len(self.coalitions)].to(device)
        return shown.gather(1, where.flatten(1)).view(-1, *size)
