"""Smaller graphs for smaller pictures: what has no room is counted instead."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from suffice.draw.words import counted
from suffice.errors import OptionError
from suffice.evidence.telling import sinking

if TYPE_CHECKING:
    from suffice.evidence.graph.graph import Graph


def trimmed(graph: Graph, across: int, rows: int) -> Graph:
    """The part of a graph that has at most ``across`` regions of a size, and at most ``rows`` sizes.

    All roots stay, then rows from the largest regions down, and in a row the best children of each parent first. What
    goes is counted at its parents and at its level.

    Raises:
        OptionError: There is no room for the roots.
    """
    sizes = Counter(len(graph.nodes[root].cells) for root in graph.roots)
    if len(sizes) > rows or max(sizes.values(), default=0) > across:
        raise OptionError(
            f"There is room for MSEs of {counted(rows, 'size')} and {across} of each; the graph begins at "
            f"{len(graph.roots)}. Write evidence.graph(roots={min(across, rows)}), or layout='page'."
        )
    drawn = {*sizes, *[size for size in graph.by_size if size not in sizes][: rows - len(sizes)]}
    ranks: dict[int, list[tuple[int, int]]] = defaultdict(list)  # child → (parent, rank among the parent's children)
    before: Counter[int] = Counter()
    for edge in sorted(graph.edges, key=lambda edge: sinking(graph.nodes[edge.child].ratio)):
        ranks[edge.child].append((edge.parent, before[edge.parent]))
        before[edge.parent] += 1

    kept = set(graph.roots)
    for size, row in graph.by_size.items():
        best = {i: min((rank for parent, rank in ranks[i] if parent in kept), default=None) for i in row}
        reached = [(rank, sinking(graph.nodes[i].ratio), i) for i, rank in best.items() if rank is not None]
        room = across - sizes[size] if size in drawn else 0
        kept.update([i for *_, i in sorted(reached) if i not in graph.roots][:room])

    name = {old: new for new, old in enumerate(sorted(kept))}
    edges = [replace(e, parent=name[e.parent], child=name[e.child]) for e in graph.edges if {e.parent, e.child} <= kept]
    lost = Counter(edge.parent for edge in graph.edges if edge.child not in kept)
    nodes = [graph.nodes[old] for old in name]
    gone = {node.cells for node in graph.nodes} - {node.cells for node in nodes}
    hidden = Counter(graph.hidden) + Counter(len(cells) for cells in gone)
    return replace(
        graph,
        nodes=tuple(replace(n, id=name[n.id], hidden_children=n.hidden_children + lost[n.id]) for n in nodes),
        edges=tuple(edges),
        roots=tuple(name[root] for root in graph.roots),
        hidden=dict(sorted(hidden.items(), reverse=True)),
    )
