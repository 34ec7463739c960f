"""The structured attention graph against what its definition says, written out slowly."""

import itertools
import random
from math import isnan, nan

import pytest
import torch

from suffice.errors import OptionError
from suffice.evidence.graph.graph import Edge, build_graph
from suffice.evidence.settings import Settings
from suffice.testing import WeightedSum
from suffice.testing.truth import minimal_sufficient_sets
from tests.evidence.made import make_evidence, subsets

EVERYTHING = {"roots": None, "max_nodes": 10**6, "children": 10**6}


def random_evidence(seed, side=7, missing=0.0):
    """A few overlapping MSEs with random ratios below them, some of which were never evaluated."""
    chance = random.Random(seed)
    mses = sorted({tuple(sorted(chance.sample(range(side**2), chance.randint(3, 6)))) for _ in range(4)})
    table = {mse: 0.9 + 0.1 * chance.random() for mse in mses}
    for cells in itertools.chain.from_iterable(subsets(mse) for mse in mses):
        if cells not in table and chance.random() >= missing:
            table[cells] = round(chance.random() * 0.9, 2)  # rounded, so that there are ties
    return make_evidence(table, mses, side), table


def without(cells, cell):
    return tuple(c for c in cells if c != cell)


def best_children(table, cells, children, expand_at):
    """The children of a region by the definition, best first."""
    if table[cells] <= expand_at or len(cells) == 1:
        return []
    evaluated = [(cell, without(cells, cell)) for cell in cells if without(cells, cell) in table]
    return sorted(evaluated, key=lambda way: (-table[way[1]], way[0]))[:children]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("children", "expand_at"), [(3, 0.4), (2, 0.0), (99, 0.6)])
def test_the_dag_is_what_its_definition_says(seed, missing, children, expand_at):
    evidence, table = random_evidence(seed, missing=missing)
    graph = build_graph(evidence, roots=None, children=children, expand_at=expand_at, max_nodes=10**6)

    regions, edges = set(), set()
    waiting = [mse.cells for mse in evidence.mses]
    while waiting:
        cells = waiting.pop()
        if cells not in regions:
            regions.add(cells)
            below = best_children(table, cells, children, expand_at)
            edges |= {(cells, rest, cell) for cell, rest in below}
            waiting += [rest for _, rest in below]
    cells_of = {node.id: node.cells for node in graph.nodes}
    assert len(graph.nodes) == len(regions)
    assert set(cells_of.values()) == regions
    assert len(graph.edges) == len(edges)
    assert {(cells_of[e.parent], cells_of[e.child], e.removed) for e in graph.edges} == edges


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("max_nodes", [1, 2, 9, 40])
def test_nothing_is_left_out_without_being_counted(seed, merge, max_nodes):
    evidence, table = random_evidence(seed, missing=0.2)
    graph = build_graph(evidence, roots=3, overlap=None, merge=merge, max_nodes=max_nodes)
    assert len(graph.nodes) <= max_nodes
    assert [node.id for node in graph.nodes] == list(range(len(graph.nodes)))
    assert len(graph.roots) == min(3, len(evidence.mses), max_nodes)
    for node in graph.nodes:
        drawn = [edge for edge in graph.edges if edge.parent == node.id]
        followed = node.ratio > 0.4 and len(node.cells) > 1
        missing = sum(without(node.cells, cell) not in table for cell in node.cells)
        assert node.unevaluated_children == (missing if followed else 0)
        total = len(drawn) + node.hidden_children + node.unevaluated_children
        assert total == (len(node.cells) if followed else 0)
        assert len(drawn) <= 3
    drawn_cells = {node.cells for node in graph.nodes}
    below = {s for root in graph.roots for s in subsets(graph.nodes[root].cells) if s in table} - drawn_cells
    assert graph.hidden == {n: sum(len(s) == n for s in below) for n in sorted({len(s) for s in below}, reverse=True)}
    assert graph.hidden_mses == sum(mse.cells not in drawn_cells for mse in evidence.mses)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("merge", [True, False])
