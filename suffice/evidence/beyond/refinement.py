"""Refinement below the grid: what of an MSE is needed, on finer grids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.evidence.beyond.block import Block, as_mses
from suffice.evidence.beyond.peeling import peel_sets
from suffice.evidence.result import MSE
from suffice.evidence.settings import Settings
from suffice.evidence.telling import most_telling
from suffice.perturb.regions import Grid

# How many MSEs of an image are refined: those that tell most, and share at most a cell.
REFINED = 3


def check_refinement(settings: Settings, size: tuple[int, int] | None = None) -> None:
    """Raise unless each of the finer grids divides the cells of the one before it, and fits images of so many pixels.

    Raises:
        OptionError: With what was given and what it can be.

    Example:
        >>> check_refinement(Settings(grid=7, refine=(14, 20)))
        Traceback (most recent call last):
        suffice.errors.OptionError: refine=(14, 20): 20 is not 28, 42, 56 or another larger multiple of 14, by which \
each cell of the 14×14 grid would become whole cells.
    """
    sides = (settings.grid, *settings.refine)
    for before, side in pairwise(sides):
        if side <= before or side % before:
            raise OptionError(
                f"refine={settings.refine}: {side} is not {2 * before}, {3 * before}, {4 * before} or another larger "
                f"multiple of {before}, by which each cell of the {before}×{before} grid would become whole cells."
            )
    if settings.refine and settings.cells != "hard":
        raise OptionError(f"refine={settings.refine} needs cells='hard'; soft cells overlap and cannot be cut finer.")
    if size is not None and sides[-1] > min(size):
        raise OptionError(
            f"refine={settings.refine}: a grid of {sides[-1]} a side does not fit {size[0]}×{size[1]} pixels."
        )


def refine_mses(block: Block, sides: Sequence[int]) -> list[dict[int, tuple[MSE, ...]]]:
    """For each image, what is left of its MSEs that tell most on finer and finer grids.

    Each cell becomes the cells that it consists of. Of these, the least important go first, as many as can go, until no
    single one can; see :mod:`suffice.evidence.beyond.peeling`. The next grid goes on from there.

    Args:
        block: The images.
        sides: Cells per side of the grids; see :func:`check_refinement`.

    Returns:
        Of each image, cells a side → MSEs on that grid.

    Example:
        >>> from suffice.evidence import find_evidence
        >>> from suffice.perturb import Runner
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(5, 6, 9)], grid=4)  # 5 is a quarter of cell 0 of a 2×2 grid, 6 of cell 1, 9 of cell 2
        >>> net, image = oracle.classifier(16), oracle.image(16)
        >>> found = find_evidence(net, image, targets=1, grid=2, baseline="black")
        >>> found[0].mses[0].cells
        (0, 1, 2)
        >>> refine_mses(Block(Runner(net), image[None], ["a"], found), (4,))[0][4][0].cells
        (5, 6, 9)
    """
    device, grid = block.runner.device, block.evidence[0].grid
    chosen = [
        (slot, m.cells)
        for slot in block.meaningful()
        for m in most_telling(block.evidence[slot].mses, overlap=1)[:REFINED]
    ]
    slot = torch.tensor([slot for slot, _ in chosen], dtype=torch.long, device=device)
    region = grid.from_cells((cells for _, cells in chosen), device)
    refined: list[dict[int, tuple[MSE, ...]]] = [{} for _ in block.evidence]
    for side in sides:
        finer = Grid(side)
        region, grid = split_cells(grid, finer, region), finer
        criterion = block.criterion(grid=grid)
        left = peel_sets(grid, slot, region, criterion.ask).sorted_by("slot", "region", "rank")
        left = left.first_of_each("slot", "region").sorted_by("rank")  # two may have become one
        for mine, mses in zip(refined, as_mses(criterion, left), strict=True):
            mine[side] = mses
        slot, region = left.slot, left.region
    return refined


def split_cells(grid: Grid, finer: Grid, regions: Tensor) -> Tensor:
    """Regions of a grid as regions of a finer one, each cell as the cells that it consists of.

    Example:
        >>> finer = Grid(4)
        >>> finer.to_cells(split_cells(Grid(2), finer, Grid(2).from_cells([(1,)])))
        [(2, 3, 6, 7)]
    """
    times = finer.side // grid.side
    cells = grid.to_bits(regions).view(-1, grid.side, grid.side)
    return finer.from_bits(cells.repeat_interleave(times, 1).repeat_interleave(times, 2).flatten(1))
