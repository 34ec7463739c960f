"""``suffice sanity`` as a user meets it."""

import json
import sys

import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.errors import OptionError
from tests.cli.command import run

MODEL = ("--model", "zoo/deit", "--random-weights", "--device", "cpu")


def sanity(*arguments):
    """In this process, which is quicker than a new one."""
    return CliRunner().invoke(app, ["sanity", *map(str, arguments)])


def test_table_files_and_what_is_left_out(tmp_path):
    pytest.importorskip("matplotlib")
    done = sanity(
        "scenes:test[:2]", "--model", "zoo/resnet", "--random-weights", "--device", "cpu",
        "--method", "gradient,rollout,grad-cam", "--how", "permute", "--option", "gradient.times=input",
        "--option", "gradient.reduction=sum", "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines[0][0] == "method"
    assert [line[0] for line in lines[1:]] == ["gradient", "grad-cam"]
    assert "Left out because they do not fit zoo/resnet: rollout." in done.stderr
    assert "Rule:" in done.stderr
    assert {f.name for f in (tmp_path / "out").iterdir()} == {
        "sanity.md", "sanity.csv", "sanity.json", "sanity.parquet", "similarity.png", "maps.png",
    }  # fmt: skip


def test_without_matplotlib_there_are_tables_but_no_figures(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = sanity("scenes:test[:1]", *MODEL, "--method", "gradient", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "pip install 'suffice[plots]'" in done.stderr
    written = {f.name for f in (tmp_path / "out").iterdir()}
    assert written == {"sanity.md", "sanity.csv", "sanity.json", "sanity.parquet"}


def test_json():
    done = sanity("scenes:test[:2]", *MODEL, "--method", "raw-attention", "--check", "independent", "--json")
    found = json.loads(done.stdout)
    assert found["steps"] == ["trained", "head", "blocks.3", "blocks.2", "blocks.1", "blocks.0", "patch_embed"]
    assert found["rows"][0]["spearman"]["mean"][:2] == pytest.approx([1, 1])  # attention does not know the head
    assert found["rows"][0]["verdict"].startswith("hardly depends on head")


def test_the_precision_of_models():
    given = ("scenes:test[:2]", *MODEL, "--method", "gradient", "--check", "independent", "--json")
    found = [json.loads(sanity(*given, *more).stdout) for more in ((), ("--precision", "bf16"))]
    assert [one["about"]["precision"] for one in found] == ["fp32", "bf16"]


def test_a_model_of_permuted_labels(tmp_path):
    from safetensors.torch import save_file

    from suffice.zoo.architectures import build

    weights = tmp_path / "deit-permuted-seed0.safetensors"
    save_file(build("deit").state_dict(), weights)
    done = sanity(
        "scenes:test[:3]", *MODEL, "--method", "gradient", "--check", "data", "--permuted-model", weights, "--json"
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["steps"] == ["trained", "permuted labels"]
    assert found["rows"][0]["spearman"]["mean"][0] == pytest.approx(1)
    assert abs(found["rows"][0]["spearman"]["mean"][1]) < 0.9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "gradient", "--permuted-model", "a.safetensors"), "no other check takes it"),
        (("--method", "gradient", "--permuted-option", "times=input"), "--permuted-option is for --check data"),
        (("--method", "gradeint"), "gradient"),
        (("--method", "gradient", "--check", "labels"), "labels"),
        (("--method", "gradient", "--option", "masks=3"), "masks"),
    ],
)
def test_mistakes_are_named(arguments, said):
    done = sanity("scenes:test[:1]", *MODEL, *arguments)
    assert done.exit_code != 0
    assert said in (str(done.exception) if isinstance(done.exception, OptionError) else done.output)


def test_ctrl_c_is_answered(monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("suffice.metrics.sanity.checks.attribute", stopped)
    done = run("sanity", "scenes:test[:1]", *MODEL, "--method", "gradient", code=130)
    assert done.stderr.splitlines() == ["Stopped; nothing was kept."]


def test_a_mistake_is_one_message_and_exit_code_2():
    done = run("sanity", "scenes:test[:1]", *MODEL, "--method", "gradient", "--check", "data", code=2)
    assert "--permuted-model" in done.stderr


def test_the_data_check_takes_no_choices_of_random_weights():
    for choice in (("--draws", 3), ("--how", "permute")):
        done = sanity(
            "scenes:test[:1]",
            *MODEL,
            "--method",
            "gradient",
            "--check",
            "data",
            "--permuted-model",
            "zoo/deit",
            *choice,
        )
        assert isinstance(done.exception, OptionError)
        assert "neither --draws nor --how" in str(done.exception)
