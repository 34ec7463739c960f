"""Evidence and sets of it: they index, slice, show themselves, become tables, are saved and come back."""

import dataclasses
import re
import sys
import webbrowser
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from suffice.errors import MissingExtra, OptionError
from suffice.evidence import EvidenceSet, Settings
from suffice.perturb import Counters
from suffice.vision.stream import Skip
from tests.evidence.made import make_evidence, subsets


def one(index, side=3, **changes):
    mses = [(0, 1, 4), (2, side**2 - 1)]
    table = {cells: 0.95 - 0.1 * (3 - len(cells)) for mse in mses for cells in subsets(mse)}
    table |= {mses[1]: 0.9}
    picture = torch.randint(0, 256, (3, 24, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(index))
    facts = {"name": f"{index} <é>.jpg", "index": index, "picture": picture} | changes
    made = make_evidence(table, mses, side, **facts)
    return dataclasses.replace(made, ratios=made.ratios.float())


@pytest.fixture
def found():
    evidence = [one(0), one(1, picture=None), one(3, image_id="abc", stopped="max_size", truncated=True)]
    return EvidenceSet(evidence, "zoo/x", "cnn", [Skip(2, "2.jpg", "broken")], Counters(9, 3, 6, 0, 1.5))


def test_it_is_a_sequence(found):
    assert len(found) == 3
    assert found[2].index == found[-1].index == 3
    part = found[1:]
    assert isinstance(part, EvidenceSet)
    assert [e.index for e in part] == [1, 3]
    assert repr(part) == "EvidenceSet(2 images, 4 MSEs, model='zoo/x')"
    assert part.skipped == found.skipped


def same(a, b):
    facts = ("name", "index", "target", "label", "confidence", "baseline_confidence", "grid", "mses", "questions")
    facts += ("levels", "stopped", "truncated", "settings", "image_id")
    for fact in facts:
        assert getattr(a, fact) == getattr(b, fact)
    assert torch.equal(a.regions, b.regions)
    torch.testing.assert_close(a.ratios, b.ratios)
    assert (a.picture is None) == (b.picture is None)
    assert a.picture is None or torch.equal(a.picture, b.picture)
    assert a.counts.counts == b.counts.counts


def test_it_is_saved_and_comes_back(found, tmp_path):
    path = found.save(tmp_path / "new folder" / "evidence.parquet")
    back = EvidenceSet.load(path)
    assert (back.model, back.family, back.skipped, back.counters) == ("zoo/x", "cnn", found.skipped, found.counters)
    for a, b in zip(found, back, strict=True):
        same(a, b)
    assert back[0].graph().to_svg() == found[0].graph().to_svg()
    table = pq.read_table(path)
    assert table.select(found.to_arrow().column_names).equals(found.to_arrow())


def test_large_grids_and_no_images_come_back(tmp_path):
    large = EvidenceSet([one(0, side=9)], "m", "f")
    same(large[0], EvidenceSet.load(large.save(tmp_path / "a.parquet"))[0])
    assert len(EvidenceSet.load(EvidenceSet([], "m", "f").save(tmp_path / "b.parquet"))) == 0


def test_a_baseline_without_a_name_comes_back_as_custom(tmp_path):
    custom = EvidenceSet([one(0, settings=Settings(grid=3, baseline=torch.zeros(3, 2, 2)))], "m", "f")
    back = EvidenceSet.load(custom.save(tmp_path / "a.parquet"))
    assert back[0].settings == Settings(grid=3, baseline="custom")


def test_other_files_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(OptionError, match=r"expected 'suffice\.evidence/1'"):
        EvidenceSet.load(tmp_path / "other.parquet")
    with pytest.raises(OptionError, match="no evidence at"):
        EvidenceSet.load(tmp_path / "none.parquet")


def test_tables(found, monkeypatch):
    assert found.to_arrow().num_rows == 3
    frame = found.to_pandas()
    assert list(frame["image"]) == [e.name for e in found]
    assert list(frame.columns) == found.to_arrow().column_names
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        found.to_pandas()


def test_it_shows_itself_as_a_table_of_thumbnails(found):
    html = found._repr_html_()
    root = ElementTree.fromstring(html)
    rows = root.findall(".//tr")
    assert len(rows) == 1 + 3
    words = ["".join(row.itertext()) for row in rows]
    assert "0 <é>.jpg" in words[1]
    assert "2 MSEs" in words[1]
    svg = "{http://www.w3.org/2000/svg}"
    assert [len(list(row.iter(f"{svg}image"))) for row in rows] == [0, 1, 0, 1]  # one has no picture
    titles = [t.text for t in rows[1].iter(f"{svg}title")]
    assert titles == ["the whole image", "P0 ∧ P1 ∧ P4: ratio 0.950", "P2 ∧ P8: ratio 0.900"]
    assert not re.search(r"\b(nan|None)\b", re.sub(r"base64,[^\"]*", "", html))


def test_what_the_table_leaves_out_is_counted():
    many = make_evidence({(i,): 0.95 for i in range(12)}, [(i,) for i in range(12)])
    html = EvidenceSet([many] * 23, "m", "f")._repr_html_()
    assert html.count("<tr>") == 1 + 20
    assert "+3 more images" in html
    assert "+4 more" in html
    assert "no images" in EvidenceSet([], "m", "f")._repr_html_()


def test_everything_shows_itself(found, monkeypatch):
    shown = []
    monkeypatch.setattr(webbrowser, "open", lambda uri: shown.append(uri) or True)
    found.show()
    found[0].show()
    found[0].graph().show()
    assert [uri.rpartition(".")[2] for uri in shown] == ["html", "svg", "svg"]
