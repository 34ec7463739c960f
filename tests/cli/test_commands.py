"""The command line as a user meets it."""

import json
import subprocess
import sys

import pytest
from PIL import Image

import suffice


def run(*arguments, cwd=None, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "suffice", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def photos(tmp_path):
    for name, color in (("a", "red"), ("b", "green")):
        Image.new("RGB", (80, 60), color).save(tmp_path / f"{name}.png")
    return tmp_path


def test_version():
    assert run("--version").stdout == f"suffice {suffice.__version__}\n"


@pytest.mark.parametrize(
    "command", [(), ("models",), ("predict",), ("demo",), ("bench",), ("bench", "probe"), ("evidence",), ("sanity",)]
)
def test_help(command):
    assert "Usage" in run(*command, "--help").stdout


def test_models_plain_and_json():
    lines = run("models", "timm/vit_tiny_patch16_*").stdout.splitlines()
    assert lines[0] == "name\tfamily\tweights"
    assert "timm/vit_tiny_patch16_224\ttransformer\tyes" in lines
    listed = json.loads(run("models", "torchvision/vgg11", "--json").stdout)
    assert listed == [{"name": "torchvision/vgg11", "family": "older-cnn", "pretrained": True}]
    assert "No model matches" in run("models", "nothing", code=1).stderr


def test_predict_json(photos):
    done = run("predict", photos, "--model", "timm/resnet10t", "--random-weights", "--device", "cpu", "--json")
    found = json.loads(done.stdout)
    assert [i["image"].endswith(n) for i, n in zip(found["images"], ("a.png", "b.png"), strict=True)] == [True, True]
    assert len(found["images"][0]["top"]) == 5
    assert found["skipped"] == []


def test_predict_names_and_skips_what_is_broken(photos):
    (photos / "c.png").write_bytes(b"oops")
    done = run("predict", photos, "-m", "timm/resnet10t", "--random-weights", "--device", "cpu", "--top", 1, code=1)
    assert len(done.stdout.splitlines()) == 3
    assert "c.png" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("predict", "a.png", "--model", "timm/resnet1O"), "Did you mean"),
        (("predict", "missing.png", "--model", "timm/resnet10t"), "missing.png"),
        (("predict", "a.png", "--model", "timm/resnet10t", "--checkpoint", "missing.pth"), "does not exist"),
        (("predict", "a.png"), "--model"),
        (("predict", "a.png", "--model", "timm/resnet10t", "--top", "0"), "--top"),
        (("bench", "probe", "--precision", "fp8"), "fp8"),
        (("paint",), "paint"),
    ],
)
def test_mistakes_are_one_message_and_exit_code_2(arguments, said, photos):
    assert said in run(*arguments, cwd=photos, code=2).stderr


def test_bench_probe():
    done = run(
        "bench", "probe", "--model", "timm/resnet10t", "--random-weights", "--device", "cpu",
        "--batch", 2, "--batches", 1, "--rounds", 1, "--json",
    )  # fmt: skip
    timings = json.loads(done.stdout)["timings"]
    assert [t["questions"] for t in timings] == ["regions", "float masks", "ranks"]
    assert all(t["bare"] > 0 and t["probe"] > 0 and t["efficiency"] > 0 for t in timings)


def test_bench_methods(photos):
    done = run(
        "bench", "methods", photos, "--model", "timm/resnet10t", "--random-weights", "--device", "cpu", "--images", 1,
        "--batch", 4, "--rounds", 1, "--methods", "rise,grad-cam", "--option", "rise.masks=3", "--json",
    )  # fmt: skip
    timings = {t["method"]: t for t in json.loads(done.stdout)["timings"]}
    assert timings["rise"]["forwards"] == 3 + 2  # the prediction and the whole image
    assert timings["rise"]["speed_up"] > 0
    assert timings["grad-cam"]["efficiency"] is None


def test_bench_metrics(photos):
    done = run(
        "bench", "metrics", photos, "--model", "timm/resnet10t", "--random-weights", "--device", "cpu", "--images", 3,
        "--batch", 4, "--steps", 4, "--json",
    )  # fmt: skip
    timing = json.loads(done.stdout)
    assert timing["images"] == 3  # one of the two is there twice
    assert timing["forwards"] == 2 * 3 + 2  # three points between the ends each way, which they share
    assert timing["efficiency"] > 0


def test_demo(tmp_path):
    out = tmp_path / "out"
    done = run("demo", "--out", out, "--images", 2, "--networks", "convnext-3,convnext-3-bn")
    assert "the search found just these" in done.stderr
    assert "Batch instead of layer normalization in ConvNeXt" in done.stderr
    assert {"zoo/resnet\trise", "zoo/deit\ttis"} <= {"\t".join(r.split("\t")[:2]) for r in done.stdout.splitlines()}
    drawn = ("oracle-graph", "convnext-3-scene-0", "convnext-3-bn-scene-1", "maps-resnet", "maps-deit")
    assert all("</svg>" in (out / f"{name}.svg").read_text() for name in drawn)
    assert len((out / "table.csv").read_text().splitlines()) == 3


def test_evidence(photos):
    done = run(
        "evidence", photos / "a.png", photos / "b.png", "--model", "timm/resnet10t", "--random-weights",
        "--device", "cpu", "--grid", 3, "--max-size", 2, "--out", photos / "out", "--json",
    )  # fmt: skip
    found = json.loads(done.stdout)["images"]
    assert [i["index"] for i in found] == [0, 1]
    import pyarrow.parquet as pq

    table = pq.read_table(photos / "out" / "evidence.parquet")
    assert table.column("mses").to_pylist() == [len(i["mses"]) for i in found]
    assert "</svg>" in (photos / "out" / "00000-a.svg").read_text()


def test_bench_evidence(photos):
    done = run(
        "bench", "evidence", photos, "--model", "timm/resnet10t", "--random-weights", "--device", "cpu", "--images", 1,
        "--batch", 4, "--twin-images", 0, "--json",
    )  # fmt: skip
    timing = json.loads(done.stdout)
    assert timing["images"] == 1
    assert timing["efficiency"] > 0
    assert timing["speed_up"] is None
