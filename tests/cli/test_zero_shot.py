"""CLIP and SigLIP on the command line: classes by ``--labels``, texts by ``--prompt``."""

import json

import pytest
import torch

import suffice
from tests.cli.command import run
from tests.vision.two_towers import save_transformers

WORDS = ("cat", "dog", "red owl")


@pytest.fixture(scope="module", params=["clip", "siglip"])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    save_transformers(request.param, folder)
    return f"hf/{folder}"


def test_labels_and_prompts(model, photos, tmp_path):
    prompts = ["a photo of a {}", "the {}"]
    given = ("--model", model, "--device", "cpu", "--prompt", prompts[0], "--prompt", prompts[1])
    listed = json.loads(run("predict", photos, *given, "--labels", "cat,dog, red owl", "--json").stdout)
    net = suffice.load(model, device="cpu", labels=WORDS, prompt=prompts)
    expected = net.predict(photos)
    for row, image in zip(expected.scores, listed["images"], strict=True):
        found = {one["label"]: one["score"] for one in image["top"]}
        torch.testing.assert_close(torch.tensor([found[word] for word in WORDS]), row, rtol=1e-4, atol=1e-4)
    (tmp_path / "names.txt").write_text("cat\ndog\n\nred owl\n")
    by_file = json.loads(run("predict", photos, *given, "--labels", tmp_path / "names.txt", "--json").stdout)
    assert by_file["images"] == listed["images"]


def test_other_commands(model, photos, tmp_path):
    given = ("--model", model, "--device", "cpu", "--labels", "cat,dog")
    run("explain", photos, *given, "--method", "grad-cam", "--target", "dog", "--out", tmp_path / "maps")
    assert list((tmp_path / "maps").glob("**/*.svg"))
    scored = json.loads(run("score", photos, *given, "--method", "grad-cam", "--json").stdout)
    assert scored
    shown = json.loads(run("evidence", photos, *given, "--grid", 2, "--threshold", 0.5, "--json").stdout)
    assert len(shown["images"]) == 2
    assert {image["label"] for image in shown["images"]} <= {"cat", "dog"}


def test_mistakes_are_said(model, photos):
    assert "--labels cat,dog" in run("predict", photos, "--model", model, code=2).stderr
    said = run("predict", photos, "--model", model, "--labels", "names.txt", code=2).stderr
    assert "names.txt is not a file" in said
    zoo = ("--model", "zoo/resnet", "--prompt", "a {}")
    assert "classes of its own" in run("predict", photos, *zoo, code=2).stderr
