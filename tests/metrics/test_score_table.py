"""The table, its marks, its files."""

import csv
import re
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
import torch

from suffice.attribution import attribute
from suffice.errors import OptionError
from suffice.metrics import Scores, ScoreTable, measure
from suffice.metrics.score_table import TableRow
from suffice.vision.stream import Skip
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
    assert len(re.findall(r"\| \*[^*]", markdown)) == 4  # two are level
    assert "net\\_1 & good & \\textbf{0.831 $\\pm$" in latex
    assert latex.count("\\underline{") == 4


def test_rows_in_order_of_a_metric(known):
    rows = (replace(known.rows[0], values={"insertion": torch.tensor([float("nan")] * 8)}), *known.rows[1:])
    assert [r.method for r in known.ordered("insertion").rows] == ["good", "poor", "fair"]
    assert [r.method for r in known.ordered("deletion").rows] == ["good", "poor", "fair"]
    assert [r.method for r in replace(known, rows=rows).ordered("insertion").rows] == ["poor", "fair", "good"]


def test_facts_are_columns(known, tmp_path):
    rows = (replace(known.rows[0], facts={"masks": 70.5}), replace(known.rows[1], facts={"masks": 10002.0}))
    made = replace(known, rows=(*rows, *known.rows[2:]))
    assert made.headings[-2:] == ["masks", "s / image"]
    assert [cells[-2:] for cells in made.cells()] == [["70.5", "0.5"], ["10002", "0.5"], ["", "0.5"]]
    made.write(tmp_path)
    written = list(csv.DictReader((tmp_path / "scores.csv").open(encoding="utf-8")))
    assert [row["masks"] for row in written] == ["70.5", "10002.0", ""]
    assert made.to_latex().startswith("\\begin{tabular}{llrrrr}")


def test_how_many_images_were_measured_and_how_many_were_not(known, tmp_path):
    assert "± standard error over 8 images; protocol" in known.to_markdown()
    assert known.counted == "8 images"
    skips = (Skip(2, "a.png", "broken"), Skip(5, "b.png", "broken"))
    made = replace(known, skipped=skips)
    assert "over 8 images (2 skipped); protocol" in made.to_markdown()
    placed = replace(made, index=(0, 1, 3, 4, 5, 6, 7, 8))  # the second has an error in some rows only
    assert placed.counted == "8 images (1 skipped)"
    placed.write(tmp_path)
    assert pq.read_table(tmp_path / "scores.parquet")["index"].to_pylist()[:8] == list(placed.index)
    assert replace(known, images=1).counted == "1 image"


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


@pytest.fixture(scope="module")
def measured():
    """By method, scores of maps that exist."""
    net, images = small_cnn(), pictures(3)
    maps = {name: attribute(net, images, name) for name in ("gradient", "grad-cam")}
    names = ["insertion", "ins-del", "sparseness"]
    return {name: measure(net, images, found, names, steps=3) for name, found in maps.items()}


def test_a_table_is_made_of_scores_that_exist(measured, tmp_path):
    table = ScoreTable.of(measured.values())
    assert [(r.model, r.method) for r in table.rows] == [("small-cnn", "gradient"), ("small-cnn", "grad-cam")]
    assert table.metrics == ("insertion", "ins-del", "sparseness")
    assert (table.protocol, table.images) == ("default", 3)
    for row in table.rows:
        for name in table.metrics:
            torch.testing.assert_close(row.values[name], measured[row.method][name].values)
            assert row[name].mean == pytest.approx(measured[row.method][name].mean)
    assert table.headings == ["model", "method", "insertion ↑", "ins-del ↑", "sparseness"]  # and no times
    assert all(len(cells) == 5 for cells in table.cells())
    table.write(tmp_path)
    assert pq.read_table(tmp_path / "scores.parquet").num_rows == 6
    written = list(csv.DictReader((tmp_path / "scores.csv").open(encoding="utf-8")))
    assert float(written[1]["insertion_standard_error"]) == pytest.approx(table.rows[1]["insertion"].standard_error)


