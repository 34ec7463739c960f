"""``suffice train shapley``: what it writes is what ``vit-shapley`` takes."""

import json

import pytest

import suffice
from suffice.attribution.learned import load_shapley
from suffice.errors import OptionError
from tests.cli.command import run

QUICK = (
    "--images", "scenes:train[:30]", "--surrogate-steps", "2", "--steps", "3", "--batch", "2", "--sets", "4",
    "--device", "cpu",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shapley")


@pytest.fixture(scope="module")
def told(folder):
    asked = ("--model", "zoo/resnet", *QUICK, "--never", "scenes:train[:5]", "--out", folder, "--json")
    return json.loads(run("train", "shapley", *asked).stdout)


def test_writes_values_that_vit_shapley_takes(told, folder):
    path = folder / "zoo-resnet-shapley.safetensors"
    assert told["file"] == str(path)
    assert told["recipe"]["steps"] == 3
    assert 15 <= told["images"] < 25  # of 25, a tenth is held out
    assert [(row["part"], row["step"]) for row in told["history"]] == [
        ("surrogate", 1), ("surrogate", 2), ("explainer", 1), ("explainer", 2), ("explainer", 3),
    ]  # fmt: skip
    net = suffice.load("zoo/resnet", device="cpu")
    assert load_shapley(path, net).validation == told["validation"]
    maps = suffice.attribute(net, "scenes:test[:2]", "vit-shapley", explainer=str(path)).maps
    assert maps.shape == (2, 7, 7)


def test_says_in_a_table_how_it_went_and_takes_another_trunk(folder):
    asked = (
        "--model",
        "zoo/resnet",
        "--explainer",
        "zoo/deit",
        *QUICK,
        "--surrogate-steps",
        "0",
        "--grid",
        "7",
        "--alters",
    )
    done = run("train", "shapley", *asked, "--precision", "tf32", "--out", folder)
    assert "not trained" in done.stdout
    assert "zoo-resnet-shapley-by-zoo-deit.safetensors" in done.stdout
    assert done.stderr.splitlines()[0].split("\t")[:3] == ["network", "step", "loss"]
    net = suffice.load("zoo/resnet", device="cpu")
    learned = load_shapley(folder / "zoo-resnet-shapley-by-zoo-deit.safetensors", net)
    assert learned.explainer.trunk.grid == (14, 14)
    assert learned.explainer.grid == (7, 7)
    assert learned.recipe.alters


@pytest.mark.parametrize(("method", "train"), [("vit-shapley", "shapley"), ("eea", "explainer")])
def test_a_file_that_is_not_there_is_said_with_the_command_that_makes_it(method, train):
    net = suffice.load("zoo/resnet", device="cpu")
    with pytest.raises(OptionError, match=f"nowhere.safetensors; `suffice train {train} --model zoo/resnet"):
        suffice.attribute(net, "scenes:test[:1]", method, explainer="nowhere.safetensors")


def test_an_unfinished_run_is_not_overwritten(told, folder):
    assert not (folder / "zoo-resnet-shapley").exists()
    assert "nothing to resume" in run("train", "shapley", "--model", "zoo/vgg", *QUICK, "--resume", code=2).stderr
    (folder / "zoo-vgg-shapley").mkdir()
    (folder / "zoo-vgg-shapley" / "last.pt").write_bytes(b"")
    assert "--resume" in run("train", "shapley", "--model", "zoo/vgg", *QUICK, "--out", folder, code=2).stderr
