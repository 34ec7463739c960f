"""Counting sub-explanations: four readings of one lattice.

Below each MSE lies the lattice of its subsets. Starting from the MSE, a set whose ratio is at or above ``expand_at`` is
expanded: each of its cells is deleted in turn. What is reached that way is counted at each threshold, in the four
readings that the published descriptions allow:

* ``distinct``: each reached set once per image, however many MSEs it lies under;
* ``per-mse``: each reached set once for each MSE under which it is reached;
* ``tree``: each path of deletions once, the nodes of a tree in which equal sets are not merged;
* ``tree3``: as ``tree``, but only the first three cells of a set, row-major, are ever deleted, as in the drawings of
  structured attention graphs.

MSEs themselves, and the empty set, are not counted. Paths are counted by dynamic programming over the lattice, in int64
while the largest possible count fits, beyond in Python's whole numbers of any size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.evidence.thresholds import least
from suffice.perturb.memory import Memory, distinct
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows, rank_in_group, unique

if TYPE_CHECKING:
    from suffice.evidence.result import Evidence

Counting = Literal["distinct", "per-mse", "tree", "tree3"]
COUNTINGS: tuple[Counting, ...] = get_args(Counting)
THRESHOLDS = (0.9, 0.8, 0.7, 0.6, 0.5)
CHILDREN_OF_TREE3 = 3


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


def count_subexplanations(
    grid: Grid,
    mse_images: Tensor,
    mses: Tensor,
    images: Tensor,
    regions: Tensor,
    ratios: Tensor,
    *,
    thresholds: Sequence[float] = THRESHOLDS,
    expand_at: float = 0.5,
    count: int | None = None,
) -> list[Counts]:
    """Count the sub-explanations of each of several images at once.

    Args:
        grid: The grid. All arrays are on the CPU.
        mse_images: Image of each MSE, numbered from 0, [R] int64.
        mses: The MSEs, [R] or [R, words] int64.
        images: Image of each evaluated region, [M] int64.
        regions: The evaluated regions, MSEs included, [M] or [M, words] int64; a region that is reached but was not
            evaluated (its budget was spent) is not counted, nor anything reached only through it.
        ratios: Their ratios, [M] float32.
        thresholds: Thresholds to count at.
        expand_at: Sets with at least this ratio are expanded.
        count: Number of images; default: as many as have MSEs.
    """
    total = count if count is not None else (int(mse_images.max()) + 1 if len(mse_images) else 1)
    known = Memory(limit=1 << 62)
    keys, number_of = distinct(images, grid.as_words(regions))
    values = torch.empty(len(keys.hash), 1)
    values[number_of, 0] = ratios.float()
    known.store(keys, values)
    largest = int(grid.count(mses).max()) if len(mses) else 0
    # Below n cells lie fewer than e·n! paths.
    fits = math.lgamma(largest + 1) + 1 + math.log(max(len(mses), 1)) < math.log(2**63)
    number = np.int64 if fits else object
    descending = sorted(thresholds, reverse=True)
    limits = np.array([least(t) for t in descending], dtype=np.float32)
    tallies = {name: np.zeros((total, len(limits) + 1), dtype=number) for name in COUNTINGS}
    depth_sums, depth_counts = np.zeros((total, largest + 1)), np.zeros((total, largest + 1), dtype=np.int64)

    def tally(name: Counting, image: Tensor, ratio: Tensor, paths: np.ndarray | int = 1) -> None:
        reached = (ratio.numpy()[:, None] >= limits).sum(axis=1)  # the number of thresholds
        np.add.at(tallies[name], (image.numpy(), reached), paths)

    root, region = torch.arange(len(mses)), mses
    paths = paths3 = np.ones(len(mses), dtype=number)
    parts = []  # image, region and ratio of everything counted, for the reading that merges MSEs
    for depth in range(largest + 1):
        image = mse_images[root]
        keys, number_of = distinct(image, grid.as_words(region))
        found, values = known.look_up(keys)
        evaluated = found[number_of]
        image, ratio = image[evaluated], values[number_of, 0][evaluated]
        root, region = root[evaluated], region[evaluated]
        paths, paths3 = paths[evaluated.numpy()], paths3[evaluated.numpy()]
        depth_sums[:, depth] = np.bincount(image.numpy(), ratio.double().numpy(), minlength=total)
        depth_counts[:, depth] = np.bincount(image.numpy(), minlength=total)
        if depth:
            tally("per-mse", image, ratio)
            tally("tree", image, ratio, paths)
            tally("tree3", image, ratio, paths3)
            parts.append(Rows(image=image, region=region, ratio=ratio))

        grows = (ratio >= least(expand_at)).nonzero().flatten()
        parent, _, child = grid.without_each(region[grows])
        first_three = rank_in_group(parent) < CHILDREN_OF_TREE3
        filled = grid.count(child) > 0
        parent, child, first_three = grows[parent[filled]], child[filled], first_three[filled]
        if not len(parent):
            break
        rows, merged = unique(root[parent], child)
        root, region = root[parent][rows], child[rows]
        paths = _summed(paths[parent.numpy()], merged, len(rows))
        paths3 = _summed(paths3[parent.numpy()] * first_three.numpy(), merged, len(rows))

    if parts:
        reached = Rows.cat(parts)
        reached = reached[unique(reached.image, reached.region)[0]]
        tally("distinct", reached.image, reached.ratio)

    names = tuple(round(t, 6) for t in descending)
    # What reaches a threshold reaches those below it too.
    exact = {name: counts[:, ::-1].cumsum(axis=1)[:, :-1].tolist() for name, counts in tallies.items()}
    sums, numbers = depth_sums.tolist(), depth_counts.tolist()
    depths = [sum(n > 0 for n in row) for row in numbers]
    return [
        Counts(names, {n: tuple(exact[n][i]) for n in COUNTINGS}, tuple(sums[i][:d]), tuple(numbers[i][:d]))
        for i, d in enumerate(depths)
    ]


def count_together(evidence: Sequence[Evidence], block: int = 64) -> list[Counts]:
    """Count the sub-explanations of many images at once, which is much faster than one by one; each keeps its own."""
    waiting = [e for e in evidence if "counts" not in e.__dict__]
    for start in range(0, len(waiting), block):
        some = waiting[start : start + block]
        grid = some[0].grid
        expanded = [e.mses[: e.settings.expanded_mses] for e in some]
        counts = count_subexplanations(
            grid,
            torch.cat([torch.full((len(mses),), i) for i, mses in enumerate(expanded)]),
            torch.cat([grid.from_cells(m.cells for m in mses) for mses in expanded]),
            torch.cat([torch.full((len(e.ratios),), i) for i, e in enumerate(some)]),
            torch.cat([e.regions for e in some]),
            torch.cat([e.ratios for e in some]),
            expand_at=some[0].settings.expand_at,
            count=len(some),
        )
        for e, c in zip(some, counts, strict=True):
            e.__dict__["counts"] = c
    return [e.counts for e in evidence]


def _summed(numbers: np.ndarray, group: Tensor, count: int) -> np.ndarray:
    """Sums of numbers [K] by group [K], for so many groups."""
    sums = np.zeros(count, dtype=numbers.dtype)
    np.add.at(sums, group.numpy(), numbers)
    return sums
