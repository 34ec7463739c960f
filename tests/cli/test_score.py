"""``suffice score`` as a user meets it."""

import json

import pytest

import suffice.metrics
from suffice.cli import output
from suffice.study.plan import Plan
from tests.cli.command import run

MODEL = ("--model", "zoo/resnet", "--device", "cpu")


def test_table_files_and_what_is_left_out(photos):
    done = run(
        "score", photos, *MODEL, "--method", "gradient,rise,rollout", "--option", "rise.masks=10",
        "--metric", "insertion,sparseness,insertion", "--out", photos / "scores",
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == "model\tmethod\tinsertion ↑\tsparseness\tforwards\ts / image"
    assert [line.split("\t")[1] for line in lines[1:]] == ["gradient", "rise"]
    assert "①" in done.stdout
    assert "do not fit zoo/resnet: rollout" in done.stderr
    assert {p.suffix for p in (photos / "scores").glob("scores.*")} == {".md", ".tex", ".csv", ".json", ".parquet"}


@pytest.mark.parametrize("out", [(), ("--out", "scores")])
def test_the_title_says_how_many_images_were_measured(photos, monkeypatch, out):
    (photos / "three.png").write_bytes(b"broken")
    given = ("score", ".", *MODEL, "--method", "gradient", "--metric", "sparseness", *out)
    with monkeypatch.context() as patch:
        patch.setattr(output, "print_table", lambda title, *_, **__: print(title))
        done = run(*given, cwd=photos, code=1)
    assert done.stdout == "2 images (1 skipped), protocol default\n"
    told = json.loads(run(*given, "--json", cwd=photos, code=1).stdout)
    assert (told["images"], [skip["name"] for skip in told["skipped"]]) == (2, ["three.png"])


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


def test_lines_that_were_done_before_ctrl_c_are_told(photos, monkeypatch):
    original = suffice.metrics.score_table

    def stopped(nets, images, entries, metrics, protocol, *, on_table, **_):
        original(nets, images, entries[:1], metrics, protocol, on_table=on_table)
        raise KeyboardInterrupt

    monkeypatch.setattr(suffice.metrics, "score_table", stopped)
    done = run("score", photos, *MODEL, "--method", "gradient,rise", "--metric", "sparseness", code=130)
    assert "Stopped early" in done.stderr
    assert [line.split("\t")[1] for line in done.stdout.splitlines()[1:]] == ["gradient"]


def test_a_folder_keeps_lines_and_goes_on(photos, monkeypatch):
    from suffice.study.kinds.attribution import Maps

    working = Maps.measure

    def stopping(name):
        def measure(self, work):
            if self.method == name:
                raise KeyboardInterrupt
            return working(self, work)

        return measure

    shards = Plan.shards

    def in_turn(plan, only=()):
        """All of a method before the next."""
        return sorted(shards(plan, only), key=lambda shard: shard.measurement.partition("/")[2])

    out = photos / "out"
    given = ("score", photos, *MODEL, "--method", "gradient,rise", "--option", "rise.masks=4", "--out", out)
    given = (*given, "--metric", "insertion,sparseness", "--steps", 4)
    with monkeypatch.context() as patch:
        patch.setattr(Maps, "measure", stopping("gradient"))
        run(*given, code=130)
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "shards", in_turn)
        patch.setattr(Maps, "measure", stopping("rise"))
        done = run(*given, code=130)
    assert "Stopped early" in done.stderr
    lines = (out / "scores.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == ["gradient"]

    whole = run(*given, "--json")
    passing = run(*given[:-6], *given[-4:], "--json")
    kept, other = (json.loads(done.stdout)["rows"] for done in (whole, passing))
    for row, same in zip(kept, other, strict=True):
        assert row["method"] == same["method"]
        for metric in ("insertion", "sparseness"):
            assert row[metric] == pytest.approx(same[metric], abs=1e-4)
    refused = run(*given[:-1], 5, code=2).stderr
    assert "measure.scores/gradient.steps is 5, was 4" in refused
    assert "--overwrite" in refused
    assert "scores/rise\tzoo/resnet\t1/1" in run("study", "status", out).stdout
    assert "scores.parquet" in run("study", "export", out).stderr
