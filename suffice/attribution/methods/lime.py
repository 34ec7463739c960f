"""A linear model of what a network says around an image, over cells or superpixels."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.segments import Segments, segment_values
from suffice.options import Amount, Count, Range
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output
from suffice.vision.noise import uniform_noise


@method(
    "lime",
    reference="Ribeiro, Singh, Guestrin, Why Should I Trust You?, KDD 2016",
    questions=lambda net, options: options["samples"],
)
def lime(
    batch: Batch,
    *,
    samples: Annotated[int, Range(2)] = 1000,
    segments: Segments = "grid",
    grid: Count = 7,
    baseline: Baseline = "gray",
    kernel_width: Annotated[float, Range(0, above=True)] = 0.25,
    alpha: Amount = 1.0,
    output: Output = "score",
) -> Tensor:
    """Weights of cells or superpixels in a linear model, fitted to images in which half of them are hidden.

    Every segment is shown or hidden by the toss of a coin. An image with n segments of which k are shown weighs
    exp(-d² / 2w²) in the fit, with w the ``kernel_width`` and d = 1 - √(k/n) its cosine distance to the whole image.
    The fit is a ridge regression with an intercept. All as in the authors' package, but for the segments and what
    hides them, and that coalitions depend on the seed alone. As many forwards as ``samples``.

    Args:
        batch: The images; all see the same coalitions.
        samples: Images asked about, the whole one among them.
        segments: ``"grid"`` for square cells, ``"superpixels"`` for regions of similar color, by SLIC of scikit-image.
        grid: Cells per side. There are about as many superpixels as cells.
        baseline: What shows in hidden segments; ``"gray"`` is zero after normalization.
        kernel_width: How far from the whole image samples still count.
        alpha: Penalty on the squares of the weights; 0 for none.
        output: What is fitted: the ``"score"`` or the ``"logit"``.

    Returns:
        [B, grid, grid] for cells; for superpixels [B, H, W], the weight of its segment at every pixel.
    """
    make = partial(RidgeFit, samples=samples, kernel_width=kernel_width, alpha=alpha, seed=batch.seed)
    return segment_values(batch, make, segments=segments, grid=grid, baseline=baseline, output=output)


class RidgeFit:
    """Random coalitions of so many segments, and the ridge regression of what is said of them and of the whole image.

    Attributes:
        coalitions: Bool [samples - 1, segments].
        shown: The same below the whole image, float64 [samples, segments].
        weights: Of all these in the fit, float64 [samples].
    """

    def __init__(self, segments: int, *, samples: int, kernel_width: float, alpha: float, seed: int) -> None:
        noise = uniform_noise(torch.tensor([seed]), torch.zeros(1, dtype=torch.long), (samples - 1, segments))[0]
        self.coalitions, self.alpha = noise < 0.5, alpha
        self.shown = torch.cat([torch.ones(1, segments), self.coalitions]).double()
        distance = 1 - (self.shown.sum(dim=1) / segments).sqrt()
        self.weights = torch.exp(-(distance**2) / (2 * kernel_width**2))

    def values(self, answers: Tensor, whole: Tensor) -> Tensor:
        """Weights of the segments; see :class:`suffice.attribution.segments.Fit`."""
        said = torch.cat([whole[:, None], answers], dim=1)
        share = self.weights / self.weights.sum()
        # What is centered needs no intercept.
        shown, said = self.shown - share @ self.shown, said - (said @ share)[:, None]
        weighted = shown.T * self.weights
        penalty = self.alpha * torch.eye(shown.shape[1], dtype=torch.float64)
        # By a pseudo-inverse: without penalty, segments that were always shown together cannot be told apart.
        return (torch.linalg.pinv(weighted @ shown + penalty, hermitian=True) @ (weighted @ said.T)).T
