"""``suffice explain`` and ``suffice methods`` as a user meets them."""

import json
from xml.etree import ElementTree

import pytest
from PIL import Image
from typer.testing import CliRunner

import suffice
from suffice import Attribution
from suffice.cli.app import app
from tests.cli.test_commands import run

MODEL = ("--model", "timm/resnet10t", "--random-weights", "--device", "cpu")


@pytest.fixture
def photos(tmp_path):
    for name, size in (("one", (80, 60)), ("two", (50, 90))):
        Image.effect_noise(size, 80).convert("RGB").save(tmp_path / f"{name}.png")
    return tmp_path


def test_figures_and_maps(photos):
    out = photos / "out"
    done = run(
        "explain", photos / "one.png", photos / "two.png", *MODEL, "--method", "gradient,rise", "--target", "tabby",
        "--target", "5", "--option", "rise.masks=20", "--option", "output=score", "--out", out,
    )  # fmt: skip
    assert "tabby" in done.stdout
    figures = sorted(out.glob("*.svg"))
    assert [f.name for f in figures] == ["00000-one.svg", "00001-two.svg"]
    tree = ElementTree.parse(figures[0])
    pictures = tree.findall(".//{http://www.w3.org/2000/svg}image")
    assert len(pictures) == 1 + 2 * 2 + 1  # the image, two methods for two classes, the color bar
    maps = Attribution.load(out / "rise-tabby.safetensors")
    assert maps.maps.shape == (2, 176, 176)
    assert maps.settings["options"]["masks"] == 20
    assert maps.settings["options"]["output"] == "score"
    assert maps.targets.tolist() == [281, 281]


def test_classes_of_each_image(photos):
    (photos / "list.csv").write_text("file,label\none.png,7\ntwo.png,8\n")
    given = ("explain", photos / "list.csv", *MODEL, "--method", "grad-cam", "--out", photos / "out")
    run(*given, "--target", "@label", "--target", "@1", "--target", "@2")
    found = {t: Attribution.load(photos / "out" / f"grad-cam--{t}.safetensors") for t in ("label", "1", "2")}
    assert found["label"].targets.tolist() == [7, 8]
    assert (found["1"].confidences >= found["2"].confidences).all()
    assert (found["1"].targets != found["2"].targets).all()
    figure = (photos / "out" / "00000-one.svg").read_text()
    assert all(role in figure for role in (", the label", ", likeliest", ", second"))
    assert "expected @label, or @1 to @1000" in run(*given, "--target", "@best", code=2).stderr


def test_all_is_what_fits_and_says_what_stays_in_fp32(tmp_path):
    small = ("rise.masks=4", "vit-cx.masks=all", "occlusion.window=28", "occlusion.stride=28", "smoothgrad.samples=1",
             "integrated-gradients.steps=2", *(f"{m}.{o}=1" for m in ("i-gos", "igos+", "igos++")
             for o in ("iterations", "steps")))  # fmt: skip
    given = ["explain", "scenes:test[:1]", "--model", "zoo/resnet", "--device", "cpu", "--method", "all", "--precision",
             "bf16", "--out", str(tmp_path), *(word for text in small for word in ("--option", text))]  # fmt: skip
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    made = {path.stem for path in tmp_path.glob("*.safetensors")}
    assert {"grad-cam", "rise", "vit-cx", "igos++"} <= made
    assert not {"rollout", "cgw1", "tis"} & made  # which need a transformer
    said = next(line for line in done.output.splitlines() if line.startswith("In fp32"))
    assert "grad-cam" in said
    assert "rise" not in said


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
    listed = {m["name"]: m for m in json.loads(run("methods", "--model", "timm/resnet10t", "--json").stdout)}
    assert listed["rise"]["options"]["masks"] == 4000
    assert listed["grad-cam"]["misfit"] is None


def test_score_crosses_the_values_of_a_grid(photos):
    done = run(
        "score", photos, *MODEL, "--method", "rise,gradient", "--metric", "sparseness", "--grid", "rise.masks=4,8",
        "--grid", "rise.coverage=true,false", "--target-class", "predicted", "--precision", "tf32", "--json",
    )  # fmt: skip
    assert [row["method"] for row in json.loads(done.stdout)["rows"]] == [
        "rise masks=4 coverage=True", "rise masks=4 coverage=False", "rise masks=8 coverage=True",
        "rise masks=8 coverage=False", "gradient",
    ]  # fmt: skip
    wrong = ("score", photos, *MODEL, "--method", "rise", "--grid", "masks=4,8")
    assert "expected METHOD.NAME=VALUE,VALUE" in run(*wrong, code=2).stderr


def test_lines_that_were_done_before_ctrl_c_are_kept(photos, monkeypatch):
    original = suffice.metrics.score_table

    def stopped(nets, images, entries, metrics, protocol, *, on_row, **_):
        original(nets, images, entries[:1], metrics, protocol, on_row=on_row)
        raise KeyboardInterrupt

    monkeypatch.setattr(suffice.measure, "score_table", stopped)
    given = ["score", photos, *MODEL, "--method", "gradient,rise", "--metric", "sparseness", "--out", photos / "out"]
    done = CliRunner().invoke(app, list(map(str, given)))
    assert done.exit_code == 0, done.output
    assert "Stopped early" in done.output
    assert [line.split(",")[1] for line in (photos / "out" / "scores.csv").read_text().splitlines()[1:]] == ["gradient"]


def test_score(photos):
    done = run(
        "score", photos, *MODEL, "--method", "gradient,rise,rollout", "--option", "rise.masks=10", "--metric",
        "insertion,sparseness", "--out", photos / "scores",
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == "model\tmethod\tinsertion ↑\tsparseness ↑\ts / image"
    assert [line.split("\t")[1] for line in lines[1:]] == ["gradient", "rise"]
    assert "①" in done.stdout
    assert "do not fit timm/resnet10t: rollout" in done.stderr
    assert {p.suffix for p in (photos / "scores").iterdir()} == {".md", ".tex", ".csv", ".parquet"}
    assert (
        "no metric 'insertio'"
        in run("score", photos, *MODEL, "--method", "rise", "--metric", "insertio", code=2).stderr
    )
