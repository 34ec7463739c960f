"""Options that commands share: bad files, misfits, models of one's own, and what messages say."""

import ast
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import suffice
from suffice.attribution.learned import ready_explainer
from suffice.cli.app import app
from suffice.cli.messages import for_command
from suffice.study import Study
from tests.cli.command import command_of, run

NET = ("--model", "zoo/resnet", "--device", "cpu")
COMMANDS = {
    "predict": (),
    "explain": ("--method", "gradient"),
    "score": ("--method", "gradient", "--metric", "sparseness"),
    "sanity": ("--method", "gradient"),
    "evidence": ("--grid", "2", "--no-figures"),
}
OWN = """
import torch
from torch import nn
import suffice

def make_model(num_classes=3, channels=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(channels, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, num_classes))

def make_gray():
    return make_model(channels=1)

def make_classifier():
    return suffice.Classifier(make_model(), size=16, mean=(0.5,) * 3, std=(0.5,) * 3, labels=["a", "b", "c"])

number = 3
"""
HALF = ("--size", "16", "--mean", "0.5,0.5,0.5", "--std", "0.5,0.5,0.5")


def options_of(*words):
    command = command_of(app)
    for word in words:
        command = command.commands[word]
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


@pytest.fixture
def files(photos):
    (photos / "three.png").write_bytes(b"broken")
    return photos


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module of one's own."""
    (tmp_path / "own_models.py").write_text(OWN, encoding="utf-8")
    monkeypatch.delitem(__import__("sys").modules, "own_models", raising=False)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_one_bad_file_is_skipped_and_named_in_every_command(command, files):
    out = () if command == "predict" else ("--out", files / "out")
    done = run(command, files, *NET, *COMMANDS[command], *out, code=1)
    assert "Skipped three.png: Cannot read" in done.stderr
    assert done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_or_ends_the_work(command, files):
    out = () if command == "predict" else ("--out", files / "out")
    said = run(command, files, *NET, *COMMANDS[command], *out, "--on-error", "raise", code=2).stderr
    assert "three.png" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_file_alone_is_an_error(command, files):
    assert "three.png" in run(command, files / "three.png", *NET, *COMMANDS[command], code=2).stderr


def test_methods_that_do_not_fit_are_left_out_and_named(photos):
    given = ("explain", photos, *NET, "--out", photos / "out")
    done = run(*given, "--method", "grad-cam,rollout")
    assert "Left out because they do not fit zoo/resnet: rollout." in done.stderr
    assert set(Study.open(photos / "out").table("maps")["method"].to_pylist()) == {"grad-cam"}
    said = run(*given, "--method", "rollout,cgw1", code=2).stderr
    assert "No method fits zoo/resnet (rollout: no attention of it can be read; cgw1:" in " ".join(said.split())


def test_scores_of_explain_are_printed_and_kept(photos):
    given = ("explain", photos, *NET, "--method", "gradient,grad-cam", "--score", "--out", photos / "out")
    lines = [line.split("\t") for line in run(*given).stdout.splitlines()]
    assert lines[0] == ["image", "explained", "softmax", "method", "insertion ↑", "deletion ↓"]
    assert [line[3] for line in lines[1:]] == ["gradient", "gradient", "grad-cam", "grad-cam"]
    told = json.loads(run(*given, "--json").stdout)
    kept = pq.read_table(photos / "out" / "scores.parquet")
    assert kept["image"].to_pylist() == ["one.png", "two.png"] * 2
    assert kept["insertion"].to_pylist() == pytest.approx([row["insertion"] for row in told["images"]])
    assert [f"{value:.3f}" for value in kept["deletion"].to_pylist()] == [line[5] for line in lines[1:]]
    about = json.loads(kept.schema.metadata[b"suffice"])
    assert about["weights"] == told["weights"]
    assert about["settings"]["methods"]["grad-cam"]["positive"] is True
    assert (photos / "out" / "scores.csv").read_text(encoding="utf-8").startswith("image,image_id,index")


def test_pictures_and_graphs_say_what_they_come_from(photos):
    out = photos / "out"
    run("explain", photos / "one.png", *NET, "--method", "gradient", "--out", photos / "maps")
    about = ElementTree.parse(photos / "maps/figures/00000-one.svg").find("{http://www.w3.org/2000/svg}metadata")
    assert json.loads(about.text)["model"] == "zoo/resnet"
    given = ("evidence", photos / "one.png", *NET, "--grid", "2", "--subexplanations", "--out", out)
    weights = json.loads(run(*given, "--json").stdout)["weights"]
    (graph,) = (out / "figures").glob("*/graph.json")
    assert json.loads(graph.read_text(encoding="utf-8"))["about"]["weights"] == weights
    drawn = ElementTree.parse(graph.with_suffix(".svg")).find("{http://www.w3.org/2000/svg}metadata")
    assert json.loads(drawn.text)["about"]["weights"] == weights
    regions = pq.read_schema(out / "subexplanations.parquet").metadata
    assert json.loads(regions[b"suffice"])["weights"] == weights


