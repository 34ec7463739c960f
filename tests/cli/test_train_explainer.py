"""``suffice train explainer``: written, resumed, refused, and ``suffice train NAME`` as before."""

import json
import re

import numpy as np
import pytest
from PIL import Image

import suffice
from suffice.attribution.learned import read_explainer_facts
from suffice.attribution.learned import training as training_of_explainers
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


@pytest.fixture(scope="module")
def photos_with_a_broken_one(tmp_path_factory):
    photos, noise = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for number in range(5):
        Image.fromarray(noise.integers(256, size=(60, 60, 3), dtype=np.uint8)).save(photos / f"{number}.png")
    (photos / "broken.png").write_bytes(b"broken")
    return photos


# What the two commands that train explainers need beside the images.
EXPLAINER = ("train", "explainer", "--model", "zoo/resnet", "--steps", "1", "--batch", "2", "--device", "cpu")
SHAPLEY = (
    "train", "shapley", "--model", "zoo/resnet", "--surrogate-steps", "0", "--steps", "1", "--batch", "2",
    "--sets", "2", "--device", "cpu",
)  # fmt: skip


@pytest.mark.parametrize("command", [EXPLAINER, SHAPLEY])
def test_files_that_cannot_be_read_are_skipped_and_named(command, photos_with_a_broken_one, tmp_path):
    done = run(*command, "--images", photos_with_a_broken_one, "--out", tmp_path, code=1)
    assert "Skipped broken.png: Cannot read" in done.stderr
    assert len(list(tmp_path.glob("*.safetensors"))) == 1
    done = run(*command, "--images", photos_with_a_broken_one, "--out", tmp_path, "--json", code=1)
    assert [skip["name"] for skip in json.loads(done.stdout)["skipped"]] == ["broken.png"]


@pytest.mark.parametrize("command", [EXPLAINER, SHAPLEY])
def test_or_end_the_work(command, photos_with_a_broken_one, tmp_path):
    given = (*command, "--images", photos_with_a_broken_one, "--out", tmp_path, "--on-error", "raise")
    assert re.search("Cannot read .*broken.png", run(*given, code=2).stderr)
    assert not list(tmp_path.iterdir())
    alone = (*command, "--images", photos_with_a_broken_one / "broken.png", "--out", tmp_path)
    assert re.search("None of the images could be read. Cannot read .*broken.png", run(*alone, code=2).stderr)


def test_ctrl_c_before_the_first_checkpoint(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training_of_explainers, "_run", stopped)
    done = run("train", "explainer", "--model", "zoo/resnet", *QUICK, "--out", tmp_path, code=130)
    assert done.stderr.splitlines()[-1] == "Stopped; nothing was kept."


def test_networks_are_trained_as_before():
    assert "--permute-labels" in run("train", "--help").stdout
    assert "no architecture" in run("train", "resnext", code=2).stderr
