"""Smaller graphs: nothing goes without being counted."""

from collections import Counter

import pytest

from suffice.errors import OptionError
from suffice.evidence.graph.graph import build_graph
from suffice.evidence.graph.trim import trimmed
from tests.evidence.made import make_evidence, subsets


def graded(mses, side=7):
    table = {}
    for mse in mses:
        for cells in subsets(mse):
            table.setdefault(cells, 0.95 * len(cells) / len(mse) - 0.001 * cells[0])
    return make_evidence(table, mses, side)


GRAPH = build_graph(graded([(0, 1, 2, 3), (20, 21, 22, 23, 24), (40, 41, 42)]), children=4)


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(("across", "rows"), [(3, 3), (5, 4), (4, 5), (99, 99)])
def test_what_goes_is_counted_where_it_was(across, rows, merge):
    graph = build_graph(GRAPH.evidence, children=4, merge=merge, max_nodes=200)
    small = trimmed(graph, across, rows)
    assert len(small.by_size) <= rows
    assert max(map(len, small.by_size.values())) <= across
    assert [node.id for node in small.nodes] == list(range(len(small.nodes)))
    assert [small.nodes[r].cells for r in small.roots] == [graph.nodes[r].cells for r in graph.roots]
    drawn = {node.cells for node in small.nodes}
    assert drawn <= {node.cells for node in graph.nodes}

    def regions(of):
        return Counter({size: len({of.nodes[i].cells for i in ids}) for size, ids in of.by_size.items()})

    assert regions(small) + Counter(small.hidden) == regions(graph) + Counter(graph.hidden)
    ways = Counter(edge.parent for edge in small.edges)
    before = {(n.cells, n.ratio): n.hidden_children + sum(e.parent == n.id for e in graph.edges) for n in graph.nodes}
    for node in small.nodes:
        assert node.hidden_children + ways[node.id] == before[node.cells, node.ratio]
    reached = {edge.child for edge in small.edges} | set(small.roots)
    assert reached == set(range(len(small.nodes)))
    for edge in small.edges:
        assert set(small.nodes[edge.parent].cells) - set(small.nodes[edge.child].cells) == {edge.removed}


def test_a_graph_that_has_room_stays_as_it_is():
    assert trimmed(GRAPH, 99, 99) == GRAPH


def test_every_parent_keeps_its_best_child_before_one_has_two():
    graph = build_graph(graded([(0, 1, 2), (20, 21, 22), (40, 41, 42)]))
    small = trimmed(graph, across=4, rows=2)
    ways = Counter(edge.parent for edge in small.edges)
    assert sorted(ways[root] for root in small.roots) == [1, 1, 2]
    for root in small.roots:
        best = max(graph.nodes[e.child].ratio for e in graph.edges if e.parent == root)
        assert any(small.nodes[e.child].ratio == best for e in small.edges if e.parent == root)


@pytest.mark.parametrize(("across", "rows"), [(1, 9), (9, 1)])
def test_roots_without_room_are_an_error(across, rows):
    graph = build_graph(graded([(0, 1), (20, 21), (40, 41, 42)]))
    with pytest.raises(OptionError, match=r"graph\(roots=1\)"):
        trimmed(graph, across, rows)
