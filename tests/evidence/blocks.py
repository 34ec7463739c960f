"""Blocks of finished images of an oracle, and the truth about them by looking at every set of cells."""

import dataclasses
import itertools

import torch

from suffice.evidence import Settings, find_evidence
from suffice.evidence.beyond.block import Block
from suffice.perturb import Runner
from suffice.testing import Formula


def block_of(oracle, absent=((),), size=None, **choices):
    """A block of images of an oracle, in each of which some cells are black from the start."""
    size = size or 3 * oracle.grid
    grid = torch.ones(len(absent), oracle.grid**2)
    for image, cells in zip(grid, absent, strict=True):
        image[list(cells)] = 0
    cells = grid.view(-1, 1, oracle.grid, oracle.grid).expand(-1, 3, -1, -1)
    pixels = torch.nn.functional.interpolate(cells, size=(size, size), mode="nearest")
    net = oracle.classifier(size)
    choices = {"grid": oracle.grid, "baseline": "black", "max_mses": None, "expanded_mses": 0} | choices
    settings = Settings(**choices)
    bare = settings.changed(second_baseline=None, stability=False, contrastive=False, necessary=False, refine=())
    searched = find_evidence(net, pixels, targets=1, settings=bare)
    found = [dataclasses.replace(e, settings=settings) for e in searched]
    return Block(Runner(net), pixels, [e.name for e in found], found)


def restricted(oracle, absent):
    """What an oracle is for an image in which some cells are black."""
    here = torch.ones(oracle.grid**2, dtype=torch.bool)
    here[list(absent)] = False
    made = Formula(lambda visible: oracle.decide(visible & here), oracle.grid)
    made.strength = lambda visible: oracle.strength(visible & here)
    return made


class Truth:
    """Which sets of the cells of a small grid suffice."""

    def __init__(self, oracle, threshold=0.9):
        self.cells = range(oracle.grid**2)
        self.sets = [s for size in range(len(self.cells) + 1) for s in itertools.combinations(self.cells, size)]
        visible = torch.zeros(len(self.sets), len(self.cells), dtype=torch.bool)
        for row, cells in zip(visible, self.sets, strict=True):
            row[list(cells)] = True
        strength = oracle.strength(visible)
        self.enough = dict(zip(self.sets, (strength / strength[-1] >= threshold).tolist(), strict=True))

    def suffices(self, cells):
        """Whether some cells are enough alone."""
        return self.enough[tuple(sorted(cells))]

    def without(self, cells):
        """All cells but these."""
        return tuple(c for c in self.cells if c not in cells)

    def contrastive(self, cells):
        """Whether they are enough alone, and the rest is not."""
        return self.suffices(cells) and not self.suffices(self.without(cells))

    def minimal(self, holds):
        """The sets for which something holds, and for no proper subset."""
        found = []
        for cells in self.sets:  # small ones first
            if holds(cells) and not any(set(other) <= set(cells) for other in found):
                found.append(cells)
        return found
