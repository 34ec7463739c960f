"""Slow, literal twins of the search and of the counts, over Python sets."""

from __future__ import annotations

import random

import torch
from hypothesis import strategies as st

from suffice.evidence import find_evidence
from suffice.testing import random_formula
from suffice.vision import Classifier


def strength_of(oracle):
    """Ratio of a set of cells, remembered."""
    known = {}
    whole = float(oracle.strength(torch.ones(1, oracle.grid**2, dtype=torch.bool)))

    def ratio(cells):
        if cells not in known:
            visible = torch.zeros(1, oracle.grid**2, dtype=torch.bool)
            visible[0, list(cells)] = True
            known[cells] = float(oracle.strength(visible)) / whole
        return known[cells]

    return ratio


def literal_counts(mses, ratio, thresholds=(0.9, 0.8, 0.7, 0.6, 0.5), expand_at=0.5):
    """The four readings, by walking trees node by node."""
    distinct = {t: set() for t in thresholds}
    per_mse = {t: set() for t in thresholds}
    tree = dict.fromkeys(thresholds, 0)
    tree3 = dict.fromkeys(thresholds, 0)

    def walk(root, node, most, tally):
        if round(ratio(node), 6) < expand_at:
            return
        for cell in sorted(node)[:most]:
            child = node - {cell}
            if child:
                for t in thresholds:
                    if round(ratio(child), 6) >= t:
                        tally(t, root, child)
                walk(root, child, most, tally)

    def merged(t, root, child):
        distinct[t].add(child)
        per_mse[t].add((root, child))
        tree[t] += 1

    def three(t, root, child):
        tree3[t] += 1

    for mse in mses:
        walk(mse, mse, None, merged)
        walk(mse, mse, 3, three)
    return {
        "distinct": {t: len(s) for t, s in distinct.items()},
        "per-mse": {t: len(s) for t, s in per_mse.items()},
        "tree": tree,
        "tree3": tree3,
    }


def search_oracle(oracle, **options):
    """Evidence of an oracle on its own image."""
    size = oracle.grid * 2
    settings = {"grid": oracle.grid, "baseline": "black", "max_mses": None, "batch_size": 512, **options}
    return find_evidence(oracle.classifier(size), oracle.image(size), targets=1, **settings)[0]


class Bank(torch.nn.Module):
    """Many oracles on 3×3 grids in one module: the brightness of an image says which of them it is for."""

    def __init__(self, oracles):
        super().__init__()
        subsets = torch.arange(512)[:, None] >> torch.arange(9) & 1
        self.tables = torch.stack([oracle.strength(subsets.bool()) for oracle in oracles])

    def forward(self, x):
        cells = x.mean(dim=1).view(len(x), 3, 2, 3, 2).mean(dim=(2, 4)).flatten(1)
        code = ((cells > 0.25).long() << torch.arange(9)).sum(dim=1)
        which = ((cells.amax(dim=1) - 0.5) * 2 * (len(self.tables) + 1)).round().long() - 1
        odds = torch.logit(self.tables[which.clamp(min=0), code], eps=1e-12).float()
        return torch.stack([torch.zeros_like(odds), odds], dim=1)

    def images(self):
        count = len(self.tables)
        shade = 0.5 + torch.arange(1, count + 1) / (count + 1) / 2
        return shade[:, None, None, None].expand(count, 3, 6, 6)


def search_bank(oracles, **options):
    """Evidence of many oracles, searched side by side."""
    bank = Bank(oracles)
    net = Classifier(bank, size=6, mean=(0,) * 3, std=(1,) * 3)
    settings = {"grid": 3, "baseline": "black", "max_mses": None, "batch_size": 4096, "images_at_once": 64, **options}
    return find_evidence(net, bank.images(), targets=1, **settings)


# Thirty different formulas from each number drawn: lists of numbers shrink, and are often drawn, as repetitions.
SEEDS = st.integers(0, 1 << 30).map(lambda number: random.Random(number).sample(range(1 << 30), 30))


def formula(seed, *, low=0.02, **options):
    """A random formula over a few cells of a 3×3 grid; ``low`` is the confidence where it does not hold."""
    oracle = random_formula(seed, grid=3, **{"max_cells": 7, **options})
    oracle.low = low
    return oracle