def test_columns_are_metrics_or_parts_of_them(measured):
    table = ScoreTable.of(measured.values(), ["ins-del/deletion", "insertion"])
    assert table.headings[2:4] == ["ins-del/deletion ↓", "insertion ↑"]
    torch.testing.assert_close(
        table.rows[1].values["ins-del/deletion"], measured["grad-cam"]["ins-del"].parts["deletion"].values
    )
    parts = [scores["ins-del/deletion"] for scores in measured.values()]
    assert ScoreTable.of(parts).metrics == ("ins-del/deletion",)
    with pytest.raises(OptionError, match="There are no scores of 'deletion'"):
        ScoreTable.of(measured.values(), ["deletion"])


def test_scores_from_a_file_and_from_memory_make_one_table(measured, tmp_path):
    again = Scores.load(measured["gradient"].save(tmp_path / "scores.safetensors"))
    table = ScoreTable.of([again, measured["grad-cam"]])
    assert [row.method for row in table.rows] == ["gradient", "grad-cam"]


def test_rows_have_the_names_that_they_are_given(measured):
    twice = [measured["gradient"], measured["gradient"]]
    with pytest.raises(OptionError, match="more than one gradient on small-cnn; give a dict"):
        ScoreTable.of(twice)
    table = ScoreTable.of(dict(zip(("one", "two"), twice, strict=True)))
    assert [row.method for row in table.rows] == ["one", "two"]
    images = pictures(1)
    bare = measure(small_cnn(), images, torch.rand(1, 8, 8), "sparseness")
    assert ScoreTable.of([bare]).rows[0].method == "given maps"


def test_what_does_not_fit_into_one_table_is_said(measured):
    net, images = small_cnn(), pictures(3)
    maps = attribute(net, images, "occlusion", window=16, stride=16)
    with pytest.raises(OptionError, match="there are none"):
        ScoreTable.of([])
    with pytest.raises(OptionError, match="the same images; these scores have 2, 3"):
        ScoreTable.of([measured["gradient"], measured["grad-cam"][:2]])
    with pytest.raises(OptionError, match="image by image; the scores of small-cnn are of different images"):
        ScoreTable.of([measured["gradient"], measured["grad-cam"][[1, 0, 2]]])
    other = measure(net, images, maps, "insertion", steps=4)
    with pytest.raises(OptionError, match="for insertion these have steps=3 and 4"):
        ScoreTable.of([measured["gradient"], other], ["insertion"])
    rise = measure(net, images, maps, "insertion", "rise", steps=3)
    with pytest.raises(OptionError, match='for insertion these have protocol="default" and "rise"'):
        ScoreTable.of([measured["gradient"], rise], ["insertion"])


def _marks(table, metric):
    column = 2 + table.metrics.index(metric)
    return [cells[column].rpartition("|")[2] for cells in table.cells(lambda text, rank: f"{text}|{rank}")]


def test_means_that_read_the_same_have_the_same_mark():
    def table(*means):
        rows = [TableRow("net", f"m{i}", {"deletion": torch.tensor([m, m])}, 1.0) for i, m in enumerate(means)]
        return ScoreTable(tuple(rows), ("deletion",), "default", 2)

    assert _marks(table(0.3, 0.1, 0.2, 0.4), "deletion") == ["0", "1", "2", "0"]
    assert _marks(table(0.2, 0.10001, 0.09999, 0.4), "deletion") == ["0", "1", "1", "0"]  # two best, and no second
    assert _marks(table(0.2, 0.1, 0.2, float("nan")), "deletion") == ["2", "1", "2", "0"]


def test_sparseness_is_no_ranking(measured):
    table = ScoreTable.of(measured.values())
    assert _marks(table, "sparseness") == ["0", "0"]
    assert sorted(_marks(table, "insertion")) in (["1", "2"], ["1", "1"])
    assert not any("sparseness" in note for note in table.notes())
    assert table.standing("small-cnn", "sparseness").best == ""
