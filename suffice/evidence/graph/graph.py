"""The structured attention graph: what lies below the minimal sufficient explanations of one image.

Roots are MSEs; each step down takes one cell away, and the picture shows what the model still makes of the rest.
The original implementation draws a forest, in which a set reached by two orders of deletion appears twice; here
equal sets are one node, so that the graph is the directed acyclic graph that its paper defines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.draw import show
from suffice.draw.files import PICTURES, is_picture, save_picture
from suffice.draw.words import percent
from suffice.errors import OptionError
from suffice.evidence.graph.drawing import to_svg
from suffice.evidence.graph.export import from_json, to_dot, to_json, to_networkx
from suffice.evidence.telling import most_telling, sinking

if TYPE_CHECKING:
    from suffice.evidence.result import MSE, Evidence

Cells = tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """A region in the graph.

    Attributes:
        cells: Its cells, ascending, row-major.
        ratio: Confidence on it alone / confidence on the whole image; both above the baseline's where the settings say.
        confidence: On it alone.
        mse: Its number among the MSEs of the image, from 0; None if it is no MSE.
        hidden_children: One-cell deletions that were evaluated but are not drawn below this node. Always 0 for nodes
            that are not followed: those at or below ``expand_at``, and single cells.
        unevaluated_children: One-cell deletions of a followed node that the model was never asked about.
    """

    id: int
    cells: Cells
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
    """One cell taken away: the ids of the nodes with and without it, the cell, and how much the ratio fell."""

    parent: int
    child: int
    removed: int
    drop: float

    @property
    def strength(self) -> int:
        """How much the loss of the cell hurt: 0, 1 or 2 for a drop below 0.2, below 0.6, and from there on."""
        return int(self.drop >= 0.2) + int(self.drop >= 0.6)


@dataclass(frozen=True)
class Graph:
    """A structured attention graph; made by :func:`build_graph`.

    Attributes:
        evidence: What it shows: the image, all its MSEs, the settings of the search.
        nodes: Regions; a node's id is its index.
        edges: Deletions, by parent and child.
        roots: Ids of the nodes at which the graph begins.
        hidden: Number of cells → evaluated regions of that many cells that lie below a root and are not drawn.
        expand_at: Nodes with a ratio above this were followed.
        children: Most children of a node.
        merge: Whether equal regions are one node.
    """

    evidence: Evidence = field(compare=False, repr=False)
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    roots: tuple[int, ...]
    hidden: dict[int, int]
    expand_at: float = 0.4
    children: int = 3
    merge: bool = True

    @property
    def title(self) -> str:
        """Image, class and confidence in one line."""
        return f"{self.evidence.name}: {self.evidence.label}, {percent(self.evidence.confidence)}"

    @property
    def by_size(self) -> dict[int, list[int]]:
        """Number of cells → ids of the nodes with so many, most cells first."""
        sizes = sorted({len(node.cells) for node in self.nodes}, reverse=True)
        return {size: [node.id for node in self.nodes if len(node.cells) == size] for size in sizes}

    @property
    def hidden_mses(self) -> int:
        """Number of MSEs that are not drawn."""
        return len(self.evidence.mses) - len({node.mse for node in self.nodes if node.mse is not None})

    to_svg = to_svg
    to_json = to_json
    from_json = staticmethod(from_json)
    to_dot = to_dot
    to_networkx = to_networkx

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write the graph as a picture (``.svg``, ``.png``, ``.pdf``), for Graphviz (``.dot``) or as JSON (``.json``).

        A picture takes the options of :meth:`to_svg`, such as ``layout="column"``.
        """
        file = Path(path)
        if is_picture(file):
            return save_picture(self.to_svg(**options), file)
        writers = {".dot": self.to_dot, ".json": self.to_json}
        if file.suffix not in writers:
            raise OptionError(f"A graph is saved as {', '.join((*PICTURES, *writers))}; got {file.name!r}.")
        if options:
            raise OptionError(f"{', '.join(options)}: only pictures ({', '.join(PICTURES)}) take options.")
        file.write_text(writers[file.suffix](), encoding="utf-8")
        return file

    def show(self, **options: Any) -> None:
        """Show the picture in the notebook, or in the browser; options as in :meth:`to_svg`."""
        show(self.to_svg(**options), "svg")

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
    the reader is counted: at each node, at each level, and for the MSEs. The graph begins at the MSEs that tell most:
    small, strong and different from each other, by :func:`suffice.evidence.telling.most_telling`.

    Args:
        evidence: What the search found.
        roots: At how many MSEs to begin; None for all MSEs, however much they overlap.
        overlap: Most cells that two roots may share; None for any number.
        expand_at: Nodes with a ratio above this are followed further down, unless they are a single cell.
        children: Most children of a node; those with the highest ratio are kept, ties by the cell removed.
        max_nodes: Most nodes. The graph grows breadth first, and the strongest regions of a step come first.
        merge: Whether equal regions are one node. False gives the forest of the original implementation, with a node
            of its own for every way to reach a region.

    Example:
        >>> from suffice import find_evidence
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(0, 3)], grid=2, low=0.5)
        >>> found = find_evidence(oracle.classifier(8), oracle.image(8), targets=1, grid=2, baseline="black")
        >>> graph = build_graph(found[0])
        >>> [(node.cells, round(node.ratio, 2)) for node in graph.nodes]
        [((0, 3), 1.0), ((3,), 0.51), ((0,), 0.51)]
        >>> [(edge.parent, edge.child, edge.removed, round(edge.drop, 2)) for edge in graph.edges]
        [(0, 1, 0, 0.49), (0, 2, 3, 0.49)]
    """
    for name, value in (("roots", roots), ("children", children), ("max_nodes", max_nodes)):
        if value is not None and value < 1:
            raise OptionError(f"{name}={value}; it must be 1 or more.")
    ratios = dict(zip(evidence.grid.to_cells(evidence.regions), evidence.ratios.tolist(), strict=True))
    tops = most_telling(evidence.mses, None if roots is None else overlap)[:roots][:max_nodes]
    nodes, edges = _grow(evidence, tops, ratios, expand_at, children, max_nodes, merge)
    drawn, whole = {node.cells for node in nodes}, [frozenset(mse.cells) for mse in tops]
    left_out = (cells for cells in ratios if cells and cells not in drawn)
    below = Counter(len(cells) for cells in left_out if any(top.issuperset(cells) for top in whole))
    hidden = dict(sorted(below.items(), reverse=True))
    return Graph(evidence, nodes, edges, tuple(range(len(tops))), hidden, expand_at, children, merge)


def _grow(
    evidence: Evidence,
    roots: Sequence[MSE],
    ratios: Mapping[Cells, float],
    expand_at: float,
    children: int,
    max_nodes: int,
    merge: bool,
) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
    """Nodes and edges from some MSEs down, breadth first, until nothing is left to follow, or no room."""
    mses = {mse.cells: number for number, mse in enumerate(evidence.mses)}
    nodes: list[Node] = []
    edges: list[Edge] = []
    known: dict[Cells, Node] = {}
    hidden: Counter[int] = Counter()
    unevaluated: Counter[int] = Counter()

    whole, base = evidence.confidence, 0.0
    if evidence.settings.above_baseline and evidence.baseline_confidence < whole:
        base = evidence.baseline_confidence

    def add(cells: Cells, ratio: float) -> Node:
        known[cells] = Node(len(nodes), cells, ratio, base + ratio * (whole - base), mses.get(cells))
        nodes.append(known[cells])
        return known[cells]

    wave = [add(mse.cells, mse.ratio) for mse in roots]
    while wave:
        offers: list[tuple[tuple[bool, float], int, int]] = []
        for node in wave:
            if not node.ratio > expand_at or len(node.cells) < 2:
                continue
            below = {cell: ratios.get(_without(node.cells, cell)) for cell in node.cells}
            evaluated = sorted((sinking(ratio), node.id, cell) for cell, ratio in below.items() if ratio is not None)
            offers += evaluated[:children]
            hidden[node.id] = max(len(evaluated) - children, 0)
            unevaluated[node.id] = len(node.cells) - len(evaluated)
        wave = []
        for _, parent, cell in sorted(offers):
            rest = _without(nodes[parent].cells, cell)
            child = known.get(rest) if merge else None
            if child is None:
                if len(nodes) == max_nodes:
                    hidden[parent] += 1
                    continue
                child = add(rest, ratios[rest])
                wave.append(child)
            edges.append(Edge(parent, child.id, cell, nodes[parent].ratio - child.ratio))
    counted = (replace(n, hidden_children=hidden[n.id], unevaluated_children=unevaluated[n.id]) for n in nodes)
    return tuple(counted), tuple(sorted(edges, key=lambda edge: (edge.parent, edge.child)))


def _without(cells: Cells, cell: int) -> Cells:
    return tuple(c for c in cells if c != cell)
