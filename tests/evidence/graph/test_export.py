"""Graphs as JSON and for Graphviz."""

import dataclasses
import json
import re
from math import isnan, nan

import pytest
import torch

from suffice.errors import OptionError
from suffice.evidence import MSE
from suffice.evidence.graph.graph import Edge, Graph, Node
from tests.evidence.made import make_evidence

NASTY = 'a "quoted\\" <name> & \\n line\nbreak \x00\udcff'


@pytest.fixture
def graph():
    evidence = make_evidence({(0, 4, 8): 0.95, (1,): 0.9}, [(0, 4, 8), (1,)], side=3, confidence=0.9)
    nodes = (
        Node(0, (0, 4, 8), 0.95, 0.855, mse=0, hidden_children=1204),
        Node(1, (1,), 0.9, 0.81, mse=1),
        Node(2, (0, 4), 0.5, 0.45, unevaluated_children=2),
    )
    evidence = dataclasses.replace(
        evidence,
        mses=(
            MSE((0, 4, 8), 0.95, True, 0.05, "deletion", 321, 0.4, {"jpeg": 0.93, "shift": 0.2}),
            MSE((1,), 0.9),
        ),
        contrastive=(MSE((0, 4, 8), 0.95),),
        necessary=((0, 1), (1, 4)),
        refined={6: (MSE((0, 1, 35), 0.91),)},
        spent={"levels": 90, "pruning": 9},
        mended=1,
    )
    return Graph(evidence, nodes, (Edge(0, 2, 8, 0.45),), (0, 1), {2: 2, 1: 1302})


def changed(graph, **facts):
    return dataclasses.replace(graph, evidence=dataclasses.replace(graph.evidence, **facts))


def test_json_comes_back_the_same(graph):
    for one in (graph, changed(graph, name=NASTY, label=NASTY)):
        back = Graph.from_json(one.to_json())
        assert back == one
        assert back.to_json() == one.to_json()
        assert back.evidence.mses == one.evidence.mses
        for field in dataclasses.fields(one.evidence):
            if field.name not in ("regions", "ratios"):
                assert getattr(back.evidence, field.name) == getattr(one.evidence, field.name), field.name
        assert back.to_svg() == one.to_svg()


def test_what_was_not_asked_is_null_and_comes_back_as_none(graph):
    bare = changed(graph, contrastive=None, necessary=None, refined={}, mses=graph.evidence.mses[1:])
    record = json.loads(bare.to_json())
    assert record["contrastive"] is record["necessary"] is record["mses"][0]["under"] is None
    back = Graph.from_json(bare.to_json()).evidence
    assert back.contrastive is back.necessary is back.mses[0].margin is back.mses[0].second_ratio is None
    odd = dataclasses.replace(graph.evidence.mses[0], under={"jpeg": nan})
    again = Graph.from_json(changed(graph, mses=(odd, graph.evidence.mses[1])).to_json())
    assert isnan(again.evidence.mses[0].under["jpeg"])


def test_json_has_the_documented_keys(graph):
    record = json.loads(graph.to_json())
    assert record["format"] == "suffice.graph/3"
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
    assert record["mses"][0] == {
        "cells": [0, 4, 8],
        "ratio": 0.95,
        "certified": True,
        "margin": 0.05,
        "found": "deletion",
        "asked": 321,
        "second_ratio": 0.4,
        "under": {"jpeg": 0.93, "shift": 0.2},
        "stays": None,
    }
    assert record["why"] == graph.evidence.why
    assert record["refined"]["6"][0]["cells"] == [0, 1, 35]
    assert record["formula"] == "(P0 ∧ P4 ∧ P8) ∨ (P1)"
    assert record["settings"]["threshold"] == 0.9
    assert list(record)[:2] == ["format", "name"]


def test_a_baseline_without_a_name_is_called_custom(graph):
    custom = changed(graph, settings=graph.evidence.settings.changed(baseline=torch.zeros(3, 2, 2)))
    assert json.loads(custom.to_json())["settings"]["baseline"] == "custom"


def test_json_never_says_nan(graph):
    odd = dataclasses.replace(
        changed(graph, confidence=nan), nodes=(Node(0, (1,), nan, nan),), edges=(Edge(0, 0, 1, nan),)
    )
    record = json.loads(odd.to_json(), parse_constant=pytest.fail)
    assert record["confidence"] is None
    back = Graph.from_json(odd.to_json())
    assert isnan(back.evidence.confidence)
    assert isnan(back.nodes[0].ratio)
    assert isnan(back.edges[0].drop)


@pytest.mark.parametrize("text", ['{"nodes": []}', '{"format": "other/1"}', "[1]"])
def test_other_json_is_refused(text):
    with pytest.raises(OptionError, match=r"suffice\.graph/3"):
        Graph.from_json(text)


STRING = r'"(?:[^"\\]|\\.)*"'
ATTRIBUTES = rf"\[\w+=(?:{STRING}|[\w.]+)(?:, \w+=(?:{STRING}|[\w.]+))*\]"
STATEMENT = re.compile(
    rf"  (?:graph|node|edge|\w+|\w+(?: -> \w+)+) {ATTRIBUTES};|  \{{rank=same; (?:\w+; ?)+\}}", re.DOTALL
)


@pytest.mark.parametrize("name", ["cat.jpg", NASTY])
def test_dot_is_a_list_of_statements(graph, name):
    dot = changed(graph, name=name).to_dot()
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
    assert dot.count("dashed") == 1
    assert "ratio 0.400 over the second baseline" in dot
    assert "+1\u2009204 more" in dot
    assert "+1\u2009302 more" in dot
    assert dataclasses.replace(graph, nodes=(), edges=()).to_dot().endswith("}\n")


def test_networkx_gets_nodes_and_edges(graph):
    made = graph.to_networkx()
    assert sorted(made.nodes) == [0, 1, 2]
    assert made.nodes[2]["cells"] == (0, 4)
    assert "found" not in made.nodes[2]
    assert (made.nodes[0]["found"], made.nodes[0]["margin"], made.nodes[0]["id"]) == ("deletion", 0.05, 0)
    assert list(made.edges(data=True)) == [(0, 2, {"removed": 8, "drop": 0.45})]
