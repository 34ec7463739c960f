"""The structured attention graph: what lies below the minimal sufficient explanations of one image.

Roots are MSEs; each step down takes one cell away, and the picture shows what the model still makes of the rest.
The original implementation draws a forest, in which a set reached by two orders of deletion appears twice; here
equal sets are one node, so that the graph is the directed acyclic graph that its paper defines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.evidence.graph_text import percent
from suffice.perturb.regions import WORD, Grid

if TYPE_CHECKING:
    from suffice.evidence.graph_pictures import Drawable, Hide
    from suffice.evidence.result import MSE, Evidence


@dataclass(frozen=True)
class Node:
    """A region in the graph.

    Attributes:
        id: Its number in the graph.
        cells: Its cells, ascending, row-major.
        ratio: Confidence on it alone / confidence on the whole image.
        confidence: Confidence on it alone.
        mse: Its place among the MSEs of the image, from 0; None if it is no MSE.
        hidden_children: One-cell deletions that were evaluated but are not drawn below this node. Always 0 for nodes
            that are not followed: those at or below ``expand_at``, and single cells.
        unevaluated_children: One-cell deletions of a followed node that the model was never asked about.
    """

    id: int
    cells: tuple[int, ...]
    ratio: float
    confidence: float
    mse: int | None = None
    hidden_children: int = 0
    unevaluated_children: int = 0

    @property
    def is_mse(self) -> bool:
        """Whether it is a minimal sufficient explanation."""
        return self.mse is not None


@dataclass(frozen=True)
class Edge:
    """One cell taken away.

    Attributes:
        parent: Id of the node with the cell.
        child: Id of the node without it.
        removed: The cell.
        drop: Ratio of the parent - ratio of the child.
    """

    parent: int
    child: int
    removed: int
    drop: float


@dataclass(frozen=True)
class Graph:
    """A structured attention graph; made by :func:`build_graph`.

    Attributes:
        name: Name of the image.
        label: Name of the class.
        target: The class.
        confidence: Confidence on the whole image.
        baseline_confidence: Confidence on the baseline alone.
        grid: The grid.
        formula: All MSEs of the image as a logical formula, also those that are not drawn.
        nodes: Regions; a node's id is its place.
        edges: Deletions, by parent and child.
        roots: Ids of the nodes at which the graph begins.
        mses_found: Number of MSEs of the image.
        hidden: Number of cells → evaluated regions of that many cells that lie below a root and are not drawn.
        stopped: What ended the search.
        searched: Largest number of cells that the search went to.
        truncated: Whether a budget ended the evaluation below the MSEs early.
        questions: Distinct masked images that the model was asked about.
        settings: The choices of the search and of the drawing that a reader of the picture should know.
    """

    name: str
    label: str
    target: int
    confidence: float
    baseline_confidence: float
    grid: Grid
    formula: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    roots: tuple[int, ...]
    mses_found: int
    hidden: dict[int, int]
    stopped: str
    searched: int
    truncated: bool
    questions: int
    settings: dict[str, Any]

    @property
    def title(self) -> str:
        """Image, class and confidence in one line."""
        return f"{self.name}: {self.label}, {percent(self.confidence)}"

    @property
    def levels(self) -> dict[int, list[int]]:
        """Number of cells → ids of the nodes with so many, most cells first."""
        sizes = sorted({len(node.cells) for node in self.nodes}, reverse=True)
        return {size: [node.id for node in self.nodes if len(node.cells) == size] for size in sizes}

    @property
    def hidden_mses(self) -> int:
        """Number of MSEs that are not drawn."""
        return self.mses_found - len({node.mse for node in self.nodes if node.mse is not None})

    def to_json(self) -> str:
        """The graph as JSON; for its keys see :mod:`suffice.evidence.graph_export`."""
        from suffice.evidence.graph_export import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Graph:
        """The graph that :meth:`to_json` wrote."""
        from suffice.evidence.graph_export import from_json

        return from_json(text)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz, without pictures."""
        from suffice.evidence.graph_export import to_dot

        return to_dot(self)

    def to_svg(
        self, picture: Drawable | None = None, baseline: Drawable | str | None = None, hide: Hide = "dim"
    ) -> str:
        """The graph as a standalone picture; see :func:`suffice.evidence.graph_svg.to_svg`."""
        from suffice.evidence.graph_svg import to_svg

        return to_svg(self, picture, baseline, hide)

    def _repr_svg_(self) -> str:
        return self.to_svg()


