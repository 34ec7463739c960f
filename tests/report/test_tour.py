"""The tour on networks with random weights: the table, the sentences, the files."""

import csv

import pytest
import torch

import suffice
from suffice.evidence import Settings
from suffice.report.tour import COLUMNS, HEADINGS, sentences, table_rows, visits, write_table


@pytest.fixture(scope="module")
def found():
    nets = []
    for name in ("convnext-3", "convnext-3-bn"):
        torch.manual_seed(0)
        nets.append(suffice.load(f"zoo/{name}", pretrained=False, device="cpu"))
    done = []
    images = suffice.open_images("scenes:test[:3]")
    settings = Settings(grid=3, max_size=3, baseline="black")
    result = list(visits(nets, images, settings, lambda n, total: done.append((n, total))))
    assert done[-1] == (6, 6)
    return result


def test_rows_and_headings_match(found):
    rows = table_rows(found)
    assert [row[0] for row in rows] == ["convnext-3", "convnext-3-bn"]
    assert all(len(row) == len(HEADINGS) for row in rows)
    assert found[0].evidence[0].settings.grid == 3


def test_sentences_name_the_contrast_and_the_extremes(found):
    said = sentences(found)
    assert said[0].startswith("Batch instead of layer normalization in ConvNeXt")
    assert "p = " in said[0]
    assert "3 images" in said[0]
    assert "MSEs an image" in said[-1]
    assert len(sentences(found[:1])) == 1


def test_only_what_many_questions_leave_clear_is_called_a_difference(found, monkeypatch):
    from suffice.compare import PairedRatio
    from suffice.report import tour

    for p, expected in ((0.04, "this convnext-3-bn has fewer"), (0.06, "no difference between these two")):
        monkeypatch.setattr(tour, "_compared", lambda *_, p=p: PairedRatio(0.5, 0.4, 0.6, p, 9))
        assert expected in sentences(found)[0]
    monkeypatch.setattr(tour, "CONTRASTS", tour.CONTRASTS[:1] * 2)  # asked twice, half the p is needed
    monkeypatch.setattr(tour, "_compared", lambda *_: PairedRatio(0.5, 0.4, 0.6, 0.04, 9))
    assert "no difference" in sentences(found)[0]


def test_the_table_is_written(found, tmp_path):
    write_table(found, tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8")))
    assert [row["network"] for row in rows] == ["convnext-3", "convnext-3-bn"]
    assert float(rows[0]["mses"]) == pytest.approx(found[0].statistics["mses"].mean)
    assert f"{COLUMNS[-1]}_error" in rows[0]