def test_checkpoint_and_weights_are_in_what_is_written(photos, tmp_path):
    module = suffice.load("zoo/resnet", device="cpu").module
    torch.save(module.state_dict(), tmp_path / "mine.pth")
    told = json.loads(run("predict", photos, *NET, "--checkpoint", tmp_path / "mine.pth", "--json").stdout)
    assert told["checkpoint"] == "mine.pth"
    assert told["weights"] == json.loads(run("predict", photos, *NET, "--json").stdout)["weights"]


def test_models_of_ones_own(folder, photos):
    given = ("predict", photos / "one.png", "--device", "cpu", "--json", "--model")
    told = json.loads(run(*given, "own_models:make_model", *HALF, "--labels", "x,y,z", cwd=folder).stdout)
    assert told["model"] == "own_models:make_model"
    assert {row["label"] for row in told["images"][0]["top"]} == {"x", "y", "z"}
    told = json.loads(run(*given, "own_models:make_model", *HALF, "--num-classes", "7", cwd=folder).stdout)
    assert max(row["class"] for row in told["images"][0]["top"]) > 2
    many = ",".join(f"class {number}" for number in range(100))  # longer than the name of a file can be
    run(*given, "own_models:make_model", *HALF, "--num-classes", "100", "--labels", many, cwd=folder)
    run(*given, "own_models:make_gray", "--size", "16", "--mean", "0.5", "--std", "0.5", cwd=folder)
    told = json.loads(run(*given, "own_models:make_classifier", cwd=folder).stdout)
    assert {row["label"] for row in told["images"][0]["top"]} == {"a", "b", "c"}
    assert "grad-cam" in run("methods", "--model", "own_models:make_classifier", cwd=folder).stdout


@pytest.mark.parametrize(
    ("model", "more", "said"),
    [
        ("own_models:make_model", (), "size, mean, std missing. Write --size, --mean and --std."),
        ("own_models:make_model", ("--mean", "half"), "--mean half; expected numbers"),
        ("own_models:make_model", (*HALF, "--random-weights"), "--random-weights is for models that suffice makes"),
        ("own_models:make_model", (*HALF, "--labels", "a,b"), "3 classes, and 2 labels were given; --labels takes one"),
        ("own_models:make_gray", HALF, "takes images of 1 channel, and images here have 3. Write --mean and --std"),
        ("own_models:make_nothing", HALF, "own_models has no 'make_nothing'"),
        ("own_models:number", HALF, "is of type int; expected a function"),
        ("own_modles:make_model", HALF, "There is no module 'own_modles'"),
    ],
)
def test_mistakes_about_them(folder, photos, model, more, said):
    done = run("predict", photos / "one.png", "--device", "cpu", "--model", model, *more, cwd=folder, code=2)
    assert said in " ".join(done.stderr.split())


def test_messages_name_options_which_exist(photos, tmp_path):
    outside = tmp_path / "lists"
    outside.mkdir()
    (outside / "list.csv").write_text(f"path\n{photos / 'one.png'}\n", encoding="utf-8")
    said = run("predict", outside / "list.csv", *NET, code=2).stderr
    assert "Give the folder of all images as --root" in " ".join(said.split())
    run("predict", outside / "list.csv", *NET, "--root", photos)
    large = run("predict", photos / "one.png", *NET, "--max-pixels", "100", code=2).stderr
    assert "give a larger --max-pixels" in " ".join(large.split())
    given = ("score", photos, *NET, "--method", "gradient")
    labels = run(*given, "--target-class", "label", code=2).stderr
    assert "Write --target-class predicted, or give a list (.csv or .jsonl)" in " ".join(labels.split())
    assert "write --boxes" in " ".join(run(*given, "--metric", "pointing-game", code=2).stderr.split())
    wrong = tmp_path / "wrong.pth"
    torch.save(suffice.load("timm/resnet10t", pretrained=False, num_classes=3, device="cpu").module.state_dict(), wrong)
    network = ("predict", photos / "one.png", "--model", "timm/resnet10t", "--device", "cpu", "--checkpoint", wrong)
    assert "write --num-classes" in " ".join(run(*network, code=2).stderr.split())
    run(*network, "--num-classes", "3")


def test_limits_of_pixels_hold_only_for_the_command(photos, monkeypatch):
    Image.open(photos / "one.png").save(photos / "one.tiff")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert "give a larger --max-pixels" in run("predict", photos / "one.tiff", *NET, code=2).stderr
    run("predict", photos / "one.tiff", *NET, "--max-pixels", "100000")
    assert Image.MAX_IMAGE_PIXELS == 1000


