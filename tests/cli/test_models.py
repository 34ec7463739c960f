"""``suffice models`` as a user meets it."""

import json

from tests.cli.command import run


def test_plain_and_json():
    lines = run("models", "timm/vit_tiny_patch16_*").stdout.splitlines()
    assert lines[0] == "name\tfamily\tweights"
    assert "timm/vit_tiny_patch16_224\ttransformer\tyes" in lines
    listed = json.loads(run("models", "torchvision/vgg11", "--json").stdout)
    assert listed == [{"name": "torchvision/vgg11", "family": "older-cnn", "pretrained": True}]
    assert "try '*nothing*'" in run("models", "nothing*", code=1).stderr
    assert json.loads(run("models", "nothing", "--json", code=1).stdout) == []


def test_sources():
    assert any(line.startswith("zoo/…\t") for line in run("models").stdout.splitlines())