def build_graph(
    evidence: Evidence,
    *,
    roots: int | None = 3,
    overlap: int | None = 1,
    expand_at: float = 0.4,
    children: int = 3,
    max_nodes: int = 60,
    merge: bool = True,
) -> Graph:
    """Build the structured attention graph of one image.

    Only regions that the search evaluated become nodes; the model is not asked again. What is left out for the sake of
    the reader is counted: at each node, at each level, and for the MSEs.

    Args:
        evidence: What the search found.
        roots: At how many MSEs to begin; None for all MSEs, however much they overlap.
        overlap: Take the roots from the largest family of MSEs that share at most this many cells; None takes them
            in order of discovery.
        expand_at: Nodes with a ratio above this are followed further down, unless they are a single cell.
        children: Most children of a node; those with the highest ratio are kept, ties by the cell removed.
        max_nodes: Most nodes. The graph grows breadth first, and the strongest regions of a step come first.
        merge: Whether equal regions are one node. False gives the forest of the original implementation, with a node
            of its own for every way to reach a region.

    Returns:
        The graph.

    Raises:
        OptionError: A number that cannot be.

    Example:
        >>> from suffice.evidence.result import MSE, Evidence
        >>> from suffice.evidence.settings import Settings
        >>> grid = Grid(2)
        >>> regions = grid.from_cells([(0, 3), (0,), (3,)])
        >>> evidence = Evidence("cat.jpg", 0, 281, "tabby", 0.9, 0.01, grid, (MSE((0, 3), 0.95),), regions,
        ...                     torch.tensor([0.95, 0.5, 0.2]), 9, 2, "beam empty", False, Settings(grid=2))
        >>> graph = build_graph(evidence)
        >>> graph.formula
        '(P0 ∧ P3)'
        >>> [(node.cells, round(node.ratio, 2)) for node in graph.nodes]
        [((0, 3), 0.95), ((0,), 0.5), ((3,), 0.2)]
        >>> [(edge.parent, edge.child, edge.removed, round(edge.drop, 2)) for edge in graph.edges]
        [(0, 1, 3, 0.45), (0, 2, 0, 0.75)]
    """
    for name, value in (("roots", roots), ("children", children), ("max_nodes", max_nodes)):
        if value is not None and value < 1:
            raise OptionError(f"{name}={value}; it must be 1 or more.")
    family = evidence.mses if roots is None or overlap is None else evidence.diverse(overlap)
    growth = _Growth(evidence, expand_at, children, max_nodes, merge)
    growth.plant(family[:roots])
    settings = evidence.settings
    return Graph(
        name=evidence.name,
        label=evidence.label,
        target=evidence.target,
        confidence=evidence.confidence,
        baseline_confidence=evidence.baseline_confidence,
        grid=evidence.grid,
        formula=evidence.formula(),
        nodes=tuple(growth.nodes),
        edges=tuple(sorted(growth.edges, key=lambda edge: (edge.parent, edge.child))),
        roots=tuple(growth.roots),
        mses_found=len(evidence.mses),
        hidden=growth.hidden(),
        stopped=evidence.stopped,
        searched=evidence.levels,
        truncated=evidence.truncated,
        questions=evidence.questions,
        settings={
            "threshold": settings.threshold,
            "strict": settings.strict,
            "baseline": settings.baseline if isinstance(settings.baseline, str) else "custom",
            "cells": settings.cells,
            "expand_at": expand_at,
            "children": children,
            "merge": merge,
        },
    )


