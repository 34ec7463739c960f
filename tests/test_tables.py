"""The script that makes the tables of the papers, at tiny size."""

import csv
import json
from dataclasses import replace

import pytest
import torch

import suffice
from benchmarks import table_plans, tables
from benchmarks.table_plans import TABLES
from suffice.attribution.methods import vit_cx
from suffice.metrics import find_protocol
from suffice.metrics.score_table import TableRow

TINY = tables.Settings(images=2, quick=True, steps=2)
ZOO = ("zoo-methods", "zoo-transformers", "vit-cx-ablations", "vit-cx-readings", "tis", "tis-emptied", "igos")


@pytest.fixture(scope="module")
def deit():
    return suffice.load("zoo/deit", device="cpu")


@pytest.fixture(scope="module")
def ablations(tmp_path_factory):
    out = tmp_path_factory.mktemp("ablations")
    return out, tables.make_table("vit-cx-ablations", TABLES["vit-cx-ablations"][0], TINY, out)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_methods_that_fit_and_metrics_that_its_protocol_knows(name, deit):
    for plan in TABLES[name]:
        net = suffice.load("zoo/resnet", device="cpu") if "resnet50-v1" in plan.models else deit
        protocol = tables.with_steps(plan.protocol, None)
        for metric in plan.metrics:
            protocol.options(metric.partition("/")[0])
        entries = tables.entries_for(plan, net, TINY)
        assert len(entries) >= 6
        assert len({entry.name for entry in entries}) == len(entries)
        for entry in (*entries, *plan.entries(net)):
            entry.found.check(entry.options)


def test_every_table_of_the_zoo_can_be_made(tmp_path, capsys):
    some = "cgw2,rise,random"
    given = ["--images", "2", "--quick", "--steps", "2", "--model", "zoo/deit", "--method", some, "--device", "cpu"]
    tables.main([*ZOO, *given, "--out", str(tmp_path)])
    said = capsys.readouterr()
    folders = {folder.name: folder for folder in tmp_path.iterdir() if folder.is_dir()}
    assert set(folders) == {
        "zoo-methods", "zoo-transformers", "tis-methods", "tis-pos-neg", "igos-own-cells", "igos-same-cells",
    }  # fmt: skip
    assert "vit-cx-ablations-code: none of the methods asked for" in said.err
    for folder in folders.values():
        rows = list(csv.DictReader((folder / "scores.csv").open(encoding="utf-8")))
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        assert sorted(r["method"] for r in rows) == sorted(r["label"] for r in facts["rows"])
        assert {r["method"] for r in facts["rows"]} <= set(some.split(","))
        assert all(r["images"] == "2" and float(r["seconds_per_image"]) > 0 for r in rows)
        assert (folder / "scores.md").read_text(encoding="utf-8") in said.out
    page = (tmp_path / "tis-pos-neg.md").read_text(encoding="utf-8")
    assert "| zoo/deit | cgw2 |" in page
    assert (
        "    python benchmarks/tables.py tis --images 2 --quick --steps 2 --model zoo/deit --method cgw2,rise,random\n"
        in page
    )


def test_the_number_of_masks_is_counted(ablations, deit):
    rows = {row.method: row for row in ablations[1].rows}
    masks = {label: row.facts["masks"] for label, row in rows.items()}
    assert masks["1: all channels (quick)"] == deit.module.embed_dim
    assert masks["2: random masks (quick)"] == table_plans.QUICK["vit-cx"]["random_masks"]
    assert 1 <= masks["ViT-CX (quick)"] < deit.module.embed_dim
    assert masks["3: plain impact (quick)"] == masks["4: no coverage correction (quick)"] == masks["ViT-CX (quick)"]
    assert "masks" in ablations[1].headings


def test_both_readings_of_vit_cx_are_among_its_layers_and_masks(deit):
    (plan,) = TABLES["real-vit-cx-readings"]
    options = [(entry.options["layer"], entry.options["representative"]) for entry in plan.entries(deit)]
    assert len(set(options)) == 8
    assert {(vit_cx.LAYER[r], vit_cx.REPRESENTATIVE[r]) for r in ("code", "paper")} < set(options)


def test_rows_that_are_there_are_not_made_again(ablations, monkeypatch, tmp_path):
    out, first = ablations
    source = out / "vit-cx-ablations-paper" / "rows.jsonl"
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    folder = tmp_path / "vit-cx-ablations-paper"
    folder.mkdir()
    # Stopped while the fourth row was being written.
    (folder / "rows.jsonl").write_text("".join(lines[:3]) + lines[3][:100] + "\n", encoding="utf-8")
    made = []
    original = tables.score_table
    monkeypatch.setattr(tables, "score_table", lambda *args, **o: made.extend(args[2]) or original(*args, **o))
    plan = TABLES["vit-cx-ablations"][0]
    again = tables.make_table("vit-cx-ablations", plan, TINY, tmp_path)
    assert [entry.name for entry in made] == [row.method for row in first.rows[3:]]
    for old, new in zip(first.rows, again.rows, strict=True):
        assert {m: v.tolist() for m, v in old.values.items()} == {m: v.tolist() for m, v in new.values.items()}
        assert old.facts == new.facts
    made.clear()
    one = replace(TINY, methods=("vit-cx",), seed=1, images=1)  # other numbers: nothing there is of use
    tables.make_table("vit-cx-ablations", plan, one, tmp_path)
    assert len(made) == 6


def test_values_that_are_missing_come_back_as_missing(tmp_path):
    key = {"model": "a", "label": "b"}
    row = TableRow("a", "b", {"pointing-game": torch.tensor([1.0, float("nan")])}, 0.5)
    tables.Rows(tmp_path / "one").add(key, row, {})
    for table in ("one", "other"):
        found = tables.Rows(tmp_path / table).find(key)
        assert found.values["pointing-game"].isnan().tolist() == [False, True]
        assert tables.Rows(tmp_path / table).find({**key, "seed": 1}) is None


def test_steps_change_curves_in_steps_alone():
    tis, eea = tables.with_steps("tis", 7), tables.with_steps(table_plans.EEA, 7)
    assert tis.name == "tis, 7 steps"
    assert tis.options("insertion") == {**find_protocol("tis").options("insertion"), "steps": 7}
    assert tis.options("sparseness") == find_protocol("tis").options("sparseness")
    assert eea is table_plans.EEA  # shares of the pixels
    assert tables.with_steps("default", 7).options("insertion")["steps"] == 7


def test_rivals_of_tis_are_as_its_authors_ran_them(deit):
    options = {entry.name: entry.options for entry in table_plans.tis_rivals(deit)}
    assert {name: options[name]["start_layer"] for name in ("tam", "bt-h", "bt-t")} == {"tam": 0, "bt-h": 0, "bt-t": 0}
    assert options["rise"] == {"masks": 4000, "side": 8, "share": 0.1, "output": "logit"}


def test_masks_of_tis_are_no_more_than_channels(deit):
    assert table_plans.tis_masks(deit) == [256, 128, 64, 32, 16]


def test_real_weights_and_photographs(assets, tmp_path):
    plan = next(plan for plan in TABLES["real-vit"] if plan.name == "eea-target")
    made = tables.make_table("real-vit", plan, replace(TINY, images=1, methods=("grad-cam", "random")), tmp_path)
    assert [row.method for row in made.rows] == ["grad-cam", "random"]
    facts = json.loads((tmp_path / "real-vit-eea-target" / "facts.json").read_text(encoding="utf-8"))
    assert facts["rows"][0]["target_class"] == "label"
    assert facts["rows"][0]["choices"]["adp"]["mask"] == "min-max"
