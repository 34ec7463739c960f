"""Tables of the documentation, made to fit their page."""

import sys
from pathlib import Path

import pytest
from docutils import nodes
from docutils.core import publish_doctree

sys.path.append(str(Path(__file__).parents[1] / "docs"))
narrow_tables = pytest.importorskip("narrow_tables")


def table_of(*rows: tuple[str, ...]) -> nodes.table:
    text = ".. list-table::\n   :header-rows: 1\n\n"
    text += "".join("".join(f"   {'*' if i == 0 else ' '} - {cell}\n" for i, cell in enumerate(row)) for row in rows)
    return next(publish_doctree(text).findall(nodes.table))


def shown(table: nodes.table) -> list[list[str]]:
    narrow_tables.fit(table)
    return [[entry.astext() for entry in row] for row in table.findall(nodes.row)]


def test_a_model_stands_once_above_its_rows():
    table = table_of(("model", "method", "x"), ("a", "rise", "1"), ("a", "tis", "2"), ("b", "rise", "3"))
    assert shown(table) == [["method", "x"], ["a"], ["rise", "1"], ["tis", "2"], ["b"], ["rise", "3"]]
    across = [entry for entry in table.findall(nodes.entry) if "model" in entry["classes"]]
    assert [entry["morecols"] for entry in across] == [1, 1]
    assert [group["cols"] for group in table.findall(nodes.tgroup)] == [2]


def test_other_tables_of_models_stay_as_they_are():
    rows = [["model", "images"], ["a", "1"], ["b", "2"]]
    assert shown(table_of(*map(tuple, rows))) == rows


def test_errors_stay_beside_their_means_while_there_is_room():
    assert shown(table_of(("x", "y"), ("a", "0.5 ± 0.1")))[1][1] == "0.5\u00a0±\u00a00.1"
    many = table_of(("insertion/gray",) * 8, ("0.5 ± 0.1",) * 8)
    heads, values = shown(many)
    assert set(heads) == {"insertion/\u200bgray"}
    assert set(values) == {"0.5 ±\u00a00.1"}
    assert "small" not in many["classes"]


@pytest.mark.parametrize(("columns", "small"), [(10, False), (11, True)])
def test_very_many_columns_are_small(columns, small):
    table = table_of(("x",) * columns, ("1",) * columns)
    shown(table)
    assert ("small" in table["classes"]) is small
