"""Verdicts, tables, files and figures of a report with known numbers."""

import csv
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from suffice.metrics.sanity import SanityReport, SanityRow, box_figure, curve_figure, strip_figure

STEPS = ("trained", "head", "blocks.1", "stem")


def row(method, last, absolute=None, spread=0.01, middle=(0.9, 0.7), constant=0.0):
    """Eight images whose similarities lie ``spread`` to either side of the means."""
    sides = torch.tensor([-1.0, 1.0] * 4).double() * spread

    def values(end):
        means = torch.tensor([1.0, *middle, end]).double()
        wide = means[:, None] + sides
        wide[0] = 1.0
        return wide[None]

    similar = {
        "spearman": values(last),
        "absolute": values(last if absolute is None else absolute),
        "ssim": values(0.1),
    }
    others = {name: torch.full((8,), 0.25).double() for name in similar}
    return SanityRow(method, similar, others, torch.tensor([0.0, 0.0, 0.0, constant]).double(), torch.rand(4, 7, 7))


def report(*rows, check="cascading"):
    return SanityReport(
        check, "reinitialize", STEPS, rows, "zoo/deit", 8, 1, 0, torch.zeros(8, dtype=torch.long), torch.rand(3, 56, 56)
    )  # fmt: skip


def test_mean_and_standard_error_over_images_and_draws():
    known = row("a", 0.3, spread=0.1)
    assert known.means().tolist() == pytest.approx([1, 0.9, 0.7, 0.3])
    assert known.standard_errors().tolist() == pytest.approx([0, *[0.1 * (8 / 7) ** 0.5 / 8**0.5] * 3])
    values = torch.tensor([[[1.0, 1.0]], [[0.0, 0.0]]]).double()  # two draws that disagree, two images that do not
    two = SanityRow("a", {"spearman": values}, {}, torch.zeros(1), torch.zeros(1, 2, 2))
    assert float(two.standard_errors()) == pytest.approx(0.5)
    alone = SanityRow("a", {"spearman": values[:1, :, :1]}, {}, torch.zeros(1), torch.zeros(1, 2, 2))
    assert alone.standard_errors().isnan().all()


@pytest.mark.parametrize(
    ("last", "absolute", "spread", "depends", "text"),
    [
        (0.1, None, 0.01, True, "depends on the weights"),
        (0.9, None, 0.01, False, "does not depend on the weights"),
        (-0.9, 0.9, 0.01, False, "does not depend on the weights"),  # only the signs have changed
        (-0.9, -0.9, 0.01, True, "depends on the weights"),
        (0.45, None, 0.2, None, "unclear"),
        (0.55, None, 0.2, None, "unclear"),
        (0.45, None, 0.01, True, "depends on the weights"),
    ],
)
def test_the_verdict_follows_its_rule(last, absolute, spread, depends, text):
    verdict = report(row("a", last, absolute, spread)).verdict("a")
    assert verdict.depends is depends
    assert str(verdict) == text


def test_layers_alone_are_judged_one_by_one():
    found = report(row("a", 0.1), row("b", 0.1, middle=(0.2, 0.3)), check="independent")
    assert str(found.verdict("a")) == "hardly depends on head, blocks.1"
    assert str(found.verdict("b")) == "depends on every layer"
    assert next(found.cells())[1] == "0.90 ± 0.00"  # of the layer that matters least


def test_markdown_and_notes():
    noisy = row("noisy", 0.1, constant=0.25)
    noisy.values["spearman"][0, 0] = 0.8
    found = report(row("a", 0.9), noisy)
    text = found.to_markdown()
    assert "| a | 0.90 ± 0.00 | 0.90 ± 0.00 | 0.10 ± 0.00 | 0.25 | does not depend on the weights |" in text
    assert "Rule:" in text
    assert found.notes() == [
        "noisy is not deterministic: explained twice, the same model gives 0.800.",
        "noisy: 25% of the maps at the last step are the same everywhere.",
    ]
    assert "a does not depend on the weights; noisy depends on the weights" in repr(found)


