"""Evidence and sets of it: they index, slice, show themselves and become tables."""

import dataclasses
import re
import sys
import webbrowser
from xml.etree import ElementTree

import pytest
import torch

from suffice.errors import MissingExtra
from suffice.evidence import EvidenceSet
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
    assert [len(list(row.iter(f"{svg}image"))) for row in rows] == [0, 2, 0, 2]  # photo and baseline; one has none
    titles = [t.text.split("\n")[0] for t in rows[1].iter(f"{svg}title")]
    assert titles == ["the whole image", "P2 ∧ P8: ratio 0.900", "P0 ∧ P1 ∧ P4: ratio 0.950"]
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