def test_nodes_and_edges_carry_the_right_numbers(seed, merge):
    evidence, table = random_evidence(seed)
    graph = build_graph(evidence, merge=merge)
    for node in graph.nodes:
        assert node.ratio == pytest.approx(table[node.cells])
        assert node.confidence == pytest.approx(0.8 * table[node.cells])
        assert node.is_mse == (node.cells in [mse.cells for mse in evidence.mses])
        assert node.mse is None or evidence.mses[node.mse].cells == node.cells
    for edge in graph.edges:
        parent, child = graph.nodes[edge.parent], graph.nodes[edge.child]
        assert set(parent.cells) - set(child.cells) == {edge.removed}
        assert len(parent.cells) == len(child.cells) + 1
        assert edge.drop == pytest.approx(parent.ratio - child.ratio)
    assert list(graph.by_size) == sorted(graph.by_size, reverse=True)
    assert sorted(i for ids in graph.by_size.values() for i in ids) == list(range(len(graph.nodes)))


@pytest.mark.parametrize(("alone", "expected"), [(0.2, 0.5 * 0.8 + 0.5 * 0.2), (0.9, 0.5 * 0.8)])
def test_confidences_of_ratios_above_the_baseline(alone, expected):
    settings = Settings(grid=3, above_baseline=True)
    evidence = make_evidence(
        {(0, 1): 1.0, (0,): 0.5}, [(0, 1)], 3, settings=settings, confidence=0.8, baseline_confidence=alone
    )
    assert [node.confidence for node in build_graph(evidence).nodes] == pytest.approx([0.8, expected])


def test_the_cut_takes_the_strongest_of_a_step():
    table = {(0, 1, 2): 1.0, (1, 2): 0.5, (0, 2): 0.7, (0, 1): 0.6, (0,): 0.3, (1,): 0.2, (2,): 0.1}
    graph = build_graph(make_evidence(table, [(0, 1, 2)], side=2), max_nodes=3)
    assert [node.cells for node in graph.nodes] == [(0, 1, 2), (0, 2), (0, 1)]
    assert [node.hidden_children for node in graph.nodes] == [1, 2, 2]
    assert graph.hidden == {2: 1, 1: 3}


