"""``suffice bench`` as a user meets it."""

import json

import pytest

from suffice.bench import BareModel
from tests.cli.command import run

MODEL = ("--model", "zoo/resnet", "--random-weights", "--device", "cpu")


@pytest.fixture(autouse=True)
def _short_timings(monkeypatch):
    monkeypatch.setitem(BareModel.forwards_per_second.__kwdefaults__, "seconds", 0.001)


def test_probe():
    done = run("bench", "probe", *MODEL, "--batch", 2, "--batches", 1, "--rounds", 1, "--json")
    found = json.loads(done.stdout)
    assert "batch 2 · fp32" in found["setting"]
    assert [t["questions"] for t in found["timings"]] == ["regions", "float masks", "ranks"]
    assert all(t["bare"] > 0 and t["probe"] > 0 and t["efficiency"] > 0 for t in found["timings"])


def test_methods(photos):
    given = (
        "bench", "methods", photos, *MODEL, "--images", 1, "--batch", 4, "--rounds", 1,
        "--methods", "rise,grad-cam", "--option", "rise.masks=3",
    )  # fmt: skip
    timings = {t["method"]: t for t in json.loads(run(*given, "--json").stdout)["timings"]}
    assert timings["rise"]["forwards"] == 3 + 1  # and the whole image
    assert timings["rise"]["speed_up"] > 0
    assert timings["grad-cam"]["efficiency"] is None
    lines = [line.split("\t") for line in run(*given).stdout.splitlines()]
    assert [line[0] for line in lines] == ["method", "rise", "grad-cam"]


def test_metrics(photos):
    done = run("bench", "metrics", photos, *MODEL, "--images", 3, "--batch", 4, "--steps", 4, "--json")
    timing = json.loads(done.stdout)
    assert timing["images"] == 3  # one of the two is there twice
    assert timing["forwards"] == 2 * 3 + 2  # three points between the ends each way, which they share
    assert timing["efficiency"] > 0


def test_evidence(photos):
    done = run("bench", "evidence", photos, *MODEL, "--images", 1, "--batch", 32, "--twin-images", 0, "--json")
    timing = json.loads(done.stdout)
    assert timing["images"] == 1
    assert timing["efficiency"] > 0
    assert timing["speed_up"] is None
