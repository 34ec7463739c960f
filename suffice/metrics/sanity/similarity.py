"""How similar two maps of the same image are: by the order of their values, and by their structure."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import conv2d

WINDOW, SIGMA = 11, 1.5
STABLE = (0.01**2, 0.03**2)  # Wang et al. 2004, for values in [0, 1]


def spearman(first: Tensor, second: Tensor) -> Tensor:
    """Spearman's rank correlation of maps [N, h, w] of the same images, [N] float64 in [-1, 1].

    Equal values share their mean rank. A map that is the same everywhere has no order: two such maps count as equal, 1;
    one of them beside an ordinary map has nothing in common with it, 0.

    Example:
        >>> ramp = torch.arange(6.0).view(1, 2, 3)
        >>> torch.cat([spearman(ramp, ramp.exp()), spearman(ramp, -ramp)]).round(decimals=6)
        tensor([ 1., -1.], dtype=torch.float64)
    """
    a, b = (_centered_ranks(maps) for maps in (first, second))
    product = (a * b).sum(dim=1)
    size = (a.square().sum(dim=1) * b.square().sum(dim=1)).sqrt()  # of a map with itself no rounding is left
    both_constant = (constant(first) & constant(second)).double()
    return torch.where(size > 0, product / size.clamp(min=0.1), both_constant).clamp(-1, 1)  # an order has at least 0.5


def absolute_spearman(first: Tensor, second: Tensor) -> Tensor:
    """Spearman's rank correlation of magnitudes: a map whose signs are turned round is still the same map."""
    return spearman(first.abs(), second.abs())


def ssim(first: Tensor, second: Tensor) -> Tensor:
    """Structural similarity of maps [N, h, w] of the same images, [N] float64 in [-1, 1].

    Each is brought to [0, 1] by its smallest and largest value; one that is the same everywhere is 0 everywhere. Means,
    variances and the covariance are taken under a Gaussian window of 11×11 (σ = 1.5) that lies within the map; for
    smaller maps, of the largest odd side that fits, with σ in proportion. The mean over its positions is returned.

    Example:
        >>> map = torch.rand(2, 14, 14)
        >>> ssim(map, 3 * map + 1).round(decimals=6)
        tensor([1., 1.], dtype=torch.float64)
    """
    a, b = (_unit(maps)[:, None] for maps in (first, second))
    shorter = min(first.shape[1:])
    window = max(1, min(WINDOW, shorter - 1 + shorter % 2))
    steps = torch.arange(window, dtype=torch.float64, device=a.device) - (window - 1) / 2
    line = (-(steps**2) / (2 * (SIGMA * window / WINDOW) ** 2)).exp()
    line = line / line.sum()

    def blurred(values: Tensor) -> Tensor:
        return conv2d(conv2d(values, line.view(1, 1, -1, 1)), line.view(1, 1, 1, -1))

    mean_a, mean_b = blurred(a), blurred(b)
    variance_a, variance_b = blurred(a * a) - mean_a**2, blurred(b * b) - mean_b**2
    covariance = blurred(a * b) - mean_a * mean_b
    light = (2 * mean_a * mean_b + STABLE[0]) / (mean_a**2 + mean_b**2 + STABLE[0])
    rest = (2 * covariance + STABLE[1]) / (variance_a + variance_b + STABLE[1])
    return (light * rest).flatten(1).mean(dim=1)


def constant(maps: Tensor) -> Tensor:
    """Whether each map [N, h, w] is the same everywhere, bool [N]."""
    return maps.flatten(1).amax(dim=1) == maps.flatten(1).amin(dim=1)


def _centered_ranks(maps: Tensor) -> Tensor:
    """Ranks of the values of each map less their mean, [N, h·w] float64."""
    values, order = maps.flatten(1).sort(dim=1)
    places = torch.arange(values.shape[1], dtype=torch.float64, device=maps.device).expand_as(values)
    # Equal values lie side by side; each run of them gets its mean place.
    run = torch.zeros_like(order)
    run[:, 1:] = (values[:, 1:] != values[:, :-1]).long().cumsum(dim=1)
    total = torch.zeros_like(places).scatter_add(1, run, places)
    count = torch.zeros_like(places).scatter_add(1, run, torch.ones_like(places))
    shared = (total / count.clamp(min=1)).gather(1, run)
    return torch.empty_like(shared).scatter(1, order, shared) - (values.shape[1] - 1) / 2


def _unit(maps: Tensor) -> Tensor:
    exact = maps.double()
    low, high = (end(exact, dim=(1, 2), keepdim=True) for end in (torch.amin, torch.amax))
    return torch.where(high > low, (exact - low) / (high - low).clamp(min=torch.finfo(torch.float64).tiny), 0.0)


SIMILARITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "spearman": spearman,
    "absolute": absolute_spearman,
    "ssim": ssim,
}