def test_files(tmp_path):
    found = report(row("a", 0.9), row("b", 0.1))
    found.write(tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "sanity.csv").open(encoding="utf-8")))
    assert [(r["method"], r["layer"]) for r in rows] == [(m, s) for m in "ab" for s in STEPS]
    assert float(rows[7]["spearman"]) == pytest.approx(0.1)
    assert float(rows[7]["spearman_standard_error"]) == pytest.approx(float(found.rows[1].standard_errors()[3]))
    long = pq.read_table(tmp_path / "out" / "sanity.parquet")
    assert long.num_rows == 2 * 4 * 8
    last = [r for r in long.to_pylist() if r["method"] == "b" and r["layer"] == "stem"]
    assert [r["index"] for r in last] == list(range(8))
    assert [r["spearman"] for r in last] == pytest.approx(found.rows[1].values["spearman"][0, 3].tolist())
    assert (tmp_path / "out" / "sanity.md").read_text(encoding="utf-8") == found.to_markdown()


def test_json_has_no_nan():
    alone = {name: torch.ones(1, 4, 1).double() for name in ("spearman", "absolute", "ssim")}
    nothing = {name: torch.full((1,), torch.nan).double() for name in alone}
    found = report(SanityRow("a", alone, nothing, torch.zeros(4), torch.rand(4, 7, 7)))
    said = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert said["rows"][0]["spearman"] == {"mean": [1, 1, 1, 1], "standard_error": [None] * 4}
    assert said["rows"][0]["other_images"]["spearman"] is None


def test_one_image_has_no_standard_error():
    alone = {name: torch.ones(1, 4, 1).double() for name in ("spearman", "absolute", "ssim")}
    nothing = {name: torch.full((1,), torch.nan).double() for name in alone}
    found = replace(report(SanityRow("a", alone, nothing, torch.zeros(4), torch.rand(4, 7, 7))), images=1)
    assert "| a | 1.00 | 1.00 | 1.00 | – | does not depend on the weights |" in found.to_markdown()
    assert "no standard error" in found.notes()[0]


def test_curves_show_the_means():
    pytest.importorskip("matplotlib")
    figure = curve_figure(report(row("a", 0.9), row("b", 0.1)))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Spearman's rank correlation", "Structural similarity (SSIM)",
    ]  # fmt: skip
    drawn = {
        line.get_label(): line.get_ydata() for line in figure.axes[0].lines if not line.get_label().startswith("_")
    }
    np.testing.assert_allclose(drawn["b"], [1, 0.9, 0.7, 0.1])
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == list(STEPS)
    signed = curve_figure(report(row("a", -0.9, absolute=0.9)))
    assert len(signed.axes) == 3
    assert all(axes.get_ylim()[0] < -0.9 for axes in signed.axes)


def test_strip_has_a_map_for_every_method_and_step():
    pytest.importorskip("matplotlib")
    figure = strip_figure(report(row("a", 0.9), row("b", 0.1)))
    assert sum(bool(axes.images) for axes in figure.axes) == 2 * (1 + 4)
    below = [axes.get_xlabel() for axes in figure.axes[1:5]]
    assert below == ["1.00", "0.89", "0.69", "0.89"]


def test_drawings_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    files = report(row("a", 0.9)).draw(tmp_path / "out")
    assert [f.name for f in files] == ["similarity.png", "maps.png"]
    assert all(Image.open(f).size[0] > 300 for f in files)
    printed = report(row("a", 0.9)).draw(tmp_path / "out", "pdf")
    assert [f.name for f in printed] == ["similarity.pdf", "maps.pdf"]
    assert all(f.read_bytes().startswith(b"%PDF-") for f in printed)
    assert len(box_figure(report(row("a", 0.9), row("b", 0.2), check="data")).axes[0].get_xticklabels()) == 2
