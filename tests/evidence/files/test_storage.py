"""What is saved comes back, whole; and what another program reads in the file."""

import dataclasses
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from suffice import find_evidence
from suffice.errors import OptionError
from suffice.evidence import MSE, EvidenceSet, Settings
from suffice.evidence.files.provenance import search_provenance
from suffice.evidence.files.storage import FORMAT
from suffice.evidence.files.subexplanations import write_subexplanations
from suffice.perturb import Counters, Runner
from suffice.testing import AnyOf
from suffice.vision.stream import Skip
from tests.evidence.made import make_evidence, subsets

FACTS = (
    "name", "index", "target", "label", "confidence", "baseline_confidence", "grid", "mses", "questions", "levels",
    "stopped", "truncated", "spent", "mended", "contrastive", "necessary", "refined", "settings", "image_id",
)  # fmt: skip


def one(index, side=3, **changes):
    mses = [(0, 1, 4), (2, side**2 - 1)]
    table = {cells: 0.95 - 0.1 * (3 - len(cells)) for mse in mses for cells in subsets(mse)} | {mses[1]: 0.9}
    picture = torch.randint(0, 256, (3, 24, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(index))
    facts = {"name": f"{index} <é>.jpg", "index": index, "picture": picture, "image_id": f"{index:032x}"} | changes
    made = make_evidence(table, mses, side, **facts)
    return dataclasses.replace(made, ratios=made.ratios.float())


def rich(index):
    """Evidence with a value in every field that can have one."""
    settings = Settings(
        grid=3, second_baseline="gray", stability=True, contrastive=True, necessary=True, refine=(6, 12), certify=None
    )
    first = MSE(
        (0, 1, 4), 0.95, True, 0.05, "beam", 120, 0.4, {"jpeg": 0.91, "shift": 0.3}, {"jpeg": True, "shift": False}
    )
    second = MSE(
        (2, 8), 0.9, False, 0.0, "deletion", 900, 1.2, {"jpeg": 0.95, "shift": 0.97}, {"jpeg": True, "shift": True}
    )
    return dataclasses.replace(
        one(index, settings=settings),
        mses=(first, second),
        spent={"levels": 90, "certifying": 9},
        mended=1,
        contrastive=(MSE((0, 1, 4, 8), 0.97),),
        necessary=((0, 2), (1, 8)),
        refined={6: (MSE((0, 1, 7), 0.92), MSE((4, 35), 0.9)), 12: (MSE((3,), 0.91),)},
    )


@pytest.fixture
def found():
    evidence = [rich(0), one(1, picture=None, image_id=None), one(3, stopped="max_size", truncated=True)]
    evidence = [dataclasses.replace(e, settings=evidence[0].settings) for e in evidence]
    about = {"model": "zoo/x", "family": "cnn", "weights": "abc", "settings": evidence[0].settings.to_dict()}
    return EvidenceSet(evidence, "zoo/x", "cnn", [Skip(2, "2.jpg", "broken")], Counters(9, 3, 6, 0, 1.5), about)


def same(a, b, regions=True):
    for fact in FACTS:
        assert getattr(a, fact) == getattr(b, fact), fact
    assert (a.picture is None) == (b.picture is None)
    assert a.picture is None or torch.equal(a.picture, b.picture)
    assert a.counts == b.counts
    if regions:
        assert torch.equal(a.regions, b.regions)
        torch.testing.assert_close(a.ratios, b.ratios)


def test_everything_comes_back(found, tmp_path):
    path = found.save(tmp_path / "new folder" / "evidence.parquet")
    back = EvidenceSet.load(path)
    assert (back.model, back.family, back.skipped, back.counters) == ("zoo/x", "cnn", found.skipped, found.counters)
    assert back.about == found.about
    for a, b in zip(found, back, strict=True):
        same(a, b)
    assert back[0].graph().to_svg() == found[0].graph().to_svg()
    assert back.to_arrow().equals(found.to_arrow())
    assert [file.name for file in path.parent.iterdir()] == ["evidence.parquet"]


def test_the_file_says_by_itself_what_was_found(found, tmp_path):
    table = pq.read_table(found.save(tmp_path / "a.parquet"))
    assert table.select(found.to_arrow().column_names).equals(found.to_arrow())
    row = table.to_pylist()[0]
    assert row["mse_cells"] == [[0, 1, 4], [2, 8]]
    assert row["mse_certified"] == [True, False]
    assert (row["mse_found"], row["mse_asked"]) == (["beam", "deletion"], [120, 900])
    assert row["mse_margins"] == pytest.approx([0.05, 0])
    assert row["mse_second_ratios"] == pytest.approx([0.4, 1.2])
    assert dict(row["mse_under"][1]) == pytest.approx({"jpeg": 0.95, "shift": 0.97})
    assert dict(row["mse_stays"][0]) == {"jpeg": True, "shift": False}
    assert (row["certified"], row["by_deletion"], row["mended"]) == (1, 1, 1)
    assert (row["within_500"], row["within_1000"]) == (1, 2)
    assert row["coverage"] == pytest.approx(5 / 9)
    assert row["stability"] == pytest.approx(3 / 4)
    assert row["baseline_ratio"] == pytest.approx(0.01 / 0.8)
    assert row["why"].startswith("2 found")
    assert row["contrastive"][0]["cells"] == [0, 1, 4, 8]
    about = json.loads(table.schema.metadata[b"suffice"])
    assert about["format"] == FORMAT
    assert about["settings"]["refine"] == [6, 12]
    assert about["weights"] == "abc"


def test_without_regions_counts_come_back_and_graphs_show_the_mses(found, tmp_path):
    small, large = (found.save(tmp_path / f"{r}.parquet", regions=r) for r in (False, True))
    assert {"region_words", "region_ratios"} == {*pq.read_schema(large).names} - {*pq.read_schema(small).names}
    for a, b in zip(found, EvidenceSet.load(small), strict=True):
        same(a, b, regions=False)
        assert len(b.regions) == 0
        assert {node.cells for node in b.graph().nodes} == {node.cells for node in a.graph().nodes if node.is_mse}


def test_large_grids_and_no_images_come_back(tmp_path):
    large = EvidenceSet([one(0, side=9)], "m", "f")
    same(large[0], EvidenceSet.load(large.save(tmp_path / "a.parquet"))[0])
    assert len(EvidenceSet.load(EvidenceSet([], "m", "f").save(tmp_path / "b.parquet"))) == 0


def test_a_baseline_without_a_name_comes_back_as_custom(tmp_path):
    custom = EvidenceSet([one(0, settings=Settings(grid=3, baseline=torch.zeros(3, 2, 2)))], "m", "f")
    back = EvidenceSet.load(custom.save(tmp_path / "a.parquet"))
    assert back[0].settings == Settings(grid=3, baseline="custom")


def test_other_files_are_refused(found, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    old = pa.table({"a": [1]}).replace_schema_metadata({b"suffice": json.dumps({"format": "suffice.evidence/1"})})
    pq.write_table(old, tmp_path / "old.parquet")
    (tmp_path / "text.parquet").write_text("no table")
    for name, said in (
        ("other", r"not one that EvidenceSet.save\(\) wrote"),
        ("old", f"format 'suffice.evidence/1'; expected '{FORMAT}'"),
        ("text", "not a Parquet file"),
        ("none", "no evidence at"),
    ):
        with pytest.raises(OptionError, match=said):
            EvidenceSet.load(tmp_path / f"{name}.parquet")
    part = tmp_path / "run" / "tables" / "measurement=evidence" / "model=m" / "00000.parquet"
    part.parent.mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}), part)
    with pytest.raises(
        OptionError, match=r"is a part of a study; suffice.Study.open\('.*run'\).evidence\(\) reads all"
    ):
        EvidenceSet.load(part)
    with pytest.raises(OptionError, match=r"is a folder; suffice.Study.open\(.*\).evidence\(\) reads"):
        EvidenceSet.load(tmp_path)


