"""``suffice evidence`` as a user meets it."""

import json

import pyarrow.parquet as pq
import pytest

from tests.cli.command import run

MODEL = ("--model", "zoo/resnet", "--device", "cpu")


def test_files_and_json(photos):
    out = photos / "out"
    done = run(
        "evidence", photos / "one.png", photos / "two.png", *MODEL, "--grid", 3, "--max-size", 2, "--out", out, "--json"
    )
    found = json.loads(done.stdout)["images"]
    assert [i["index"] for i in found] == [0, 1]
    table = pq.read_table(out / "evidence.parquet").sort_by("index")
    assert table.column("mses").to_pylist() == [len(i["mses"]) for i in found]
    for name in ("00000-one", "00001-two"):
        assert "</svg>" in (out / f"{name}.svg").read_text(encoding="utf-8")
        assert {file.suffix for file in out.glob(f"{name}.*")} == {".svg", ".json", ".dot"}
    assert len(list(out.glob("*-mse-*.png"))) == sum(len(i["mses"]) for i in found)


def test_tables_of_few_images_and_a_summary(photos):
    done = run("evidence", photos, *MODEL, "--grid", 3, "--max-size", 1)
    heads = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert heads.count("MSE") == 2
    assert {"quantity", "mses", "questions"} <= set(heads)


@pytest.mark.parametrize(("given", "candidates"), [((), 15), (("--preset", "cvpr2024"), 10)])
def test_presets_are_a_start(photos, monkeypatch, given, candidates):
    import suffice.evidence

    seen = []
    original = suffice.evidence.EvidenceStream

    def watched(net, images, targets, settings, *args, **options):
        seen.append(settings)
        return original(net, images, targets, settings, *args, **options)

    monkeypatch.setattr(suffice.evidence, "EvidenceStream", watched)
    run("evidence", photos / "one.png", *MODEL, *given, "--grid", 2, "--max-size", 1)
    assert (seen[0].candidates, seen[0].grid, seen[0].max_size) == (candidates, 2, 1)


def test_what_is_broken_is_named_and_skipped(photos):
    (photos / "three.png").write_bytes(b"oops")
    done = run("evidence", photos, *MODEL, "--grid", 2, "--max-size", 1, "--json", code=1)
    assert len(json.loads(done.stdout)["images"]) == 2
    assert "three.png" in done.stderr
