"""Where the nodes of a graph go: one row a level, few crossings, children below their parents."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.evidence.graph import Edge, Graph

SWEEPS = 12

Neighbors = dict[int, list[int]]


@dataclass(frozen=True)
class Layout:
    """Where nodes are.

    Attributes:
        rows: Ids from the level of most cells down, each level from left to right.
        room: For each row the width that a node has for itself; it never grows from one row to the next.
        centers: Center of each node, from the left.
        width: Width of the whole.
    """

    rows: list[list[int]]
    room: list[float]
    centers: dict[int, float]
    width: float


def lay_out(graph: Graph, across: float, least: float, most: float) -> Layout:
    """Order the nodes of each level and place them.

    Args:
        graph: The graph.
        across: Width to keep to where nodes can have the room they need.
        least: Least room for a node; with many in a row, the whole becomes wider.
        most: Most room for a node; with few in each row, the whole stays narrower.

    Example:
        >>> from suffice.evidence.graph import Edge, Graph, Node
        >>> from suffice.perturb import Grid
        >>> nodes = tuple(Node(i, cells, 1.0, 1.0) for i, cells in enumerate([(0, 1), (2, 3), (3,), (0,)]))
        >>> edges = (Edge(0, 3, 1, 0.0), Edge(1, 2, 2, 0.0))
        >>> graph = Graph("", "", 0, 1.0, 0.0, Grid(2), "", nodes, edges, (0, 1), 2, {}, "", 2, False, 9, {})
        >>> layout = lay_out(graph, across=100, least=10, most=40)
        >>> layout.rows, layout.centers
        ([[0, 1], [3, 2]], {0: 25.0, 1: 75.0, 3: 25.0, 2: 75.0})
    """
    rows = [list(members) for members in graph.levels.values()]
    above: Neighbors = {node.id: [] for node in graph.nodes}
    below: Neighbors = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        above[edge.child].append(edge.parent)
        below[edge.parent].append(edge.child)
    rows = _ordered(rows, above, below, graph.edges)
    # A little more than the fullest row needs, so that the trees of different roots can stand apart.
    needed = max(map(len, rows), default=1) + 0.5 * max(len(graph.roots) - 1, 0)
    pitch = min(max(across / needed, least), most)
    width = needed * pitch
    room = list(accumulate((max(pitch, min(most, 0.95 * width / len(row))) for row in rows), min))
    return Layout(rows, room, _placed(rows, room, width, above, below), width)


def crossings(rows: Sequence[Sequence[int]], edges: Sequence[Edge]) -> int:
    """How many pairs of edges cross, if edges were straight lines between rows."""
    level = {node: depth for depth, row in enumerate(rows) for node in row}
    place = {node: position for row in rows for position, node in enumerate(row)}
    total = 0
    for depth in range(len(rows)):
        ends: list[int] = []
        for _, end in sorted((place[e.parent], place[e.child]) for e in edges if level[e.parent] == depth):
            total += len(ends) - bisect_right(ends, end)
            insort(ends, end)
    return total


def _ordered(rows: list[list[int]], above: Neighbors, below: Neighbors, edges: Sequence[Edge]) -> list[list[int]]:
    """Barycenter sweeps down and up; the best order seen is kept."""
    best, fewest = rows, crossings(rows, edges)
    current = [list(row) for row in rows]
    for sweep in range(SWEEPS):
        neighbors = below if sweep % 2 else above
        for row in reversed(current) if sweep % 2 else current:
            place = {node: float(position) for row_ in current for position, node in enumerate(row_)}
            row.sort(key=_mean_place(neighbors, place))
        found = crossings(current, edges)
        if found < fewest:
            best, fewest = [list(row) for row in current], found
    return best


def _placed(
    rows: list[list[int]], room: list[float], width: float, above: Neighbors, below: Neighbors
) -> dict[int, float]:
    """Pull nodes toward their neighbors, in the given order and within the width."""
    centers = {node: width * (i + 0.5) / len(row) for row in rows for i, node in enumerate(row)}
    both = {node: above[node] + below[node] for node in centers}
    for neighbors in (above, below) * (SWEEPS // 2) + (both,) * 2:
        sweep = list(zip(rows, room, strict=True))
        for row, apart in sweep if neighbors is not below else reversed(sweep):
            wanted = [_mean_place(neighbors, centers)(node) for node in row]
            centers.update(zip(row, _spread(wanted, apart, width), strict=True))
    return centers


def _mean_place(neighbors: Neighbors, place: dict[int, float]) -> Callable[[int], float]:
    def mean(node: int) -> float:
        return fmean(place[n] for n in neighbors[node]) if neighbors[node] else place[node]

    return mean


def _spread(wanted: Sequence[float], apart: float, width: float) -> list[float]:
    """The places nearest to those wanted (least squares) that keep their distance and lie within the width.

    Less the distances before them, places need only not decrease: an isotonic regression, solved by pooling neighbors.
    """
    pools: list[tuple[float, int]] = []
    for rank, value in enumerate(wanted):
        total, count = value - rank * apart, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    first = apart / 2
    last = max(width - (len(wanted) - 0.5) * apart, first)
    return [min(max(value, first), last) + rank * apart for rank, value in enumerate(level)]