class _Growth:
    """A graph while it grows. Regions are whole numbers here: bit ``i`` is cell ``i``, whatever the grid."""

    def __init__(self, evidence: Evidence, expand_at: float, children: int, max_nodes: int, merge: bool) -> None:
        self.confidence = evidence.confidence
        self.ratios = dict(zip(_numbers(evidence.grid, evidence.regions), evidence.ratios.tolist(), strict=True))
        self.mses = {_number(mse.cells): place for place, mse in enumerate(evidence.mses)}
        self.expand_at, self.children, self.max_nodes, self.merge = expand_at, children, max_nodes, merge
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.roots: list[int] = []
        self.known: dict[int, int] = {}

    def plant(self, roots: Iterable[MSE]) -> None:
        """Begin at these MSEs and grow until nothing is left to follow, or no room."""
        for mse in roots:
            if len(self.nodes) < self.max_nodes:
                self.roots.append(self._add(_number(mse.cells), mse.ratio))
        wave = list(self.roots)
        while wave:
            wave = self._step(wave)

    def hidden(self) -> dict[int, int]:
        """Number of cells → evaluated regions below a root that are not drawn."""
        drawn = {_number(node.cells) for node in self.nodes}
        tops = [_number(self.nodes[root].cells) for root in self.roots]
        left_out = (
            region.bit_count()
            for region in self.ratios
            if region and region not in drawn and any(not region & ~top for top in tops)
        )
        return dict(sorted(Counter(left_out).items(), reverse=True))

    def _step(self, wave: list[int]) -> list[int]:
        """Give every node of a wave its children; returns the nodes that are new."""
        offers: list[tuple[tuple[bool, float], int, int]] = []
        missing: Counter[int] = Counter()
        for parent in wave:
            node = self.nodes[parent]
            if not node.ratio > self.expand_at or len(node.cells) < 2:
                continue
            whole = _number(node.cells)
            evaluated = [
                (_sinking(self.ratios[rest]), cell)
                for cell, rest in _without_each(whole, node.cells)
                if rest in self.ratios
            ]
            kept = sorted(evaluated)[: self.children]
            offers += [(falling, parent, cell) for falling, cell in kept]
            missing[parent] = len(evaluated) - len(kept)
            self.nodes[parent] = replace(node, unevaluated_children=len(node.cells) - len(evaluated))

        new = []
        for _, parent, cell in sorted(offers):
            rest = _number(self.nodes[parent].cells) ^ 1 << cell
            child = self.known.get(rest) if self.merge else None
            if child is None:
                if len(self.nodes) == self.max_nodes:
                    missing[parent] += 1
                    continue
                child = self._add(rest, self.ratios[rest])
                new.append(child)
            drop = self.nodes[parent].ratio - self.nodes[child].ratio
            self.edges.append(Edge(parent, child, cell, drop))
        for parent, count in missing.items():
            self.nodes[parent] = replace(self.nodes[parent], hidden_children=count)
        return new

    def _add(self, region: int, ratio: float) -> int:
        node = Node(len(self.nodes), _cells(region), ratio, ratio * self.confidence, self.mses.get(region))
        self.nodes.append(node)
        self.known[region] = node.id
        return node.id


def _sinking(ratio: float) -> tuple[bool, float]:
    """Sorts the highest ratio first, and what is not a number last."""
    return (True, 0.0) if isnan(ratio) else (False, -ratio)


def _without_each(region: int, cells: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(cell, region ^ 1 << cell) for cell in cells]


def _number(cells: Iterable[int]) -> int:
    return sum(1 << cell for cell in cells)


def _cells(region: int) -> tuple[int, ...]:
    return tuple(cell for cell in range(region.bit_length()) if region >> cell & 1)


def _numbers(grid: Grid, regions: Tensor) -> list[int]:
    """Regions as whole numbers; the sign of a word is its last bit."""
    words = grid.as_words(regions.to(torch.long))
    columns = [[word % (1 << WORD) for word in column] for column in words.T.tolist()]
    return [sum(word << WORD * place for place, word in enumerate(row)) for row in zip(*columns, strict=True)]