def test_boxes_and_steps_of_scores(photos, tmp_path):
    (tmp_path / "boxes.csv").write_text('path,boxes\none.png,"[0, 0, 80, 60]"\n', encoding="utf-8")
    given = ("score", photos, *NET, "--method", "gradient", "--json")
    told = json.loads(run(*given, "--metric", "pointing-game", "--boxes", tmp_path / "boxes.csv").stdout)
    assert told["rows"][0]["pointing-game"]["mean"] == pytest.approx(1.0)  # the object is the whole image
    told = json.loads(run(*given, "--metric", "insertion", "--steps", "4").stdout)
    assert told["models"]["zoo/resnet"]["settings"]["metrics"]["insertion"]["steps"] == 4
    assert "none of the images" in run(*given, "--boxes", _other(tmp_path), code=2).stderr


def _other(folder):
    (folder / "other.jsonl").write_text('{"path": "other.png", "boxes": [0, 0, 1, 1]}\n', encoding="utf-8")
    return folder / "other.jsonl"


def test_scores_name_images_and_targets(photos):
    run("score", photos, *NET, "--method", "gradient", "--metric", "sparseness", "--out", photos / "scores")
    kept = pq.read_table(photos / "scores" / "scores.parquet")
    assert kept["image"].to_pylist() == ["one.png", "two.png"]
    assert all(isinstance(target, int) for target in kept["target"].to_pylist())


def texts_of(path):
    """Strings of a module that are no docstrings, and so may be said to people."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_every_option_that_is_spoken_of_anywhere_exists():
    groups = command_of(app).commands
    paths = [(name,) for name in groups]
    paths += [(group, name) for group, one in groups.items() for name in getattr(one, "commands", {})]
    known = set().union(*(options_of(*path) for path in paths)) | {"--help", "--version"}
    package = Path(suffice.__file__).parent
    said = {
        option
        for path in package.rglob("*.py")
        for text in texts_of(path)
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", text)
    }
    assert {"--overwrite", "--labels"} <= said  # or it looked for nothing
    assert said <= known


@pytest.mark.parametrize(
    ("method", "train"), [("eea", "suffice train explainer"), ("vit-shapley", "suffice train shapley")]
)
def test_explainers_are_given_by_an_option(method, train):
    given = ("explain", "scenes:test[:2]", "--model", "zoo/vgg", "--device", "cpu", "--method", method)
    said = " ".join(run(*given, code=2).stderr.split())
    assert f"train one with `{train} --model zoo/vgg --images …` and give its file as --option explainer=PATH)" in said
    assert "suffice.attribution" not in said
    fits = run("methods", "--model", "zoo/vgg").stdout.splitlines()
    (of_method,) = (line for line in fits if line.startswith(f"{method}\t"))
    assert "give its file as --option explainer=PATH\t" in of_method


def test_an_explainer_of_other_weights_is_accepted_by_an_option(tmp_path):
    ready = ready_explainer(suffice.load("zoo/resnet", device="cpu"))
    given = ("explain", "scenes:test[:1]", *NET, "--random-weights", "--method", "eea", "--option")
    said = run(*given, f"explainer={ready}", code=2, cwd=tmp_path).stderr
    assert "or --option any_weights=true to see what it makes of an unknown model" in " ".join(said.split())


def test_arguments_become_options():
    options = {"--labels", "--prompt", "--checkpoint", "--random-weights", "--score", "--overwrite", "--method"}
    for python, typed in {
        "labels=['cat', 'dog'], prompt='a photo of a {}'.": "--labels cat,dog, --prompt 'a photo of a {}'.",
        "as in checkpoint='weights.pth', or pretrained=False": "as in --checkpoint weights.pth, or --random-weights",
        "write score='sigmoid'.": "write --score sigmoid.",
        "remove it: overwrite=True.": "remove it: --overwrite.",
        "method=['rise', 'rise']; expected": "--method rise,rise; expected",
        "prompt=(15,): 15 is": "--prompt 15: 15 is",
        "masks=-1; it can be": "masks=-1; it can be",
        "Cannot read runs/score=3,method=a/method=b.png: it": "Cannot read runs/score=3,method=a/method=b.png: it",
        "Skipped score=3.png": "Skipped score=3.png",
    }.items():
        assert for_command(python, options) == typed


def test_interrupted_commands_end_with_130(photos, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    for name in ("predict", "prepare"):
        monkeypatch.setattr(suffice.Classifier, name, stopped)
    monkeypatch.setattr("suffice.metrics.score_methods.attribute", stopped)
    monkeypatch.setattr("suffice.metrics.sanity.checks.attribute", stopped)
    monkeypatch.setattr("suffice.evidence.EvidenceStream.__iter__", stopped)
    for command, more in COMMANDS.items():
        said = run(command, photos, *NET, *more, code=130).stderr
        assert said.splitlines()[-1].startswith("Stopped"), command


def test_gray_photographs_and_lists_as_before(tmp_path):
    Image.fromarray(np.zeros((20, 20), dtype=np.uint8)).save(tmp_path / "gray.png")
    assert "gray.png" in run("predict", tmp_path, *NET).stdout