def test_ties_go_to_the_lowest_cell():
    table = {(0, 1, 2): 1.0, (1, 2): 0.3, (0, 2): 0.3, (0, 1): 0.3}
    graph = build_graph(make_evidence(table, [(0, 1, 2)], side=2), children=2)
    assert [edge.removed for edge in graph.edges] == [0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_the_forest_has_a_node_for_every_way(seed):
    evidence, table = random_evidence(seed)

    def size(cells):
        return 1 + sum(size(rest) for _, rest in best_children(table, cells, 3, 0.4))

    forest = build_graph(evidence, roots=None, merge=False, max_nodes=10**6)
    assert len(forest.nodes) == sum(size(mse.cells) for mse in evidence.mses)
    assert len(forest.edges) == len(forest.nodes) - len(forest.roots)
    assert sorted(edge.child for edge in forest.edges) == sorted({n.id for n in forest.nodes} - set(forest.roots))
    merged = build_graph(evidence, roots=None, max_nodes=10**6)
    assert {node.cells for node in merged.nodes} == {node.cells for node in forest.nodes}


def test_equal_regions_appear_twice_in_the_forest_and_once_in_the_dag():
    table = dict.fromkeys(subsets((0, 1, 2)), 0.95)
    evidence = make_evidence(table, [(0, 1, 2)], side=2)
    assert len(build_graph(evidence).nodes) == 7
    assert len(build_graph(evidence, merge=False).nodes) == 1 + 3 + 6


def test_the_whole_lattice_below_an_oracles_truth():
    oracle = WeightedSum({0: 1.0, 4: 1.2, 7: 0.8, 8: 1.5}, threshold=2.5, grid=3, link="smooth")
    truth = minimal_sufficient_sets(oracle)
    table = {}
    full = oracle.strength(torch.ones(1, 9, dtype=torch.bool)).item()
    for cells in itertools.chain.from_iterable(map(subsets, truth)):
        visible = torch.zeros(1, 9, dtype=torch.bool)
        visible[0, list(cells)] = True
        table[cells] = oracle.strength(visible).item() / full
    graph = build_graph(make_evidence(table, truth, side=3), expand_at=0.0, **EVERYTHING)
    assert {node.cells: pytest.approx(node.ratio) for node in graph.nodes} == table
    assert len(graph.edges) == sum(len(cells) for cells in table if len(cells) > 1)
    assert graph.hidden == {}
    assert all(node.hidden_children == node.unevaluated_children == 0 for node in graph.nodes)


def test_which_mses_are_roots():
    mses = [(0, 1, 2), (1, 2, 3), (3, 4, 5), (6, 7)]
    evidence = make_evidence(dict.fromkeys(mses, 0.95), mses, side=3)

    def roots(**options):
        graph = build_graph(evidence, **options)
        return [graph.nodes[root].cells for root in graph.roots]

    assert roots() == [(6, 7), (0, 1, 2), (3, 4, 5)]
    assert roots(roots=2) == [(6, 7), (0, 1, 2)]
    assert roots(overlap=2) == [(6, 7), (0, 1, 2), (3, 4, 5)]
    assert roots(roots=9, overlap=0) == [(6, 7), (0, 1, 2), (3, 4, 5)]
    assert roots(roots=9, overlap=None) == [(6, 7), (0, 1, 2), (3, 4, 5), (1, 2, 3)]
    assert roots(roots=None) == [(6, 7), (0, 1, 2), (3, 4, 5), (1, 2, 3)]
    assert roots(max_nodes=1) == [(6, 7)]
    assert build_graph(evidence).hidden_mses == 1


def test_an_mse_below_another_is_one_node():
    """With ``minimal="single"`` a smaller sufficient set can lie below a dip."""
    table = {(0, 1, 2): 0.95, (0, 1): 0.5, (1, 2): 0.45, (0, 2): 0.1, (1,): 0.93, (0,): 0.1, (2,): 0.1}
    graph = build_graph(make_evidence(table, [(0, 1, 2), (1,)], side=2), overlap=None)
    assert [graph.nodes[root].cells for root in graph.roots] == [(1,), (0, 1, 2)]
    assert [node.mse for node in graph.nodes if node.cells == (1,)] == [1]
    assert sum(edge.child == 0 for edge in graph.edges) == 2


def test_no_mse_and_an_empty_mse():
    none = build_graph(make_evidence({}, []))
    assert (none.nodes, none.edges, none.roots, none.hidden) == ((), (), (), {})
    assert none.evidence.formula() == "⊥"
    empty = build_graph(make_evidence({(): 0.97}, [()]))
    assert [(node.cells, node.is_mse) for node in empty.nodes] == [((), True)]
    assert (empty.edges, empty.hidden, empty.evidence.formula()) == ((), {}, "⊤")


def test_a_single_cell_is_not_emptied():
    table = {(3,): 0.95, (): 0.5}
    graph = build_graph(make_evidence(table, [(3,)], side=2))
    assert len(graph.nodes) == 1
    assert graph.hidden == {}
    assert graph.nodes[0].unevaluated_children == 0


@pytest.mark.parametrize("side", [8, 9, 14])
def test_grids_that_fill_a_word_or_take_several(side):
    last = side**2 - 1
    cells = (0, 63, last) if side > 8 else (0, 62, 63)
    table = {s: 0.95 if len(s) == 3 else 0.5 for s in subsets(cells)}
    graph = build_graph(make_evidence(table, [cells], side=side))
    assert {node.cells for node in graph.nodes} == set(table)


def test_what_is_not_a_number_comes_last_and_is_not_followed():
    table = {(0, 1, 2): 0.95, (0, 1): nan, (0, 2): 0.1, (1, 2): 0.6, (0,): 0.1, (1,): 0.2, (2,): 0.3}
    graph = build_graph(make_evidence(table, [(0, 1, 2)], side=2), children=3)
    assert [node.cells for node in graph.nodes[:4]] == [(0, 1, 2), (1, 2), (0, 2), (0, 1)]
    assert isnan(graph.nodes[3].ratio)
    assert all(edge.parent in (0, 1) for edge in graph.edges)


@pytest.mark.parametrize("option", ["roots", "children", "max_nodes"])
def test_numbers_that_cannot_be(option):
    with pytest.raises(OptionError, match=f"{option}=0"):
        build_graph(make_evidence({(0,): 1.0}, [(0,)], side=2), **{option: 0})


def test_evidence_makes_its_own_graph():
    evidence, _ = random_evidence(1)
    assert evidence.graph(children=2) == build_graph(evidence, children=2)


def test_how_much_a_deletion_hurt():
    assert [Edge(0, 1, 5, drop).strength for drop in (-0.1, 0.2, 0.59, 0.6)] == [0, 1, 1, 2]
