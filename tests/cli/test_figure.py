"""``suffice figure``."""

import json

import pytest
from typer.testing import CliRunner

from suffice import Study
from suffice.cli.app import app
from suffice.errors import OptionError
from tests.cli.command import run as command


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


@pytest.fixture
def with_a_broken_one(photos):
    (photos / "broken.png").write_bytes(b"no image")
    return photos


@pytest.mark.parametrize("name", ["classes", "vit-cx-masks", "mask-similarity"])
def test_broken_files_are_left_out_and_named(name, with_a_broken_one, tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    words = ("figure", name, with_a_broken_one, "--model", "zoo/deit", "--out", out)
    done = command(*words, code=1)
    assert "Skipped broken.png" in done.stderr
    assert sorted(map(str, out.iterdir())) == sorted(done.stdout.split())
    assert "broken.png" in command(*words, "--on-error", "raise", code=2).stderr
    assert "None of the images" not in command(*words[:2], with_a_broken_one / "broken.png", *words[3:], code=2).stderr


def test_what_comes_after_the_images_that_are_drawn_is_not_looked_at(with_a_broken_one, tmp_path):
    (with_a_broken_one / "broken.png").rename(with_a_broken_one / "z.png")
    command("figure", "vit-cx-masks", with_a_broken_one, "--model", "zoo/deit", "--out", tmp_path / "out")


def test_methods_and_models_that_do_not_fit_are_left_out_and_named(photos, tmp_path):
    words = (photos / "one.png", "--model", "zoo/resnet,zoo/deit", "--out", tmp_path / "out")
    done = command("figure", "classes", *words, "--method", "rollout,grad-cam")
    assert "do not fit zoo/resnet: rollout" in done.stderr
    assert len(done.stdout.splitlines()) == 2
    done = command("figure", "sanity-maps", *words, "--method", "rollout")
    assert done.stdout.split() == [str(tmp_path / "out" / "sanity-maps-cascading-zoo-deit.svg")]
    assert "do not fit zoo/resnet: rollout" in done.stderr
    turned = (words[0], "--model", "zoo/deit,zoo/resnet", *words[3:])
    assert "Left out" not in command("figure", "insertion-steps", *turned, "--method", "rollout").stderr
    done = command("figure", "classes", words[0], "--model", "zoo/resnet", "--method", "rollout", code=2)
    assert "fits zoo/resnet" in done.stderr


def test_outputs_are_checked_before_anything_else(run, photos, tmp_path, monkeypatch):
    monkeypatch.setattr("suffice.study.Study.open", lambda folder: pytest.fail("opened a study before the output"))
    monkeypatch.setattr("suffice.vision.load", lambda name, **how: pytest.fail("loaded a model before the output"))
    (tmp_path / "file").touch()
    (tmp_path / "folder.svg").mkdir()
    for out, said in (
        (tmp_path / "file" / "a.svg", "cannot be written to: Not a directory"),
        (tmp_path / "file", "cannot be written to: Not a directory"),
        (tmp_path / "folder.svg", "is a folder; expected a file"),
    ):
        assert said in command("figure", "plane", run, "--out", out, code=2).stderr
        assert said in command("figure", "classes", photos, "--model", "zoo/deit", "--out", out, code=2).stderr
