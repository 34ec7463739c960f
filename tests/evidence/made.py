"""Evidence made by hand."""

import itertools

import torch

from suffice.evidence import MSE, Evidence, Settings
from suffice.perturb import Grid


def subsets(cells):
    """All subsets but the empty one, smallest first."""
    return [s for size in range(1, len(cells) + 1) for s in itertools.combinations(cells, size)]


def make_evidence(table, mses, side=7, **changes):
    """Evidence from cells → ratio."""
    grid = Grid(side)
    facts = {
        "name": "cat.jpg", "index": 0, "target": 281, "label": "tabby", "confidence": 0.8, "baseline_confidence": 0.01,
        "questions": 99, "levels": 8, "stopped": "beam empty", "settings": Settings(grid=side),
    }  # fmt: skip
    return Evidence(
        **facts | changes,
        grid=grid,
        mses=tuple(MSE(cells, table[cells]) for cells in mses),
        regions=grid.from_cells(table),
        ratios=torch.tensor(list(table.values()), dtype=torch.float64),
    )
