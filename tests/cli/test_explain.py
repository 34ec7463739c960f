"""``suffice explain`` and ``suffice methods`` as a user meets them."""

import json
from xml.etree import ElementTree

import pytest

from suffice import Attribution
from tests.cli.command import run

MODEL = ("--model", "timm/resnet10t", "--random-weights", "--device", "cpu")


def test_figures_and_maps(photos):
    out = photos / "out"
    done = run(
        "explain", photos / "one.png", photos / "two.png", *MODEL, "--method", "gradient,rise", "--target", "tabby",
        "--target", "5", "--option", "rise.masks=20", "--option", "output=score", "--out", out,
    )  # fmt: skip
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()[1:3]] == [
        [str(photos / "one.png"), "tabby"],
        [str(photos / "two.png"), "tabby"],
    ]
    assert "2 figures, and the raw maps of gradient, rise" in done.stderr
    figures = sorted(out.glob("*.svg"))
    assert [f.name for f in figures] == ["00000-one.svg", "00001-two.svg"]
    pictures = ElementTree.parse(figures[0]).findall(".//{http://www.w3.org/2000/svg}image")
    assert len(pictures) == 1 + 2 * 2 + 1  # the image, two methods for two classes, the color bar
    maps = Attribution.load(out / "rise-tabby.safetensors")
    assert maps.maps.shape == (2, 176, 176)
    assert maps.settings["options"]["masks"] == 20
    assert maps.settings["options"]["output"] == "score"
    assert maps.targets.tolist() == [281, 281]


def test_figures_in_another_format(photos):
    out = photos / "out"
    run("explain", photos / "one.png", *MODEL, "--method", "gradient", "--format", "pdf", "--out", out)
    assert (out / "00000-one.pdf").read_bytes().startswith(b"%PDF-")
    assert not list(out.glob("*.svg"))


def test_all_is_what_fits(tmp_path):
    small = ("rise.masks=4", "vit-cx.masks=all", "occlusion.window=28", "occlusion.stride=28", "smoothgrad.samples=1",
             "integrated-gradients.steps=2", "kernel-shap.grid=2", "lime.samples=4",
             *(f"{m}.{o}=1" for m in ("i-gos", "igos+", "igos++")
             for o in ("iterations", "steps")))  # fmt: skip
    done = run(
        "explain", "scenes:test[:1]", "--model", "zoo/resnet", "--device", "cpu", "--method", "all",
        "--precision", "bf16", "--out", tmp_path, *(word for text in small for word in ("--option", text)),
    )  # fmt: skip
    made = {path.stem for path in tmp_path.glob("*.safetensors")}
    assert {"grad-cam", "rise", "vit-cx", "igos++"} <= made
    assert not {"rollout", "cgw1", "tis"} & made  # which need a transformer
    assert "In fp32, as they propagate relevance: deep-lift, deep-shap." in done.stderr


def test_what_stays_in_fp32_is_said(tmp_path):
    given = ("explain", "scenes:test[:1]", "--model", "zoo/deit", "--device", "cpu", "--method", "cgw1,rollout")
    done = run(*given, "--precision", "bf16", "--out", tmp_path)
    assert "In fp32, as they propagate relevance: cgw1." in done.stderr


def test_broken_images_are_skipped(photos):
    (photos / "three.png").write_bytes(b"broken")
    done = run("explain", photos, *MODEL, "--method", "grad-cam", "--out", photos / "out", "--json", code=1)
    assert len(json.loads(done.stdout)["figures"]) == 2
    assert "three.png" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "grad-kam"), "Did you mean"),
        (("--method", "rise", "--option", "maks=3"), "rise has no option 'maks'"),
        (("--method", "rise", "--option", "masks"), "expected NAME=VALUE"),
        (("--method", "rise", "--option", "masks=many"), "masks='many'; it can be a whole number"),
        (("--method", "rise", "--option", "gradient.output=score"), "not among the methods"),
        (("--target", "tabbi"), "Did you mean 'tabby'"),
        (("--target", "@label"), "1 of 1 images have no label"),
    ],
)
def test_mistakes(photos, arguments, said):
    assert said in run("explain", photos / "one.png", *MODEL, *arguments, "--out", photos / "out", code=2).stderr


def test_methods_are_listed_with_what_they_need():
    lines = run("methods").stdout.splitlines()
    assert lines[0] == "method\twhat it shows\tneeds\toptions"
    assert any(line.startswith("grad-cam\t") and "gradients, feature maps" in line for line in lines)
    listed = {m["name"]: m for m in json.loads(run("methods", "--model", "zoo/resnet", "--json").stdout)}
    assert listed["rise"]["options"]["masks"] == 4000
    assert listed["grad-cam"]["incompatibility"] is None
    assert "tokens" in listed["rollout"]["incompatibility"] or "attention" in listed["rollout"]["incompatibility"]