def test_a_file_appears_whole_or_not_at_all(found, tmp_path, monkeypatch):
    from suffice.evidence.files import storage

    path = found.save(tmp_path / "a.parquet")
    before = path.read_bytes()
    monkeypatch.setattr(storage, "evidence_table", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        found.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


def test_provenance_tells_models_settings_and_precisions_apart():
    oracle = AnyOf([(0,)], grid=2)
    net = oracle.classifier(8)
    about = search_provenance(Runner(net), Settings(grid=2))
    assert json.loads(json.dumps(about)) == about
    assert (about["checkpoint"], about["target"], about["score"]) == (None, "predicted", "softmax")
    assert about["preprocessing"] | {"size": [8, 8], "rule": "crop"} == about["preprocessing"]
    assert search_provenance(Runner(net), Settings(), targets=3)["target"] == "3"
    assert search_provenance(Runner(net), Settings(), targets=[3])["target"] == "one for each image"


def test_every_region_in_and_below_an_mse_is_a_row(tmp_path):
    oracle = AnyOf([(0, 1, 2), (2, 4)], grid=3, low=0.5)
    found = find_evidence(
        oracle.classifier(12), oracle.image(12).repeat(2, 1, 1, 1), targets=1, grid=3, baseline="black"
    )
    table = found.subexplanations()
    rows = [row for row in table.to_pylist() if row["index"] == 1]
    mses = [m.cells for m in found[1].mses]
    assert sorted(mses) == [(0, 1, 2), (2, 4)]
    expected = {cells for mse in mses for cells in subsets(mse)}
    assert {tuple(row["cells"]) for row in rows} == expected
    assert len(rows) == len(expected)
    for row in rows:
        cells = tuple(row["cells"])
        assert row["size"] == len(cells)
        assert row["mse"] == (mses.index(cells) if cells in mses else None)
        assert row["under"] == [n for n, mse in enumerate(mses) if set(cells) < set(mse)]
        assert row["ratio"] == pytest.approx(1 if cells in mses else 0.5 / 0.98, abs=1e-4)
    stored = pq.read_table(write_subexplanations(found, tmp_path / "sub.parquet", found.about))
    assert stored.equals(table)
    assert json.loads(stored.schema.metadata[b"suffice"])["settings"]["grid"] == 3
    bare = EvidenceSet.load(found.save(tmp_path / "bare.parquet", regions=False))
    with pytest.raises(OptionError, match="without its regions"):
        write_subexplanations(bare, tmp_path / "none.parquet", {})
    assert not (tmp_path / "none.parquet").exists()


def test_no_evidence_has_no_sub_explanations(tmp_path):
    nothing = EvidenceSet([], "m", "f")
    assert nothing.subexplanations().num_rows == 0
    stored = write_subexplanations(nothing, tmp_path / "b.parquet", {})
    assert pq.read_table(stored).num_rows == 0
