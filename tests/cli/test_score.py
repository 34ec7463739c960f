"""``suffice score`` as a user meets it."""

import json

import suffice.metrics
from tests.cli.command import run

MODEL = ("--model", "zoo/resnet", "--device", "cpu")


def test_table_files_and_what_is_left_out(photos):
    done = run(
        "score", photos, *MODEL, "--method", "gradient,rise,rollout", "--option", "rise.masks=10",
        "--metric", "insertion,sparseness", "--out", photos / "scores",
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == "model\tmethod\tinsertion ↑\tsparseness\ts / image"
    assert [line.split("\t")[1] for line in lines[1:]] == ["gradient", "rise"]
    assert "①" in done.stdout
    assert "do not fit zoo/resnet: rollout" in done.stderr
    assert {p.suffix for p in (photos / "scores").iterdir()} == {".md", ".tex", ".csv", ".json", ".parquet"}


def test_a_grid_crosses_its_values(photos):
    done = run(
        "score", photos, *MODEL, "--method", "rise,gradient", "--metric", "sparseness", "--grid", "rise.masks=4,8",
        "--grid", "rise.coverage=true,false", "--target-class", "predicted", "--precision", "tf32", "--json",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert [row["method"] for row in found["rows"]] == [
        "rise masks=4 coverage=True", "rise masks=4 coverage=False", "rise masks=8 coverage=True",
        "rise masks=8 coverage=False", "gradient",
    ]  # fmt: skip
    assert set(found["rows"][0]["sparseness"]) == {"mean", "standard_error"}


def test_mistakes(photos):
    given = ("score", photos, *MODEL, "--method", "rise")
    assert "no metric 'insertio'" in run(*given, "--metric", "insertio", code=2).stderr
    assert "expected METHOD.NAME=VALUE,VALUE" in run(*given, "--grid", "masks=4,8", code=2).stderr
    assert "masks=-1; it can be a whole number from 1 on" in run(*given, "--option", "masks=-1", code=2).stderr


def test_lines_that_were_done_before_ctrl_c_are_kept(photos, monkeypatch):
    original = suffice.metrics.score_table

    def stopped(nets, images, entries, metrics, protocol, *, on_table, **_):
        original(nets, images, entries[:1], metrics, protocol, on_table=on_table)
        raise KeyboardInterrupt

    monkeypatch.setattr(suffice.metrics, "score_table", stopped)
    out = photos / "out"
    done = run("score", photos, *MODEL, "--method", "gradient,rise", "--metric", "sparseness", "--out", out, code=130)
    assert "Stopped early" in done.stderr
    lines = (out / "scores.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == ["gradient"]
