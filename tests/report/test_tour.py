"""The tour on networks with random weights: the table, the sentences, the files."""

import csv

import pytest
import torch

import suffice
from suffice.evidence import EvidenceSet, Settings
from suffice.report.tour import COLUMNS, HEADINGS, Visit, sentences, table_rows, visits, write_table
from tests.evidence.made import make_evidence, subsets


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


def visit(name, sizes):
    """A network with one MSE an image, of so many cells, all of whose subsets are sub-explanations."""
    evidence = []
    for index, size in enumerate(sizes):
        cells = tuple(range(size))
        evidence.append(make_evidence(dict.fromkeys(subsets(cells), 0.95), [cells], index=index))
    found = EvidenceSet(evidence, f"zoo/{name}", "convnext")
    return Visit(name, "convnext", 1.0, found, found.summary().statistics)


@pytest.mark.parametrize(
    ("images", "contrasts", "clear"),
    # All differences have one sign, so Wilcoxon's p is 2 / 2**images: 0.0625, 0.03125, 0.015625.
    [(5, 1, False), (6, 1, True), (6, 2, False), (7, 2, True)],
)
def test_only_what_many_questions_leave_clear_is_called_a_difference(images, contrasts, clear):
    many, few = range(2, 2 + images), [1] * images
    visits_ = [visit("convnext-3-bn", few), visit("convnext-3", many), visit("convnext-3-gn", many)][: 1 + contrasts]
    said = sentences(visits_)
    assert len(said) == contrasts + 1
    expected = "this convnext-3-bn has fewer sub-explanations" if clear else "no difference between these two"
    assert expected in said[0]
    assert f"p = {2 / 2**images:.2g}" in said[0]
    if contrasts == 2:
        assert "no difference between these two" in said[1]
        assert "1.00 × [1.00, 1.00], p = 1" in said[1]


def test_the_table_is_written(found, tmp_path):
    write_table(found, tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8")))
    assert [row["network"] for row in rows] == ["convnext-3", "convnext-3-bn"]
    assert float(rows[0]["mses"]) == pytest.approx(found[0].statistics["mses"].mean)
    assert f"{COLUMNS[-1]}_error" in rows[0]
