"""Counting sub-explanations: four readings of one lattice.

Below each MSE lies the lattice of its subsets. Starting from the MSE, a set whose ratio is at or above ``expand_at`` is
expanded: each of its cells is deleted in turn. What is reached that way is counted at each threshold, in the four
readings that the published descriptions allow:

* ``distinct``: each reached set once per image, however many MSEs it lies under;
* ``per-mse``: each reached set once for each MSE under which it is reached;
* ``tree``: each path of deletions once, the nodes of a tree in which equal sets are not merged;
* ``tree3``: as ``tree``, but only the first three cells of a set, row-major, are ever deleted, as in the drawings of
  structured attention graphs.

MSEs themselves, and the empty set, are not counted. Paths are counted by dynamic programming over the lattice, in whole
numbers of any size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.perturb.memory import Memory, distinct
from suffice.perturb.regions import Grid
from suffice.perturb.rows import rank_in_group, unique

Counting = Literal["distinct", "per-mse", "tree", "tree3"]
COUNTINGS: tuple[Counting, ...] = ("distinct", "per-mse", "tree", "tree3")
CHILDREN_OF_TREE3 = 3

LIMB_BITS = 30  # whole numbers beyond 64 bits are kept in limbs of this many bits, so that sums of limbs fit int64


@dataclass(frozen=True)
class Counts:
    """Sub-explanations of one image.

    Attributes:
        thresholds: The thresholds, descending.
        counts: For each reading, one count a threshold.
        depth_ratio_sums: Sum of the ratios of the sets reached after 0, 1, 2, … deletions, over all MSEs.
        depth_counts: How many sets these were.
    """

    thresholds: tuple[float, ...]
    counts: dict[Counting, tuple[int, ...]]
    depth_ratio_sums: tuple[float, ...]
    depth_counts: tuple[int, ...]

    def of(self, counting: Counting) -> dict[float, int]:
        """Threshold → count in one reading."""
        if counting not in self.counts:
            raise OptionError(f"counting={counting!r}; it can be {', '.join(COUNTINGS)}.")
        return dict(zip(self.thresholds, self.counts[counting], strict=True))

    @property
    def depth_profile(self) -> list[float]:
        """Mean ratio after 0, 1, 2, … deletions."""
        return [s / n for s, n in zip(self.depth_ratio_sums, self.depth_counts, strict=True)]


def count_subexplanations(
    grid: Grid,
    mse_images: Tensor,
    mses: Tensor,
    images: Tensor,
    regions: Tensor,
    ratios: Tensor,
    *,
    thresholds: Sequence[float] = (0.9, 0.8, 0.7, 0.6, 0.5),
    expand_at: float = 0.5,
    count: int | None = None,
) -> list[Counts]:
    """Count the sub-explanations of several images at once.

    Args:
        grid: The grid.
        mse_images: Image of each MSE, numbered from 0, [R] int64.
        mses: The MSEs, [R] or [R, words] int64.
        images: Image of each evaluated region, [M] int64.
        regions: The evaluated regions, MSEs included, [M] or [M, words] int64; a region that is reached but was not
            evaluated (its budget was spent) is not counted, nor anything reached only through it.
        ratios: Their ratios, [M] float32.
        thresholds: Thresholds to count at.
        expand_at: Sets with at least this ratio are expanded.
        count: Number of images; default: as many as have MSEs.

    Returns:
        Counts of each image.
    """
    device = mses.device
    total = count if count is not None else (int(mse_images.max()) + 1 if len(mse_images) else 1)
    known = Memory(limit=1 << 62)
    keys, place = distinct(images, grid.as_words(regions))
    values = torch.empty(len(keys.hash), device=device)
    values[place] = ratios.to(device)
    known.store(keys, values)

    largest = int(grid.count(mses).max()) if len(mses) else 0
    limbs = max(1, -(-int(math.lgamma(largest + 1) / math.log(2) + 3) // LIMB_BITS))  # e·n! nodes at the most
    levels = torch.tensor(sorted(thresholds, reverse=True), device=device)
    tallies = {name: torch.zeros(total, len(levels), limbs, dtype=torch.long, device=device) for name in COUNTINGS}
    depth_sums = torch.zeros(total, largest + 1, dtype=torch.float64, device=device)
    depth_counts = torch.zeros(total, largest + 1, dtype=torch.long, device=device)

    root = torch.arange(len(mses), device=device)
    region = mses
    paths = _one(len(mses), limbs, device)
    paths3 = paths.clone()
    reached = []  # (image, region, ratio) of everything counted, for the reading that merges MSEs
    for depth in range(largest + 1):
        image = mse_images[root]
        ratio, evaluated = _ratios(known, grid, image, region)
        root, region, paths, paths3 = root[evaluated], region[evaluated], paths[evaluated], paths3[evaluated]
        image, ratio = image[evaluated], ratio[evaluated]
        depth_sums[:, depth].scatter_add_(0, image, ratio.double())
        depth_counts[:, depth].scatter_add_(0, image, torch.ones_like(image))
        if depth:
            above = ratio[:, None] >= levels
            _tally(tallies["per-mse"], image, above, _one(len(image), limbs, device))
            _tally(tallies["tree"], image, above, paths)
            _tally(tallies["tree3"], image, above, paths3)
            reached.append((image, region, ratio))

        grows = (ratio >= expand_at).nonzero().flatten()
        parent, _, child = grid.without_each(region[grows])
        first_three = rank_in_group(parent) < CHILDREN_OF_TREE3
        filled = grid.count(child) > 0
        parent, child, first_three = grows[parent[filled]], child[filled], first_three[filled]
        if not len(parent):
            break
        rows, merged = unique(root[parent], child)
        root, region = root[parent][rows], child[rows]
        paths_next = torch.zeros(len(rows), limbs, dtype=torch.long, device=device)
        paths3_next = torch.zeros_like(paths_next)
        paths = _carry(paths_next.index_add_(0, merged, paths[parent]))
        paths3 = _carry(paths3_next.index_add_(0, merged, paths3[parent] * first_three[:, None]))

    if reached:
        image, region, ratio = (torch.cat(column) for column in zip(*reached, strict=True))
        rows, _ = unique(image, region)
        above = ratio[rows][:, None] >= levels
        _tally(tallies["distinct"], image[rows], above, _one(len(rows), limbs, device))

    names = tuple(round(t, 6) for t in sorted(thresholds, reverse=True))
    exact = {name: _integers(tally) for name, tally in tallies.items()}
    sums, numbers = depth_sums.tolist(), depth_counts.tolist()
    depths = [sum(n > 0 for n in row) for row in numbers]
    return [
        Counts(names, {n: tuple(exact[n][i]) for n in COUNTINGS}, tuple(sums[i][:d]), tuple(numbers[i][:d]))
        for i, d in enumerate(depths)
    ]


def _ratios(known: Memory, grid: Grid, image: Tensor, region: Tensor) -> tuple[Tensor, Tensor]:
    """The ratio of each region [K] and whether it was evaluated [K]."""
    keys, place = distinct(image, grid.as_words(region))
    found, values = known.look_up(keys)
    return values[place], found[place]


def _one(count: int, limbs: int, device: torch.device) -> Tensor:
    numbers = torch.zeros(count, limbs, dtype=torch.long, device=device)
    numbers[:, 0] = 1
    return numbers


def _carry(numbers: Tensor) -> Tensor:
    """Bring limbs [K, limbs] back under 2**LIMB_BITS."""
    for limb in range(numbers.shape[1] - 1):
        numbers[:, limb + 1] += numbers[:, limb] >> LIMB_BITS
        numbers[:, limb] &= (1 << LIMB_BITS) - 1
    return numbers


def _tally(tally: Tensor, image: Tensor, above: Tensor, numbers: Tensor) -> None:
    """Add numbers [K, limbs] to their images, at each threshold that they reach [K, thresholds]."""
    for level in range(above.shape[1]):
        rows = above[:, level].nonzero().flatten()
        tally[:, level].index_add_(0, image[rows], numbers[rows])


def _integers(tally: Tensor) -> list[list[int]]:
    """Tallies [images, thresholds, limbs] as whole numbers of any size."""
    return [[sum(limb << (LIMB_BITS * i) for i, limb in enumerate(level)) for level in row] for row in tally.tolist()]
