"""The table, its marks, its files."""

import csv
import re
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
import torch

from suffice.attribution import attribute
from suffice.errors import OptionError
from suffice.metrics import ScoreTable, measure
from suffice.metrics.score_table import TableRow
from tests.attribution.nets import pictures, small_cnn


def row(method, insertion, deletion):
    values = {"insertion": torch.tensor(insertion), "deletion": torch.tensor(deletion)}
    return TableRow("net_1", method, values, 0.5)


@pytest.fixture
def known():
    better = [0.8, 0.9, 0.7, 0.85, 0.75, 0.8, 0.9, 0.95]
    worse = [v - 0.3 + 0.01 * i for i, v in enumerate(better)]
    nearly = [v - 0.01 * (-1) ** i for i, v in enumerate(worse)]
    rows = (row("good", better, [1 - v for v in better]), row("poor", worse, nearly), row("fair", nearly, worse))
    return ScoreTable(rows, ("insertion", "deletion"), "default", 8)


def test_best_second_and_significance_in_both_directions(known):
    insertion, deletion = known.standing("net_1", "insertion"), known.standing("net_1", "deletion")
    assert insertion.best == "good"
    assert insertion.p < 0.05
    assert deletion.best == "good"  # lower is better
    assert any("good is clearly better than" in note for note in known.notes())


def test_markdown_and_latex_mark_the_best(known):
    markdown, latex = known.to_markdown(), known.to_latex()
    assert "| insertion ↑ | deletion ↓ |" in markdown
    good = next(line for line in markdown.splitlines() if "| good |" in line)
    assert good.count("**") == 4
    assert len(re.findall(r"\| \*[^*]", markdown)) == 2
    assert "net\\_1 & good & \\textbf{0.831 $\\pm$" in latex
    assert latex.count("\\underline{") == 2


def test_rows_in_order_of_a_metric(known):
    rows = (replace(known.rows[0], values={"insertion": torch.tensor([float("nan")] * 8)}), *known.rows[1:])
    assert [r.method for r in known.ordered("insertion").rows] == ["good", "poor", "fair"]
    assert [r.method for r in known.ordered("deletion").rows] == ["good", "poor", "fair"]
    assert [r.method for r in replace(known, rows=rows).ordered("insertion").rows] == ["poor", "fair", "good"]


def test_facts_are_columns(known, tmp_path):
    rows = (replace(known.rows[0], facts={"masks": 70.5}), *known.rows[1:])
    made = replace(known, rows=rows)
    assert made.headings[-2:] == ["masks", "s / image"]
    assert [cells[-2:] for cells in made.cells()] == [["70.5", "0.5"], ["", "0.5"], ["", "0.5"]]
    made.write(tmp_path)
    written = list(csv.DictReader((tmp_path / "scores.csv").open(encoding="utf-8")))
    assert [row["masks"] for row in written] == ["70.5", "", ""]
    assert made.to_latex().startswith("\\begin{tabular}{llrrrr}")


def test_files(known, tmp_path):
    known.write(tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "scores.csv").open(encoding="utf-8")))
    assert float(rows[0]["insertion"]) == pytest.approx(known.rows[0]["insertion"].mean)
    long = pq.read_table(tmp_path / "out" / "scores.parquet")
    assert long.num_rows == 24
    assert long.column("insertion").to_pylist()[:2] == pytest.approx([0.8, 0.9])
    assert (tmp_path / "out" / "scores.md").exists()
    assert (tmp_path / "out" / "scores.tex").exists()


def test_images_that_a_metric_leaves_out_do_not_count():
    values = {"insertion": torch.tensor([0.5, float("nan"), 0.7])}
    assert TableRow("a", "b", values, 1.0)["insertion"].mean == pytest.approx(0.6)
    assert TableRow("a", "b", values, 1.0)["insertion"].standard_error == pytest.approx(0.1)
