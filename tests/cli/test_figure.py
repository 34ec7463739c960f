"""``suffice figure``."""

import json

import pytest
from typer.testing import CliRunner

from suffice import Study
from suffice.cli.app import app
from suffice.errors import OptionError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure") / "run"
    evidence = {"kind": "evidence", "grid": 2, "max_mses": 2}
    Study("small", "scenes:test[:3]", ["zoo/resnet", "zoo/vgg"], {"evidence": evidence}).run(folder, device="cpu")
    return str(folder)


def invoke(*words):
    return CliRunner().invoke(app, ["figure", *words], catch_exceptions=False)


def test_it_lists_all_figures_with_papers():
    assert "landscape\t" in invoke().stdout
    listed = json.loads(invoke("--json").stdout)
    assert all(one["papers"] for one in listed)
    assert {"mse-sizes", "vit-cx-coverage"} <= {one["name"] for one in listed}


def test_it_writes_a_figure_with_its_numbers(run, tmp_path):
    done = invoke("mse-sizes", run, "--out", str(tmp_path / "sizes.png"), "--table", "--json")
    (said,) = json.loads(done.stdout)
    assert said["file"] == str(tmp_path / "sizes.png")
    assert (tmp_path / "sizes.csv").read_text("utf-8").startswith('"model"')


def test_several_drawings_have_names_of_their_own(run, tmp_path):
    invoke("summary", run, "--out", str(tmp_path / "all.svg"))
    invoke("summary", run, "--out", str(tmp_path / "folder"))
    assert len(list(tmp_path.glob("all-summary-*.svg"))) == len(list((tmp_path / "folder").glob("*.svg"))) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plane"], "a study with evidence"),
        (["classes", "scenes:test[:1]"], "needs --model"),
        (["landscape", "RUN"], "no measurement of the kind 'cross-test'"),
        (["plane", "RUN", "--out", "plane.gif"], ".svg"),
        (["plane", "RUN", "--image", "1"], "no option 'image'"),
    ],
)
def test_mistakes_are_said(words, message, run):
    with pytest.raises((OptionError, ValueError), match=message):
        invoke(*[run if word == "RUN" else word for word in words])
