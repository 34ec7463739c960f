"""Slow, literal twins of the search and of the counts, over Python sets."""

from __future__ import annotations

import itertools

import torch

from suffice.evidence import find_evidence
from suffice.testing import random_formula


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


def literal_prune(cells, suffices):
    """Passes over the cells, row-major, until a pass takes nothing out."""
    current = set(cells)
    removed = True
    while removed:
        removed = False
        for cell in sorted(current):
            if suffices(frozenset(current - {cell})):
                current.remove(cell)
                removed = True
    return frozenset(current)


def literal_search(grid, ratio, *, width, threshold=0.9, max_mses=None, max_size=None, passing="all"):
    """Beam search one level and one set at a time."""
    cells = range(grid**2)
    suffices = lambda s: ratio(s) >= threshold - 1e-9  # noqa: E731
    if suffices(frozenset()):
        return [frozenset()]
    beam, found = [frozenset()], []
    for level in range(1, grid**2 + 1):
        candidates = {s | {c} for s in beam for c in cells if c not in s}
        ordered = sorted(candidates, key=lambda s: (-round(ratio(s), 6), sum(1 << c for c in s)))
        if passing == "beam":
            ordered = ordered[:width]
        new = [literal_prune(s, suffices) for s in ordered if suffices(s)]
        found += [m for i, m in enumerate(new) if m not in found and m not in new[:i]]
        beam = [s for s in ordered if not suffices(s)][:width]
        if (max_mses is not None and len(found) > max_mses) or not beam or level == max_size:
            break
    return found


def literal_counts(mses, ratio, thresholds=(0.9, 0.8, 0.7, 0.6, 0.5), expand_at=0.5):
    """The four readings, by walking trees node by node."""
    distinct = {t: set() for t in thresholds}
    per_mse = {t: set() for t in thresholds}
    tree = dict.fromkeys(thresholds, 0)
    tree3 = dict.fromkeys(thresholds, 0)

    def walk(root, node, most, tally):
        if ratio(node) < expand_at:
            return
        for cell in sorted(node)[:most]:
            child = node - {cell}
            if child:
                for t in thresholds:
                    if ratio(child) >= t:
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


def all_subsets(cells):
    return (frozenset(c) for n in range(len(cells) + 1) for c in itertools.combinations(cells, n))


def formula(seed, *, low=0.02, **options):
    """A random formula over a few cells of a 3×3 grid; ``low`` is the confidence where it does not hold."""
    oracle = random_formula(seed, grid=3, **{"max_cells": 7, **options})
    oracle.low = low
    return oracle
