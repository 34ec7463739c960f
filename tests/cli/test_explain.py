"""``suffice explain`` and ``suffice methods`` as a user meets them."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

from suffice.study import Study
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
    figures = sorted(out.glob("figures/*.svg"))
    assert [f.name for f in figures] == ["00000-one.svg", "00001-two.svg"]
    pictures = ElementTree.parse(figures[0]).findall(".//{http://www.w3.org/2000/svg}image")
    assert len(pictures) == 1 + 2 * 2 + 1  # the image, two methods for two classes, the color bar
    maps = Study.open(out).maps("maps/rise-tabby", "timm/resnet10t")
    assert maps.maps.shape == (2, 176, 176)
    assert maps.settings["options"]["masks"] == 20
    assert maps.settings["options"]["output"] == "score"
    assert maps.targets.tolist() == [281, 281]


ONE = ("--model", "zoo/resnet", "--device", "cpu", "--method", "gradient,rise", "--option", "rise.masks=4")


def test_a_folder_and_none_have_the_same(tmp_path):
    """With a folder it is a study; the likeliest classes, labels, scores and figures are those of a call without."""
    given = ("explain", "scenes:test[:2]", *ONE, "--target", "@2", "--target", "@label", "--score", "--json")
    kept = json.loads(run(*given, "--out", tmp_path / "out").stdout)
    passing = json.loads(run(*given, cwd=tmp_path).stdout)
    assert len(kept["images"]) == 2 * 2 * 2
    for one, other in zip(kept["images"], passing["images"], strict=True):
        numbers = ("confidence", "insertion", "deletion")
        assert [one.pop(k) for k in numbers] == pytest.approx([other.pop(k) for k in numbers], abs=1e-4)
        assert one == other
    assert kept["settings"] == passing["settings"]
    names = [Path(file).name for file in kept["figures"]]
    assert names == [Path(file).name for file in passing["figures"]]
    for name in names:
        texts = [
            [text.text for text in ElementTree.parse(folder / name).iter("{http://www.w3.org/2000/svg}text")]
            for folder in (tmp_path / "out/figures", tmp_path / "explanations")
        ]
        assert texts[0] == texts[1]
    assert pq.read_table(tmp_path / "out/scores.parquet").num_rows == 8


def test_what_is_there_is_taken_up_and_more_joins(tmp_path):
    out = tmp_path / "out"
    given = ("explain", "scenes:test[:2]", "--device", "cpu", "--out", out, "--model", "zoo/resnet")
    run(*given, "--method", "gradient")
    first = (out / "tables/measurement=maps%2Fgradient/model=zoo%2Fresnet/00000.parquet").read_bytes()
    assert (
        "2 of 2 images were already done." in run(*given, "--method", "gradient", "--format", "svg", "--top", 5).stderr
    )
    run(*given, "--method", "gradient,grad-cam", "--score")
    assert (out / "tables/measurement=maps%2Fgradient/model=zoo%2Fresnet/00000.parquet").read_bytes() == first
    assert Study.open(out).status().finished
    assert set(Study.open(out).table("scores")["method"].to_pylist()) == {"gradient", "grad-cam"}
    said = run(*given, "--method", "gradient", "--option", "output=score", code=2).stderr
    assert "it has maps/grad-cam, scores/gradient, scores/grad-cam, too" in said
    assert "--overwrite" in said
    said = run(*given, "--method", "gradient,grad-cam", "--score", "--option", "gradient.output=score", code=2).stderr
    assert "measure.maps/gradient.output is score, was None" in said
    run(*given, "--method", "grad-cam", "--overwrite")
    assert Study.open(out).table("maps")["method"].to_pylist() == ["grad-cam"] * 2


def test_ctrl_c_keeps_what_is_finished(tmp_path, monkeypatch):
    from suffice.study.kinds.attribution import Maps

    working = Maps.measure

    def stopped(self, work):
        if self.method == "rise":
            raise KeyboardInterrupt
        return working(self, work)

    given = ("explain", "scenes:test[:2]", *ONE, "--out", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(Maps, "measure", stopped)
        assert "run the same command again" in run(*given, code=130).stderr
    assert Study.open(tmp_path / "out").table("maps/gradient").num_rows == 2
    run(*given)
    assert Study.open(tmp_path / "out").table("maps").num_rows == 4


def test_figures_in_another_format(photos):
    out = photos / "out"
    run("explain", photos / "one.png", *MODEL, "--method", "gradient", "--format", "pdf", "--out", out)
    assert (out / "figures/00000-one.pdf").read_bytes().startswith(b"%PDF-")
    assert not list(out.glob("figures/*.svg"))


def test_all_is_what_fits(tmp_path):
    small = ("rise.masks=4", "vit-cx.masks=all", "occlusion.window=16", "occlusion.stride=16", "smoothgrad.samples=1",
             "integrated-gradients.steps=2", "eea.mode=scratch", "eea.steps=1", "kernel-shap.grid=2", "lime.samples=4",
             *(f"{m}.{o}" for m in ("i-gos", "igos+", "igos++")
             for o in ("iterations=1", "steps=1", "size=4")))  # fmt: skip
    done = run(
        "explain", "scenes:test[:1]", "--model", "tests.attribution.nets:small_cnn", "--device", "cpu",
        "--method", "all", "--precision", "bf16", "--out", tmp_path,
        *(word for text in small for word in ("--option", text)),
    )  # fmt: skip
    made = set(Study.open(tmp_path).table("maps")["method"].to_pylist())
    assert {"grad-cam", "rise", "vit-cx", "igos++"} <= made
    assert not {"rollout", "cgw1", "tis"} & made  # which need a transformer
    assert "These methods always run in fp32: deep-lift, deep-shap." in done.stderr


def test_what_stays_in_fp32_is_said(tmp_path):
    given = ("explain", "scenes:test[:1]", "--model", "zoo/deit", "--device", "cpu", "--method", "cgw1,rollout")
    done = run(*given, "--precision", "bf16", "--out", tmp_path)
    assert "These methods always run in fp32: cgw1." in done.stderr


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
        (("--target", "@1001"), "Target @1001: expected @label, or @1 to @1000"),
    ],
)
def test_mistakes(photos, arguments, said):
    assert said in run("explain", photos / "one.png", *MODEL, *arguments, "--out", photos / "out", code=2).stderr
    assert not (photos / "out").exists()
    assert said in run("explain", photos / "one.png", *MODEL, *arguments, code=2, cwd=photos).stderr


def test_methods_are_listed_with_what_they_need():
    lines = run("methods").stdout.splitlines()
    assert lines[0] == "method\twhat it shows\tneeds\toptions"
    assert any(line.startswith("grad-cam\t") and "gradients, feature maps" in line for line in lines)
    listed = {m["name"]: m for m in json.loads(run("methods", "--model", "zoo/resnet", "--json").stdout)}
    assert listed["rise"]["options"]["masks"] == 4000
    assert listed["grad-cam"]["incompatibility"] is None
    assert "tokens" in listed["rollout"]["incompatibility"] or "attention" in listed["rollout"]["incompatibility"]
