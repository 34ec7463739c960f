"""Necessary sets: the smallest ones without which the rest of the image is not enough."""

from __future__ import annotations

import torch

from suffice.evidence.beyond.block import Block
from suffice.evidence.beyond.hitting_sets import smallest_hitting_sets
from suffice.evidence.search.criterion import Criterion
from suffice.evidence.search.reduction import reduce_sets, sufficient

Cells = tuple[int, ...]

# Most necessary sets of an image to list.
LIMIT = 20
# How many sufficient sets an image learns of in one round, at most.
LESSONS = 4
# After so many rounds, an image's necessary sets are those proven by then. Of six photographs with a ViT-Ti, four
# needed a dozen questions each, one 1,000, and one 8,000, by which a single set was proven.
ROUNDS = 15


def find_necessary(
    block: Block, criterion: Criterion, *, limit: int = LIMIT, rounds: int = ROUNDS
) -> list[tuple[Cells, ...]]:
    """For each image, the smallest sets of cells without which the rest of it is not enough.

    They are found by implicit hitting sets. A necessary set hits every sufficient one, or else the rest would hold that
    one; so the smallest hitting sets of the sufficient sets known so far are proposed, and the model is asked about the
    image without each. Where the rest is enough after all, it is taken down to one more sufficient set, by which the
    next proposals are better. Where it is not, the proposal is necessary, and none is smaller: that is proven where
    showing more never hurts. Otherwise, what is listed still hits every sufficient set found and ends sufficiency, but
    there may be a smaller removal after which the rest is not enough although a part of it is; a contrastive set can
    be one.

    Args:
        block: The images.
        criterion: What suffices, for the same images.
        limit: Most sets to list for an image.
        rounds: Most rounds of proposals. An image that has more sufficient sets than these can show keeps what is
            proven by then: perhaps not all of its smallest necessary sets, perhaps none, which is an empty tuple. An
            image that the baseline alone is enough for has none either.

    Example:
        >>> from suffice.evidence import find_evidence
        >>> from suffice.perturb import Runner
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(1, 2), (2, 3), (5,)], grid=3)  # without 2 and 5 it is no more
        >>> net, image = oracle.classifier(9), oracle.image(9)
        >>> found = find_evidence(net, image, targets=1, grid=3, baseline="black")
        >>> block = Block(Runner(net), image[None], ["a"], found)
        >>> find_necessary(block, block.criterion())
        [((2, 5),)]
    """
    grid, device = criterion.probe.grid, criterion.probe.device
    mses = block.mses()
    mses = mses[criterion.ask(mses.slot, mses.region).suffices]  # a search may have been less exact than this
    known: dict[int, list[Cells]] = {slot: [] for slot in block.meaningful()}
    proven: dict[int, set[Cells]] = {slot: set() for slot in known}
    for slot, cells in zip(mses.slot.tolist(), grid.to_cells(mses.region), strict=True):
        known[slot].append(cells)

    waiting = list(known)
    for _ in range(rounds):
        proposals = [(slot, cells) for slot in waiting for cells in smallest_hitting_sets(known[slot], limit=limit)]
        if not proposals:
            break
        slots = torch.tensor([slot for slot, _ in proposals], device=device)
        rest = grid.complement(grid.from_cells((cells for _, cells in proposals), device))
        enough = criterion.ask(slots, rest).suffices.tolist()
        refuted: dict[int, list[int]] = {slot: [] for slot in waiting}
        for number, ((slot, cells), still) in enumerate(zip(proposals, enough, strict=True)):
            if still:
                refuted[slot].append(number)
            else:
                proven[slot].add(cells)
        waiting = [slot for slot, rows in refuted.items() if rows]
        lessons = torch.tensor([row for rows in refuted.values() for row in rows[:LESSONS]], dtype=torch.long)
        if not len(lessons):
            break
        # What is known best goes first, so that a lesson is about something else.
        often = torch.stack([grid.to_bits(grid.from_cells(known[slot])).sum(dim=0) for slot, _ in proposals])
        order = (-often).argsort(dim=1, stable=True).to(device)
        lessons = lessons.to(device)
        learned = reduce_sets(grid, slots[lessons], rest[lessons], order[lessons], sufficient(criterion))
        for slot, cells in zip(learned.slot.tolist(), grid.to_cells(learned.region), strict=True):
            known[slot].append(cells)
    return [_smallest(proven.get(slot, set()), known.get(slot, []), limit) for slot in range(len(block.evidence))]


def _smallest(proven: set[Cells], known: list[Cells], limit: int) -> tuple[Cells, ...]:
    """Of the sets proven to be necessary those that hit all that is known by now, and are the smallest."""
    hitting = [cells for cells in proven if all(set(cells) & set(sufficient) for sufficient in known)]
    fewest = min(map(len, hitting), default=0)
    return tuple(sorted(cells for cells in hitting if len(cells) == fewest)[:limit])
