"""Shapley values of cells or superpixels: what each adds to the score, on average over all that may be there before."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from math import comb

import torch
from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.segments import Segments, segment_values
from suffice.errors import OptionError
from suffice.options import Count
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output
from suffice.vision.noise import uniform_noise


@method(
    "kernel-shap",
    aliases=("kernelshap",),
    reference="Lundberg, Lee, A Unified Approach to Interpreting Model Predictions, NeurIPS 2017",
    questions=lambda net, options: min(options["samples"], 2 ** options["grid"] ** 2 - 2) + 2,
)
def kernel_shap(
    batch: Batch,
    *,
    samples: Count = 2048,
    segments: Segments = "grid",
    grid: Count = 7,
    baseline: Baseline = "gray",
    output: Output = "score",
) -> Tensor:
    """Shapley values of the cells of a grid, or of superpixels, by a weighted linear fit.

    The values of an image add up to the model's output on it less that on the baseline, whatever the number of samples.
    With all 2ⁿ - 2 coalitions of n segments they are the Shapley values themselves, up to rounding. With fewer, the
    smallest and the largest coalitions, which weigh most, are asked about one and all, and others drawn at random, each
    with its complement. Up to ``samples`` forwards, and two for the whole image and the baseline.

    Args:
        batch: The images; all see the same coalitions, which depend on the seed alone.
        samples: Most coalitions to ask about, beside none and all; at least two for every segment.
        segments: ``"grid"`` for square cells, ``"superpixels"`` for regions of similar color, by SLIC of scikit-image.
        grid: Cells per side. There are about as many superpixels as cells.
        baseline: What shows in hidden segments; ``"gray"`` is zero after normalization.
        output: What is shared out: the ``"score"`` or the ``"logit"``.

    Returns:
        [B, grid, grid] for cells; for superpixels [B, H, W], the value of its segment at every pixel.
    """
    make = partial(ShapleyFit, samples=samples, seed=batch.seed)
    return segment_values(batch, make, segments=segments, grid=grid, baseline=baseline, output=output)


class ShapleyFit:
    """Coalitions of so many segments with the weights of Shapley's kernel, and the fit to what is said of them.

    Attributes:
        coalitions: Bool [S, segments]; the first is empty.
        weights: Of the others, float64 [S - 1].
    """

    def __init__(self, segments: int, *, samples: int, seed: int) -> None:
        if samples < 2 * segments and segments > 1:
            raise OptionError(
                f"samples={samples} for {segments} segments; kernel-shap asks about each alone and all but each, so "
                f"write samples={2 * segments} or more, or a coarser grid."
            )
        coalitions, self.weights = kernel_coalitions(segments, samples, seed)
        self.coalitions = torch.cat([torch.zeros(1, segments, dtype=torch.bool), coalitions])

    def values(self, answers: Tensor, whole: Tensor) -> Tensor:
        """The weighted least squares whose values add up; see :class:`suffice.attribution.segments.Fit`."""
        nothing, said = answers[:, :1], answers[:, 1:]
        total = whole[:, None] - nothing
        shown = self.coalitions[1:].double()
        # That values add up to the total is put in for the last of them, which leaves one unknown less.
        relative = shown[:, :-1] - shown[:, -1:]
        left = said - nothing - total * shown[:, -1]
        weighted = relative.T * self.weights
        found = torch.linalg.solve(weighted @ relative, weighted @ left.T).T
        return torch.cat([found, total - found.sum(dim=1, keepdim=True)], dim=1)


def kernel_coalitions(segments: int, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Coalitions, neither empty nor full, bool [S, segments], and their weights in the fit, float64 [S].

    A size and its complement go together. All coalitions of a size are listed while at least as many would be drawn of
    it by its weight; for sizes beyond these as many pairs are drawn as are left, and share the weight of these sizes.
    """
    sizes = range(1, segments // 2 + 1)
    number = {size: comb(segments, size) * (1 if 2 * size == segments else 2) for size in sizes}
    # Of all coalitions of a size together. One alone weighs the less the nearer its size is to the middle.
    weight = {size: number[size] / comb(segments, size) * (segments - 1) / (size * (segments - size)) for size in sizes}
    listed: list[Tensor] = [torch.zeros(0, segments, dtype=torch.bool)]
    weights: list[Tensor] = [torch.zeros(0, dtype=torch.float64)]
    drawn = list(sizes)
    while drawn:
        size, rest = drawn[0], sum(weight[s] for s in drawn)
        likely = samples * weight[size] / rest >= number[size] * (1 - 1e-9) or size == 1
        if not (likely and samples >= number[size]):
            break
        listed.append(_all_of(segments, size))
        weights.append(torch.full((number[size],), weight[size] / number[size], dtype=torch.float64))
        samples -= number[size]
        drawn = drawn[1:]
    if drawn and samples >= 2:
        chance = torch.tensor([weight[size] for size in drawn], dtype=torch.float64)
        small, times = _random(segments, torch.tensor(drawn), chance, samples // 2, seed)
        listed += [small, ~small]
        weights += [chance.sum() * times / times.sum() / 2] * 2
    return torch.cat(listed), torch.cat(weights)


def _all_of(segments: int, size: int) -> Tensor:
    """All coalitions of a size and their complements, bool [K, segments]."""
    members = torch.tensor(list(combinations(range(segments), size)))
    small = torch.zeros(len(members), segments, dtype=torch.bool).scatter_(1, members, True)
    return small if 2 * size == segments else torch.cat([small, ~small])


def _random(segments: int, sizes: Tensor, chance: Tensor, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Different coalitions of sizes that come by chance, bool [count, segments], and how often each was drawn.

    They are drawn until there are so many, or until four times as many were drawn.
    """
    noise = uniform_noise(torch.tensor([seed]), torch.zeros(1, dtype=torch.long), (4 * count, segments + 1))[0]
    ends = (chance / chance.sum()).cumsum(0)
    size = sizes[torch.searchsorted(ends, noise[:, 0].double(), right=True).clamp(max=len(sizes) - 1)]
    rank = noise[:, 1:].argsort(dim=1, stable=True).argsort(dim=1)
    found, which = (rank < size[:, None]).unique(dim=0, return_inverse=True)
    draw = torch.arange(len(noise))
    first = torch.full((len(found),), len(noise)).scatter_reduce(0, which, draw, "amin")
    kept = first.argsort()
    enough = int(first[kept[count]]) if len(kept) > count else len(noise)
    return found[kept[:count]], torch.bincount(which[:enough], minlength=len(found))[kept[:count]]
