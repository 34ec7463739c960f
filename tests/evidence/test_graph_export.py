"""Graphs as JSON and for Graphviz."""

import dataclasses
import json
import re
from math import isnan, nan

import pytest

from suffice.errors import OptionError
from suffice.evidence.graph import Edge, Graph, Node
from suffice.perturb import Grid

NASTY = 'a "quoted\\" <name> & \\n line\nbreak \x00\udcff'


@pytest.fixture
def graph():
    return Graph(
        name="cat.jpg",
        label="tabby",
        target=281,
        confidence=0.9,
        baseline_confidence=0.02,
        grid=Grid(3),
        formula="(P0 ∧ P4 ∧ P8) ∨ (P1)",
        nodes=(
            Node(0, (0, 4, 8), 0.95, 0.855, mse=0, hidden_children=1204),
            Node(1, (1,), 0.9, 0.81, mse=1),
            Node(2, (0, 4), 0.5, 0.45, unevaluated_children=2),
        ),
        edges=(Edge(0, 2, 8, 0.45),),
        roots=(0, 1),
        mses_found=2,
        hidden={2: 2, 1: 1302},
        stopped="beam empty",
        searched=5,
        truncated=False,
        questions=77,
        settings={"threshold": 0.9, "baseline": "blur"},
    )


def test_json_comes_back_the_same(graph):
    assert Graph.from_json(graph.to_json()) == graph
    nasty = dataclasses.replace(graph, name=NASTY, label=NASTY)
    assert Graph.from_json(nasty.to_json()) == nasty


def test_json_has_the_documented_keys(graph):
    record = json.loads(graph.to_json())
    assert record["format"] == "suffice.graph/1"
    assert record["grid"] == 3
    assert record["hidden"] == {"2": 2, "1": 1302}
    assert record["nodes"][0] == {
        "id": 0,
        "cells": [0, 4, 8],
        "ratio": 0.95,
        "confidence": 0.855,
        "is_mse": True,
        "mse": 0,
        "hidden_children": 1204,
        "unevaluated_children": 0,
    }
    assert record["nodes"][2]["is_mse"] is False
    assert record["edges"] == [{"parent": 0, "child": 2, "removed": 8, "drop": 0.45}]
    assert graph.to_json() == graph.to_json()


def test_json_never_says_nan(graph):
    odd = dataclasses.replace(graph, confidence=nan, nodes=(Node(0, (1,), nan, nan),), edges=(Edge(0, 0, 1, nan),))
    record = json.loads(odd.to_json(), parse_constant=pytest.fail)
    assert record["confidence"] is None
    back = Graph.from_json(odd.to_json())
    assert isnan(back.confidence)
    assert isnan(back.nodes[0].ratio)
    assert isnan(back.edges[0].drop)


@pytest.mark.parametrize("text", ['{"nodes": []}', '{"format": "other/1"}', "[1]"])
def test_other_json_is_refused(text):
    with pytest.raises(OptionError, match=r"suffice\.graph/1"):
        Graph.from_json(text)


STRING = r'"(?:[^"\\]|\\.)*"'
ATTRIBUTES = rf"\[\w+=(?:{STRING}|[\w.]+)(?:, \w+=(?:{STRING}|[\w.]+))*\]"
STATEMENT = re.compile(
    rf"  (?:graph|node|edge|\w+|\w+(?: -> \w+)+) {ATTRIBUTES};|  \{{rank=same; (?:\w+; ?)+\}}", re.DOTALL
)


@pytest.mark.parametrize("name", ["cat.jpg", NASTY])
def test_dot_is_a_list_of_statements(graph, name):
    dot = dataclasses.replace(graph, name=name).to_dot()
    first, *statements, last, end = dot.split("\n")
    assert (first, last, end) == ("digraph evidence {", "}", "")
    assert all(STATEMENT.fullmatch(line) for line in statements), statements
    dot.encode()  # no lone surrogates


def test_dot_has_every_node_edge_and_level(graph):
    dot = graph.to_dot()
    assert len(re.findall(r"^  n\d+ \[", dot, re.MULTILINE)) == 3
    assert re.findall(r"^  n(\d+) -> n(\d+) \[label=\"−P8\", penwidth=2\]", dot, re.MULTILINE) == [("0", "2")]
    assert "level3 -> level2 -> level1 [style=invis]" in dot
    assert "{rank=same; level2; n2;}" in dot
    assert dot.count("peripheries=2") == 2
    assert "+1\u2009204 more" in dot
    assert "+1\u2009302 more" in dot
    assert dataclasses.replace(graph, nodes=(), edges=()).to_dot().endswith("}\n")
