"""Methods × models × metrics: the table, its marks, its files."""

import csv
import re
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
import torch

from suffice import open_images
from suffice.attribution import attribute
from suffice.errors import OptionError
from suffice.metrics import Entry, ScoreTable, find_protocol, measure, score_table, tabulate
from suffice.metrics.table import TableRow
from suffice.perturb import Forwarder
from tests.attribution.nets import pictures, small_cnn

WINDOW = {"occlusion": {"window": 8, "stride": 8}}
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
    alone = measure(net, images, maps, list(METRICS))
    for metric in METRICS:
        torch.testing.assert_close(table.rows[0].values[metric], alone[metric].values)
        assert table.rows[0].mean(metric) == pytest.approx(alone[metric].mean)
        assert table.rows[0].error(metric) == pytest.approx(alone[metric].standard_error)
    assert done[-1] == (6, 6)


def test_a_method_can_be_there_with_different_options():
    net, images = small_cnn(), pictures(2)
    entries = [Entry("gradient", {"reduction": "sum"}), Entry("gradient", {}, "as it is"), "gradient"]
    made = score_table([net], images, entries, ["sparseness"], options={"gradient": {"reduction": "sum-abs"}})
    assert [r.method for r in made.rows] == ["gradient reduction=sum", "as it is", "gradient"]
    for row, reduction in zip(made.rows, ("sum", "sum-abs", "sum-abs"), strict=True):
        alone = measure(net, images, attribute(net, images, "gradient", reduction=reduction), "sparseness")
        torch.testing.assert_close(row.values["sparseness"], alone.values)
    with pytest.raises(OptionError, match="more than one gradient; write Entry"):
        score_table([net], images, ["gradient", "gradient"], ["sparseness"])
    with pytest.raises(OptionError, match="no option 'nonsense'"):
        score_table([net], images, [Entry("gradient", {"nonsense": 1})], ["sparseness"])


def test_the_class_explained_is_the_class_asked_about():
    net, images = small_cnn(), pictures(3)
    labels = [(int(c) + 1) % 3 for c in net(images).argmax(dim=1)]  # all wrong
    labeled = open_images(images, labels=labels)
    made = {rule: score_table([net], labeled, ["gradient"], ["pos", "neg"], "chefer", target_class=rule).rows[0]
            for rule in (None, "label", "predicted")}  # fmt: skip
    for rule, classes in ((None, labels), ("label", labels), ("predicted", None)):
        maps = attribute(net, images, "gradient", classes)
        alone = measure(net, images, maps, ["pos", "neg"], "chefer", target_class="explained")
        torch.testing.assert_close(made[rule].values["neg"], alone["neg"].values)
    assert made["label"].mean("neg") != made["predicted"].mean("neg")
    with pytest.raises(OptionError, match="3 of 3 have none"):
        score_table([net], images, ["gradient"], ["pos"], "chefer")


def test_parts_of_a_metric_are_columns_too():
    net, images = small_cnn(), pictures(2)
    base = find_protocol("default")
    protocol = replace(
        base, name="two", chosen={"insertion": {"baseline": ("gray", "black"), "steps": 4}, "ins-del": {"steps": 4}}
    )
    columns = ("insertion", "insertion/gray", "insertion/black", "ins-del/deletion")
    made = score_table([net], images, ["gradient", "occlusion"], columns, protocol, options=WINDOW)
    gray, black = (made.rows[0].values[f"insertion/{b}"] for b in ("gray", "black"))
    torch.testing.assert_close(made.rows[0].values["insertion"], (gray + black) / 2)
    assert not torch.equal(gray, black)
    assert made.protocol == "two"
    assert made.headings[2:6] == ["insertion ↑", "insertion/gray ↑", "insertion/black ↑", "ins-del/deletion ↓"]
    with pytest.raises(OptionError, match=r"no 'insertion/blur': the parts of insertion .* are gray, black"):
        score_table([net], images, ["gradient"], ["insertion/blur"], protocol)


def test_only_methods_that_can_are_run_in_another_precision_or_compiled(monkeypatch):
    seen, made = {}, []

    def noting(name, forwarder):
        seen[name] = (forwarder.precision, forwarder.compiled)
        made.append(forwarder)
        return Forwarder(forwarder.net, batch_size=2)  # nothing need be compiled here

    def recording(*args, method, forwarder, **options):
        return attribute(*args, method=method, forwarder=noting(method.name, forwarder), **options)

    def measuring(*args, forwarder, **options):
        return measure(*args, forwarder=noting("metrics", forwarder), **options)

    monkeypatch.setattr(tabulate, "attribute", recording)
    monkeypatch.setattr(tabulate, "score", measuring)
    score_table(
        [small_cnn()], pictures(2), ["gradient", "smoothgrad", "occlusion", "rise"], ["sparseness"],
        options={**WINDOW, "rise": {"masks": 2}, "smoothgrad": {"samples": 2}}, precision="bf16", compile=True,
    )  # fmt: skip
    assert seen == {
        "gradient": ("fp32", True), "smoothgrad": ("fp32", True), "occlusion": ("bf16", True), "rise": ("bf16", True),
        "metrics": ("bf16", True),
    }  # fmt: skip
    assert len(set(map(id, made))) == 2  # the model is compiled twice, with and without gradients


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
