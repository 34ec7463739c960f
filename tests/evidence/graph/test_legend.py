"""The legend explains every mark that appears, and no other."""

import dataclasses
from xml.etree import ElementTree

import pytest

from suffice.evidence import MSE
from suffice.evidence.graph.graph import build_graph
from suffice.evidence.graph.legend import entries
from tests.evidence.made import make_evidence

FULL, SINGLE = "MSE: no proper subset is enough", "MSE: no single cell can go"
DELETION = "found by deletion from\nthe whole image"
TABLE = {(0, 1, 2): 0.95, (0, 1): 0.9, (0, 2): 0.5, (1, 2): 0.1, (0,): 0.1, (1,): 0.05, (4, 5): 0.93}


def words(graph, numbered=""):
    return [entry.words for entry in entries(graph, numbered)]


def with_mses(*mses):
    evidence = make_evidence(TABLE, [(0, 1, 2), (4, 5)], side=3)
    return build_graph(dataclasses.replace(evidence, mses=mses), children=2)


@pytest.mark.parametrize("certified", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("way", ["beam", "deletion"])
def test_frames_and_ways(certified, way):
    graph = with_mses(MSE((0, 1, 2), 0.95, certified[0]), MSE((4, 5), 0.93, certified[1], found=way))
    said = words(graph)
    assert (FULL in said) == (True in certified)
    assert (SINGLE in said) == (False in certified)
    assert (DELETION in said) == (way == "deletion")
    svg = graph.to_svg()
    assert (svg.count("stroke-dasharray") > 0) == (False in certified)


def test_only_strengths_that_appear_are_explained():
    graph = build_graph(make_evidence(TABLE, [(0, 1, 2)], side=3), children=3, expand_at=0.92)
    assert {edge.strength for edge in graph.edges} == {0, 1, 2}
    assert "cell removed: ratio fell\n< 20, 20–60, ≥ 60 points" in words(graph)
    weak = dataclasses.replace(graph, edges=tuple(e for e in graph.edges if e.strength == 0))
    assert "cell removed: ratio fell\n< 20 points" in words(weak)
    assert not any("removed" in line for line in words(dataclasses.replace(graph, edges=())))


def test_what_is_left_out_and_numbers_are_explained_where_they_are():
    graph = with_mses(MSE((0, 1, 2), 0.95, True))
    assert graph.nodes[0].hidden_children == 1
    assert "evaluated, not drawn" in words(graph)
    whole = build_graph(make_evidence({(0, 1): 0.95, (0,): 0.1, (1,): 0.1}, [(0, 1)], side=3))
    assert "evaluated, not drawn" not in words(whole)
    assert "cell of that number" in words(graph, "cell of that number")
    assert words(build_graph(make_evidence({(): 0.95}, [()], side=3)), "cell of that number") == [SINGLE]
    unasked = build_graph(make_evidence({(0, 1): 0.95}, [(0, 1)], side=3))
    assert "below it, nothing was evaluated" in words(unasked)


@pytest.mark.parametrize("layout", ["page", "column", "slide"])
def test_every_layout_prints_all_of_it(layout):
    graph = with_mses(MSE((0, 1, 2), 0.95, True), MSE((4, 5), 0.93, found="deletion"))
    svg = ElementTree.fromstring(graph.to_svg(layout=layout))
    said = " ".join("".join(e.itertext()) for e in svg.iter("{http://www.w3.org/2000/svg}text"))
    for line in words(graph):
        assert line.replace("\n", " ") in said


def test_there_is_no_legend_without_a_graph():
    assert "ratio)" not in build_graph(make_evidence({}, [])).to_svg()
