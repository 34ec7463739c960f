"""Layered graphs: one row a layer, few crossings, children below their parents."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean

SWEEPS = 12

Edges = Sequence[tuple[int, int]]
Neighbors = dict[int, list[int]]


@dataclass(frozen=True)
class Layers:
    """Where nodes are."""

    rows: list[list[int]]  # from the top down, each from left to right
    room: list[float]  # the width that a node of each row has for itself; it never grows from one row to the next
    centers: dict[int, float]  # of each node, from the left
    width: float  # of the whole


def lay_out(
    rows: Sequence[Sequence[int]], edges: Edges, across: float, least: float, most: float, spare: float = 0.0
) -> Layers:
    """Order the nodes of each row and place them.

    Args:
        rows: Nodes, the top row first.
        edges: Pairs of nodes, from a row to the next.
        across: Width to keep to where nodes can have the room they need.
        least: Least room for a node; with many in a row, the whole becomes wider.
        most: Most room for a node; with few in each row, the whole stays narrower.
        spare: Room for so many nodes beyond what the fullest row needs, so that parts of the graph can stand apart.

    Example:
        >>> layers = lay_out([[0, 1], [2, 3]], [(0, 3), (1, 2)], across=100, least=10, most=40, spare=0.5)
        >>> layers.rows, layers.centers
        ([[0, 1], [3, 2]], {0: 25.0, 1: 75.0, 3: 25.0, 2: 75.0})
    """
    above: Neighbors = {node: [] for row in rows for node in row}
    below: Neighbors = {node: [] for row in rows for node in row}
    for parent, child in edges:
        above[child].append(parent)
        below[parent].append(child)
    ordered = _ordered(rows, edges, above, below)
    needed = max(map(len, ordered), default=1) + spare
    pitch = min(max(across / needed, least), most)
    width = needed * pitch
    room = list(accumulate((max(pitch, min(most, 0.95 * width / len(row))) for row in ordered), min))
    return Layers(ordered, room, _placed(ordered, room, width, above, below), width)


def crossings(rows: Sequence[Sequence[int]], edges: Edges) -> int:
    """How many pairs of edges cross, if edges were straight lines between rows."""
    depth = {node: number for number, row in enumerate(rows) for node in row}
    index = {node: position for row in rows for position, node in enumerate(row)}
    total = 0
    for number in range(len(rows)):
        ends: list[int] = []
        for _, end in sorted((index[a], index[b]) for a, b in edges if depth[a] == number):
            total += len(ends) - bisect_right(ends, end)
            insort(ends, end)
    return total


def _ordered(rows: Sequence[Sequence[int]], edges: Edges, above: Neighbors, below: Neighbors) -> list[list[int]]:
    """Barycenter sweeps down and up; the best order seen is kept."""
    current = [list(row) for row in rows]
    best, fewest = [list(row) for row in rows], crossings(rows, edges)
    for sweep in range(SWEEPS):
        neighbors = below if sweep % 2 else above
        for row in reversed(current) if sweep % 2 else current:
            index = {node: float(position) for each in current for position, node in enumerate(each)}
            means = {node: _mean(node, neighbors, index) for node in row}
            row.sort(key=means.__getitem__)
        now = crossings(current, edges)
        if now < fewest:
            best, fewest = [list(row) for row in current], now
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
            wanted = [_mean(node, neighbors, centers) for node in row]
            centers.update(zip(row, _spread(wanted, apart, width), strict=True))
    return centers


def _mean(node: int, neighbors: Neighbors, position: dict[int, float]) -> float:
    return fmean(position[n] for n in neighbors[node]) if neighbors[node] else position[node]


def _spread(wanted: Sequence[float], apart: float, width: float) -> list[float]:
    """The positions nearest to those wanted (least squares) that keep their distance and lie within the width.

    Less the distances before them, positions need only not decrease: isotonic regression, by pooling neighbors.
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
