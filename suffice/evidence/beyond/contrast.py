"""Contrastive sets: enough alone, and without them the rest is not."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.evidence.beyond.block import Block, as_mses
from suffice.evidence.result import MSE
from suffice.evidence.search.criterion import Criterion
from suffice.evidence.search.minimality import contains_any
from suffice.evidence.search.reduction import reduce_sets
from suffice.evidence.telling import most_telling

# From how many MSEs of an image contrastive sets are sought.
ORDERS = 3


def find_contrastive(block: Block, criterion: Criterion) -> list[tuple[MSE, ...]]:
    """For each image, sets that are enough alone, and without which the rest of the image is not.

    They are found from the whole image down, which is contrastive unless the baseline alone is enough: in orders in
    which the cells of one of the MSEs that tell most go last, and of the others those in the most MSEs, cells are
    taken out as long as both sides hold. No single cell can go, and none of an image's sets contains another. Where
    showing more never hurts, no proper subset is contrastive either.

    Args:
        block: The images.
        criterion: What suffices, for the same images.

    Example:
        >>> from suffice.evidence import find_evidence
        >>> from suffice.perturb import Runner
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(1, 2), (2, 3), (5,)], grid=3)
        >>> net, image = oracle.classifier(9), oracle.image(9)
        >>> found = find_evidence(net, image, targets=1, grid=3, baseline="black")
        >>> block = Block(Runner(net), image[None], ["a"], found)
        >>> [m.cells for m in find_contrastive(block, block.criterion())[0]]
        [(2, 5)]
    """
    grid, device = criterion.probe.grid, criterion.probe.device

    def contrastive(slot: Tensor, region: Tensor) -> Tensor:
        holds = criterion.ask(slot, region).suffices
        enough = holds.nonzero().flatten()  # the other side is asked only about these
        holds[enough] = ~criterion.ask(slot[enough], grid.complement(region[enough])).suffices
        return holds

    slots, orders = [], []
    for image in block.meaningful():
        mses = block.evidence[image].mses
        bits = grid.to_bits(grid.from_cells(m.cells for m in mses))
        for last in most_telling(mses, overlap=1)[:ORDERS] or [MSE((), 0.0)]:
            own = grid.to_bits(grid.from_cells([last.cells]))[0]
            slots.append(image)
            orders.append((bits.sum(dim=0) + own * (1 + len(mses))).argsort(stable=True))
    if not slots:
        return [()] * len(block.evidence)
    slot, order = torch.tensor(slots, device=device), torch.stack(orders).to(device)
    found = reduce_sets(grid, slot, grid.full(len(slot), device), order, contrastive)
    return as_mses(criterion, found[~contains_any(grid, found, found)])
