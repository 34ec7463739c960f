"""``suffice train explainer``: written, resumed, refused, and ``suffice train NAME`` as before."""

import json

import pytest

import suffice
from suffice.attribution.learned import read_explainer_facts
from tests.cli.command import run

QUICK = ("--images", "scenes:train[:30]", "--steps", "2", "--batch", "4", "--device", "cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explainers")


@pytest.fixture(scope="module")
def told(folder):
    asked = ("--model", "zoo/vgg", *QUICK, "--never", "scenes:train[:5]", "--out", str(folder), "--json")
    return json.loads(run("train", "explainer", *asked).stdout)


def test_writes_an_explainer_that_eea_takes(told, folder):
    path = folder / "zoo-vgg.safetensors"
    assert told["file"] == str(path)
    assert told["images"]["left out"] == 5
    assert read_explainer_facts(path)["recipe"]["steps"] == 2
    assert [row["step"] for row in told["history"]] == [1, 2]
    assert not (folder / "zoo-vgg").exists()
    net = suffice.load("zoo/vgg", device="cpu")
    assert suffice.attribute(net, "scenes:test[:1]", "eea", explainer=str(path), steps=1).maps.shape[0] == 1


def test_an_unfinished_run_is_not_overwritten(folder):
    (folder / "zoo-resnet").mkdir(exist_ok=True)
    (folder / "zoo-resnet" / "last.pt").write_bytes(b"")
    done = run("train", "explainer", "--model", "zoo/resnet", *QUICK, "--out", str(folder), code=2)
    assert "--resume" in done.stderr
    done = run("train", "explainer", "--model", "zoo/resnet", *QUICK, "--out", str(folder), "--resume", code=2)
    assert "not a readable checkpoint" in done.stderr


def test_networks_are_trained_as_before():
    assert "--permute-labels" in run("train", "--help").stdout
    assert "no architecture" in run("train", "resnext", code=2).stderr
