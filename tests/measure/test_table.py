"""Methods × models × metrics: the table, its marks, its files."""

import csv
import re

import pyarrow.parquet as pq
import pytest
import torch

from suffice.attribute import attribute
from suffice.errors import OptionError
from suffice.measure import ScoreTable, score, score_table
from suffice.measure.table import TableRow
from tests.attribute.nets import pictures, small_cnn

METRICS = ("insertion", "deletion", "sparseness")


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


def test_the_table_has_what_each_call_alone_gives():
    net, images = small_cnn(), pictures(3)
    done = []
    table = score_table(
        [net], images, ["gradient", "grad-cam"], METRICS, options={"gradient": {"reduction": "sum-abs"}},
        on_progress=lambda n, total: done.append((n, total)),
    )  # fmt: skip
    assert [(r.model, r.method) for r in table.rows] == [("small-cnn", "gradient"), ("small-cnn", "grad-cam")]
    maps = attribute(net, images, "gradient", reduction="sum-abs")
    alone = score(net, images, maps, list(METRICS))
    for metric in METRICS:
        torch.testing.assert_close(table.rows[0].values[metric], alone[metric].values)
        assert table.rows[0].mean(metric) == pytest.approx(alone[metric].mean)
        assert table.rows[0].error(metric) == pytest.approx(alone[metric].standard_error)
    assert done[-1] == (6, 6)


def test_methods_that_do_not_fit_are_left_out():
    table = score_table([small_cnn()], pictures(2), ["rollout", "gradient"], ["sparseness"])
    assert [r.method for r in table.rows] == ["gradient"]
    assert table.notes() == []
    with pytest.raises(OptionError, match="None of rollout fits small-cnn"):
        score_table([small_cnn()], pictures(2), ["rollout"], ["sparseness"])


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


def test_files(known, tmp_path):
    known.write(tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "scores.csv").open(encoding="utf-8")))
    assert float(rows[0]["insertion"]) == pytest.approx(known.rows[0].mean("insertion"))
    long = pq.read_table(tmp_path / "out" / "scores.parquet")
    assert long.num_rows == 24
    assert long.column("insertion").to_pylist()[:2] == pytest.approx([0.8, 0.9])
    assert (tmp_path / "out" / "scores.md").exists()
    assert (tmp_path / "out" / "scores.tex").exists()


def test_images_that_a_metric_leaves_out_do_not_count():
    values = {"insertion": torch.tensor([0.5, float("nan"), 0.7])}
    assert TableRow("a", "b", values, 1.0).mean("insertion") == pytest.approx(0.6)
    assert TableRow("a", "b", values, 1.0).error("insertion") == pytest.approx(0.1)
