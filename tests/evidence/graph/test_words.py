"""What the picture says in words."""

import dataclasses

import pytest

from suffice.draw.words import percent, text_width
from suffice.evidence import MSE, Settings
from suffice.evidence.graph.graph import build_graph
from suffice.evidence.graph.words import about_mse, facts, formula_lines, notice, summary
from tests.evidence.made import make_evidence


def graph_of(*cells, side=14, **changes):
    evidence = make_evidence({}, [], side, **changes)
    return build_graph(dataclasses.replace(evidence, mses=tuple(MSE(c, 0.95) for c in cells)), roots=2)


def flat(lines):
    return " ".join(word for line in lines for word, _ in line).replace("\u00a0", " ")


@pytest.mark.parametrize("room", [120, 200, 400, 900])
@pytest.mark.parametrize("count", [1, 2, 7, 300])
@pytest.mark.parametrize("size", [1, 3, 6, 40])
def test_a_formula_has_two_lines_and_whole_terms(room, count, size):
    graph = graph_of(*(tuple(range(i % 150, i % 150 + size)) for i in range(count)))
    lines = formula_lines(graph, 12, room)
    assert len(lines) <= 2
    assert all(text_width(" ".join(word for word, _ in line), 12) <= room + 1e-6 for line in lines)
    said = flat(lines)
    assert said.count("(") == said.count(")")
    terms = said.split(" … and ")[0].split(" ∨ ")
    more = int(said.split(" … and ")[1].split()[0]) if "…" in said else 0
    assert len(terms) + more == count
    for term in terms:
        assert term.count("P") == size or term == f"({size} cells)"


def test_terms_that_are_drawn_come_first_and_in_ink():
    graph = graph_of((0, 1, 2), (5, 6), (1, 2, 3))
    lines = formula_lines(graph, 12, 900)
    assert flat(lines) == "(P5 ∧ P6) ∨ (P0 ∧ P1 ∧ P2) ∨ (P1 ∧ P2 ∧ P3)"
    inked = [drawn for line in lines for _, drawn in line]
    assert inked == sorted(inked, reverse=True)
    assert 0 < sum(inked) < len(inked)


def test_summaries():
    assert summary(graph_of()) == "no minimal sufficient explanation"
    assert summary(graph_of((1, 2)), short=True) == "1 MSE"
    assert summary(graph_of((1,), (2,), (3,))) == "3 minimal sufficient explanations, 2 drawn"


def test_a_notice_is_there_where_there_is_nothing_to_see():
    assert notice(graph_of((1, 2))) == []
    nan = graph_of(stopped="not a number")
    assert notice(nan) == ["Nothing to explain", nan.evidence.why]
    fails = graph_of(stopped="whole fails", settings=Settings(grid=14, keeps="top-1"), levels=0)
    assert notice(fails) == ["Nothing to explain", fails.evidence.why]
    assert notice(graph_of())[:2] == [
        "No sufficient explanation found",
        f"No region of up to 8 cells that the search looked at is enough: a ratio ≥ {percent(0.9)}.",
    ]
    assert "is enough: it stays the first class" in notice(graph_of(settings=Settings(grid=14, keeps="top-1")))[1]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, f"enough: a ratio ≥ {percent(0.9)}"),
        ({"strict": True, "threshold": 0.8}, f"enough: a ratio > {percent(0.8)}"),
        ({"above_baseline": True}, f"enough: ratio above the baseline's ≥ {percent(0.9)}"),
        ({"keeps": "top-1"}, "enough: it stays the first class"),
        ({"keeps": "both"}, f"enough: a ratio ≥ {percent(0.9)}, and it stays the first class"),
    ],
)
def test_what_is_enough_is_said(settings, expected):
    assert expected in facts(graph_of((1, 2), settings=Settings(grid=14, **settings)), None)


def test_a_ratio_to_nothing_is_not_printed():
    hopeless = facts(graph_of(stopped="no confidence", confidence=1e-7, baseline_confidence=0.02), None)
    assert f"baseline blur, alone: {percent(0.02)} confidence" in hopeless


def test_all_that_is_known_of_an_mse():
    mse = MSE((1, 2), 0.95, True, 0.05, "deletion", 321, 0.4, {"jpeg": 0.93})
    assert about_mse(mse, 2) == (
        "MSE 3: no proper subset suffices, 0.050 above the threshold, found by deletion from the whole image, "
        "found within 321 questions, ratio 0.400 over the second baseline, ratio 0.930 under jpeg"
    )
    assert about_mse(MSE((1, 2), 0.95), 0) == "MSE 1: no single cell can go"
