"""``suffice predict`` as a user meets it."""

import json

from tests.cli.command import run

MODEL = ("--model", "timm/resnet10t", "--random-weights", "--device", "cpu")


def test_json(photos):
    found = json.loads(run("predict", photos, *MODEL, "--json").stdout)
    assert [i["image"].rpartition("/")[2] for i in found["images"]] == ["one.png", "two.png"]
    assert len(found["images"][0]["top"]) == 5
    assert found["skipped"] == []


def test_what_is_broken_is_named_and_skipped(photos):
    (photos / "three.png").write_bytes(b"oops")
    done = run("predict", photos, *MODEL, "--top", 1, code=1)
    assert len(done.stdout.splitlines()) == 3
    assert "three.png" in done.stderr
