"""``suffice compare`` as a user meets it."""

import json

import pytest

from tests.cli.command import run

QUICK = ("--method", "grad-cam", "--steps", 2, "--grid", 2, "--device", "cpu")
MODELS = ("--model", "zoo/resnet,zoo/levit")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "out"
    return out, run("compare", "scenes:test[:3]", *MODELS, *QUICK, "--out", out)


def test_two_models_from_images_to_tables(compared):
    out, done = compared
    titles = [line for line in done.stdout.splitlines() if line.startswith("# ")]
    assert titles[0] == "# predictions: whole images"
    assert "# cross-test: insertion, normalized" in titles
    assert "# evidence: every two models" in titles
    assert "# activations: do a few channels decide?" in titles
    assert (out / "plan.json").exists()
    assert (out / "comparison/comparison.md").exists()


def test_the_study_is_read_again(compared, tmp_path):
    out, done = compared
    again = run("compare", out, "--json", "--out", tmp_path / "tables")
    tables = json.loads(again.stdout)["tables"]
    assert next(iter(tables)) == "predictions"
    assert [row["maps of"] for row in tables["cross-test-insertion"]["rows"]] == ["zoo/resnet", "zoo/levit"]
    assert (tmp_path / "tables/cross-test-insertion.csv").exists()
    assert run("compare", out).stdout == done.stdout


def test_just_some_measurements_and_nothing_left_behind(tmp_path):
    done = run("compare", "scenes:test[:2]", *MODELS, *QUICK, "--measure", "activations", cwd=tmp_path)
    assert [line for line in done.stdout.splitlines() if line.startswith("# ")] == [
        "# activations: do a few channels decide?"
    ]
    assert not [*tmp_path.iterdir()]


def test_what_cannot_be_compared(tmp_path):
    alone = run("compare", "scenes:test[:2]", "--model", "zoo/deit", code=2).stderr
    assert "Comparing takes two or more models; 1 given." in alone
    cross = ("--measure", "cross-test", "--method", "cgw1")
    misfit = run("compare", "scenes:test[:2]", "--model", "zoo/resnet,zoo/deit", *cross, code=2).stderr
    assert "maps (cgw1) does not fit zoo/resnet" in misfit
    assert "[run]" not in misfit  # there is no file to write it in
    assert "--measure maps" in run("compare", "scenes:test[:2]", *MODELS, "--measure", "maps", code=2).stderr
    assert "There is no study in" in run("compare", tmp_path, code=2).stderr
    assert "one folder of a study" in run("compare", "a", "b", code=2).stderr
