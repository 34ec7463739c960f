"""Peeling: the least important cells of sets are taken out, many at once, until no single one can go.

Where most cells stay, as below the grid inside an MSE, going through them one after the other costs a round each. Here
a round asks about every single cell that may go, and the next one how many of those that can go alone, least important
first, can go together.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from suffice.evidence.search.criterion import Answers
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows


def peel_sets(grid: Grid, slot: Tensor, region: Tensor, ask: Callable[[Tensor, Tensor], Answers]) -> Rows:
    """Take cells out of sets, those first without which the ratio stays highest.

    A cell that cannot go is not tried again until no other can; then all that are left are tried once more, because
    for models that are not monotone it may have become needless.

    Args:
        grid: The grid.
        slot: Image of each set, [K].
        region: The sets, [K] or [K, words]; those that do not suffice to begin with are left out.
        ask: From slots and regions to their ratios and whether they suffice; remembers what it was asked.

    Returns:
        What is left: ``slot``, ``region`` and ``rank`` (which of the K sets it was).

    Example:
        >>> from suffice.evidence.search.criterion import Criterion
        >>> from suffice.evidence.settings import Settings
        >>> from suffice.perturb.probe import Probe
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(17, 24), (30,)], grid=7)
        >>> probe = Probe(oracle.classifier(56), oracle.image(56), targets=1, baseline="black")
        >>> criterion = Criterion.of(probe, Settings())
        >>> left = peel_sets(probe.grid, torch.tensor([0]), probe.grid.full(1), criterion.ask)
        >>> probe.grid.to_cells(left.region)
        [(30,)]
    """
    every = torch.arange(len(slot), device=slot.device)
    sets = Rows(slot=slot, region=region, rank=every)[ask(slot, region).suffices]
    sets = sets.but(tried=grid.to_bits(sets.region), all_tried=torch.ones_like(sets.slot, dtype=torch.bool))
    done = [sets[:0]]
    while len(sets):
        ratio = _ratio_without_each(grid, sets, ask)
        can_go = ratio >= 0
        stuck = ~can_go.any(dim=1)
        done.append(sets[stuck & sets.all_tried])
        again = sets[stuck & ~sets.all_tried]
        shrinks = ~stuck
        smaller = _without_the_least(grid, sets[shrinks], ratio[shrinks], ask)
        sets = Rows.cat(
            [
                again.but(tried=grid.to_bits(again.region), all_tried=torch.ones_like(again.all_tried)),
                smaller.but(
                    tried=can_go[shrinks] & grid.to_bits(smaller.region), all_tried=torch.zeros_like(smaller.all_tried)
                ),
            ]
        )
    left = Rows.cat(done).sorted_by("rank")
    return Rows(slot=left.slot, region=left.region, rank=left.rank)


def _ratio_without_each(grid: Grid, sets: Rows, ask: Callable[[Tensor, Tensor], Answers]) -> Tensor:
    """The ratio of each set without each cell that is tried, where that suffices, else −1; [K, cells]."""
    parent, cell = sets.tried.nonzero(as_tuple=True)
    answers = ask(sets.slot[parent], sets.region[parent] ^ grid.single(cell))
    ratio = torch.full(sets.tried.shape, -1.0, device=cell.device)
    ratio[parent, cell] = torch.where(answers.suffices, answers.ratio.clamp(min=0), -1.0)
    return ratio


def _without_the_least(grid: Grid, sets: Rows, ratio: Tensor, ask: Callable[[Tensor, Tensor], Answers]) -> Rows:
    """The sets without the least important 1, 2, 4, … or all of their cells that can go alone, as many as suffices."""
    if not len(sets):
        return sets
    place = ratio.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    count = (ratio >= 0).sum(dim=1)
    leaps = 2 ** torch.arange(grid.cells.bit_length(), device=count.device)
    parent, number = (leaps < 2 * count[:, None]).nonzero(as_tuple=True)
    length = torch.minimum(leaps[number], count[parent])
    stays = grid.to_bits(sets.region[parent]) & (place[parent] >= length[:, None])
    region = grid.from_bits(stays)
    suffices = ask(sets.slot[parent], region).suffices | (length == 1)  # which is known
    good = suffices.nonzero().flatten()
    # Leaps are in order of set and length, so that the last one is the farthest.
    farthest = torch.zeros_like(sets.slot).scatter_reduce_(0, parent[good], good, "amax")
    return sets.but(region=region[farthest])
