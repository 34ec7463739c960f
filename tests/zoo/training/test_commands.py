"""The command and the script, on a folder of small images."""

import json
import queue
import re
import sys
import threading
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace

import pytest
import torch
import typer
from PIL import Image
from safetensors.torch import load_file
from typer.testing import CliRunner

from benchmarks import train_zoo, zoo_plan
from benchmarks.limited_time import Limit
from suffice.cli import train as command
from suffice.errors import CheckpointError, OptionError
from suffice.zoo.training import read_facts, recipe_for, trainer
from tests.study.test_studies import FOLDER, tomllib

QUICK = ("--size", "32", "--steps", "4", "--batch", "8", "--device", "cpu")


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(("dark", "light")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(10):
            level = 200 * number + i
            Image.new("RGB", (32, 32), (level,) * 3).save(tmp_path / "photos" / name / f"{i}.png")
    return tmp_path / "photos"


@pytest.fixture
def run(tmp_path, folder):
    app = typer.Typer()
    app.command("train")(command.train)

    def run(*arguments):
        fixed = ("--data", folder, "--out", tmp_path / "out", *QUICK)
        result = CliRunner().invoke(app, [str(a) for a in (*fixed, *arguments)])
        if isinstance(result.exception, Exception):
            raise result.exception
        return result

    return run


def test_train_writes_weights_with_facts(run, tmp_path):
    done = run("timm/test_vit", "--seed", 3, "--json")
    found = json.loads(done.stdout)
    facts = read_facts(tmp_path / "out" / "timm-test_vit-seed3.safetensors")
    assert found["weights"].endswith("timm-test_vit-seed3.safetensors")
    assert facts["classes"] == ["dark", "light"]
    assert facts["recipe"]["seed"] == 3
    assert facts["recipe"]["flip"] is True  # photographs
    assert facts["test_accuracy"] is None
    assert facts["accuracy"] == facts["validation_accuracy"] == found["accuracy"]
    lines = done.stderr.splitlines()
    assert lines[0].split("\t") == list(command.COLUMNS)
    assert [line.split("\t")[0] for line in lines[1:5]] == ["1/4", "2/4", "3/4", "4/4"]
    assert not (tmp_path / "out" / "timm-test_vit-seed3").exists()


def test_permuted_labels_have_files_of_their_own_and_say_what_was_learned(run, tmp_path):
    done = run("timm/test_vit", "--permute-labels", "--images", 18, "--lr", 1e-6)
    assert (tmp_path / "out" / "timm-test_vit-permuted-seed0.safetensors").exists()
    assert "training accuracy" in done.stdout
    assert "were not learned" in done.stderr


def test_interrupted_and_resumed(run, tmp_path, monkeypatch):
    checkpoint = tmp_path / "out" / "timm-test_vit-seed0" / "last.pt"
    with pytest.raises(CheckpointError, match="nothing to resume"):
        run("timm/test_vit", "--resume")
    monkeypatch.setattr(trainer, "finishing_steps", lambda: _pressed())
    stopped = run("timm/test_vit")
    assert stopped.exit_code == 130
    assert "--resume" in stopped.stderr
    assert checkpoint.exists()
    monkeypatch.undo()
    with pytest.raises(OptionError, match="unfinished run"):
        run("timm/test_vit")
    assert run("timm/test_vit", "--resume").exit_code == 0
    assert not checkpoint.exists()


def _pressed():
    import contextlib

    return contextlib.nullcontext(lambda: True)


def test_a_missing_teacher_or_device_is_said(run):
    with pytest.raises(OptionError, match="Train it first: suffice train resnet"):
        run("timm/test_vit", "--teacher", "resnet")
    with pytest.raises(OptionError, match="cannot be used here"):
        run("timm/test_vit", "--device", "cuda:99")


def test_the_table_on_a_terminal(monkeypatch):
    from rich.console import Console

    from suffice.cli.live import live_table
    from suffice.zoo.training import Progress

    console = Console(file=open("/dev/null", "w"), force_terminal=True, record=True, width=100)  # noqa: SIM115
    monkeypatch.setattr(command.output, "stderr", console)
    with live_table("resnet", command.COLUMNS, command._cells, lambda row: row.validation is not None) as update:
        update(Progress(5, 10, 1.5, 0.25, None, 1000.0, 61.0))
        update(Progress(10, 10, 0.5, 0.75, 0.5, 1000.0, 0.0))
    shown = console.export_text()
    assert "10/10" in shown
    assert "75.0%" in shown
    assert "1:01" in shown


@pytest.fixture
def script(folder, tmp_path, monkeypatch):
    """The script on stand-ins: a network that others learn from, one that learns, and one more."""
    from suffice.zoo.training import networks

    roles = {"timm/test_vit": (False, False), "student": (True, False), "third": (False, True)}
    real = networks.build_network
    monkeypatch.setattr(zoo_plan, "hints", roles.__getitem__)
    monkeypatch.setattr(train_zoo, "hints", roles.__getitem__)

    def build(name, **options):
        return real("timm/test_vit", **options)

    monkeypatch.setattr("suffice.zoo.training.trainer.build_network", build)
    monkeypatch.setitem(sys.modules, "suffice.zoo.architectures", SimpleNamespace(ARCHITECTURES=dict.fromkeys(roles)))
    out = tmp_path / "zoo"

    def script(*arguments):
        fixed = ("--data", folder, "--out", out, "--teacher", "timm/test_vit", *QUICK, *arguments)
        return train_zoo.main([str(a) for a in fixed])

    return script, out


def rows(out):
    return [json.loads(line) for line in (out / "table.jsonl").read_text().splitlines()]


def test_the_script_trains_teachers_first_and_skips_what_is_there(script):
    script, out = script
    assert script("--names", "student,third,timm/test_vit", "--seeds", "0") == 0
    first = rows(out)
    assert [row["name"] for row in first] == ["timm/test_vit", "third", "student"]
    assert first[2]["recipe"]["teacher"] == "timm/test_vit"
    assert first[1]["recipe"]["mixup"] > 0
    assert set(first[0]) == {*train_zoo.ROW, "on_the_way"}
    assert len(first[0]["on_the_way"]) == 4  # steps
    (out / "table.jsonl").write_text(json.dumps(first[0]) + "\n")
    (out / "third-seed0.safetensors").unlink()
    assert script("--names", "student,third,timm/test_vit", "--seeds", "0") == 0
    assert [row["name"] for row in rows(out)] == ["timm/test_vit", "third", "student"]


def test_the_script_takes_recipes_from_a_file(script, tmp_path, capsys):
    script, out = script
    file = tmp_path / "recipes.toml"
    every, third = "[a.all]\nsteps = 9\nlr = 1e-3\nzoom = 0.5\n", "[a.third]\nstop = 2\nzoom = 0.25\n"
    file.write_text(f'{every}[a."timm/test_vit"]\n{third}')
    assert script("--recipes", f"{file}:a", "--seeds", "3") == 0
    found = {row["name"]: row["recipe"] for row in rows(out)}
    assert set(found) == {"timm/test_vit", "third"}
    assert found["timm/test_vit"]["zoom"] == 0.5
    assert found["third"]["zoom"] == 0.25
    assert found["third"]["lr"] == 1e-3
    assert found["third"]["steps"] == 4  # what is typed counts more than the file
    assert found["third"]["stop"] == 2
    assert found["third"]["seed"] == 3
    assert script("--recipes", f"{file}:b") == 2
    assert "no recipes 'b'" in capsys.readouterr().err


def test_the_script_does_not_pass_one_recipe_off_as_another(script, capsys):
    script, out = script
    assert script("--names", "third", "--seeds", "0") == 0
    assert script("--names", "third", "--seeds", "0", "--set", "zoom=0.5") == 1
    assert "another recipe (there and here): zoom: 1.0 and 0.5" in capsys.readouterr().out
    assert script("--names", "third", "--seeds", "0") == 0
    assert len(rows(out)) == 1


def test_the_script_keeps_what_shorter_runs_end_with(script, tmp_path):
    script, out = script
    file = tmp_path / "recipes.toml"
    file.write_text('[a."timm/test_vit"]\n[a.student]\nteacher = "third"\n[a.third]\n')
    assert script("--recipes", f"{file}:a", "--seeds", "0", "--stops", "0.5,1") == 0
    found = {row["name"]: row["recipe"] for row in rows(out)}
    assert found["student"]["teacher"] == "timm/test_vit"  # what is typed counts more than the file
    kept = {path.name: read_facts(path) for path in (out / "stops").iterdir()}
    assert set(kept) == {f"{name}-seed0-step2.safetensors" for name in ("timm-test_vit", "student", "third")}
    assert all(facts["recipe"]["stop"] == 2 for facts in kept.values())
    assert (
        train_zoo.teacher_of("student", SimpleNamespace(teacher=None, recipes={"student": {"teacher": "third"}}))
        == "third"
    )
    with pytest.raises(SystemExit):
        script("--stops", "1.5")


@pytest.mark.parametrize("table", ["imagenette", "tiny"])
def test_recipes_of_the_study_of_normalization(table):
    found = train_zoo.read_recipes(f"{FOLDER.parent / 'benchmarks' / 'normalization_recipes.toml'}:{table}")
    study = tomllib.loads((FOLDER / "normalization.toml").read_text())
    assert {model["label"] for model in study["models"]} <= set(found)
    assert found["deit-distilled"]["teacher"] in found
    for name, fields in found.items():
        assert recipe_for(photographs=True, augmented=name == "resnet-aug", **fields).steps == fields["steps"]


def test_the_script_stops_in_time_and_goes_on(script, capsys, monkeypatch):
    script, out = script
    arguments = ("--names", "timm/test_vit,third", "--seeds", "0", "--stops", "0.5")
    assert script("--max-minutes", "0", *arguments) == 3
    assert not (out / "table.jsonl").exists()
    assert "Stopped: timm/test_vit, seed 0: not enough time is left to begin." in capsys.readouterr().out
    asked = iter([False, False, False, *[True] * 99])  # before the first run, after its first step, and its second
    with monkeypatch.context() as patched:
        patched.setattr(Limit, "over", lambda self: next(asked))
        assert script(*arguments) == 3
    said = capsys.readouterr().out
    assert "Stopped: timm/test_vit, seed 0: the state is saved." in said
    assert "0 of 2 runs are there" in said
    assert (out / "timm-test_vit-seed0" / "last.pt").exists()
    assert script(*arguments) == 0
    assert not (out / "timm-test_vit-seed0").exists()
    stopped = {path.name for path in (out / "stops").iterdir()}
    weights = load_file(out / "timm-test_vit-seed0.safetensors")
    for path in out.rglob("timm-test_vit*"):
        path.unlink()
    assert script(*arguments) == 0
    assert all(torch.equal(load_file(out / "timm-test_vit-seed0.safetensors")[key], weights[key]) for key in weights)
    assert {path.name for path in (out / "stops").iterdir()} == stopped


def test_the_script_begins_nothing_that_would_not_end_in_time(script, capsys, monkeypatch):
    script, _ = script
    left = iter([60.0, 60.0, 60.0, 60.0, 60.0, 60.0, 1e-9, 1e-9])
    monkeypatch.setattr(Limit, "left", lambda self: next(left))
    assert script("--names", "timm/test_vit,third", "--seeds", "0", "--whole") == 3
    said = capsys.readouterr().out
    assert "1 of 2 runs are there" in said
    assert "Stopped: third, seed 0: not enough time" in said


def test_the_script_says_how_far_it_is(script, capsys):
    script, _ = script
    assert script("--names", "third", "--seeds", "0", "--progress", "0") == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "third seed 0  step" in line]
    assert len(said) == 4
    assert re.search(r"step 2/4  loss \d+\.\d+  accuracy \d+\.\d% \(validation .*  [\d,]+ images/s  0:00 left", said[1])


def test_a_teacher_that_is_not_there_or_another_ends_the_script_before_anything_is_trained(script, capsys):
    script, out = script
    assert script("--names", "third,student", "--seeds", "0,1") == 2
    said = capsys.readouterr().err
    assert "student, seed 0: its teacher's weights" in said
    assert "student, seed 1: its teacher's weights" in said
    assert not list(out.rglob("*.safetensors"))

    assert script("--names", "third", "--seeds", "0") == 0
    (out / "third-seed0.safetensors").rename(out / "timm-test_vit-seed0.safetensors")
    assert script("--names", "third,student", "--seeds", "0") == 2
    assert "is of third, not of its teacher timm/test_vit" in capsys.readouterr().err
    (out / "timm-test_vit-seed0.safetensors").unlink()

    assert script("--names", "timm/test_vit", "--seeds", "0", "--set", "zoom=0.5") == 0
    assert script("--names", "third,student,timm/test_vit", "--seeds", "0") == 2
    assert "trained by another recipe (there and here): zoom: 0.5 and 1.0" in capsys.readouterr().err
    assert not (out / "third-seed0.safetensors").exists()
    assert script("--names", "student", "--seeds", "0") == 0  # as it is then not said how the teacher is to be trained


def test_a_teacher_of_other_classes_is_refused(script, folder, capsys):
    script, _ = script
    assert script("--names", "timm/test_vit", "--seeds", "0") == 0
    (folder / "light").rename(folder / "bright")
    assert script("--names", "student", "--seeds", "0") == 2
    assert "knows 2 classes (dark, light" in capsys.readouterr().err


def test_the_script_says_what_failed(script, capsys):
    script, out = script
    assert script("--names", "student", "--seeds", "0", "--wait-minutes", "0.001") == 1
    assert "do not exist after" in capsys.readouterr().out
    assert script("--images", "0") == 2
    assert script("--names", "student,timm/test_vit", "--seeds", "0", "--lr", "1e30") == 1
    said = capsys.readouterr().out
    assert "FAILED timm/test_vit, seed 0" in said
    assert "Stopped: student, seed 0: its teacher was not trained" in said
    assert not (out / "table.jsonl").exists()


def test_teachers_come_first_and_students_last(monkeypatch):
    monkeypatch.setattr(zoo_plan, "hints", lambda name: (name == "c", False))
    runs = train_zoo.planned(["a", "b", "c"], [0, 1], {"b"})
    assert [run.name for run in runs] == ["b", "b", "a", "a", "c", "c"]


class Worker(threading.Thread):
    """Stands in for a process: starting those takes longer than all the rest. What they are given must travel."""

    exitcode = 0

    def __init__(self, target, args):
        super().__init__(target=target, args=args)
        ForkingPickler.dumps((target, args[4:]))
        assert {type(given) for given in (args[0], args[1], args[3].stop)} == {queue.Queue, threading.Event}


def test_workers_share_the_runs(folder, tmp_path, monkeypatch):
    context = SimpleNamespace(Queue=queue.Queue, Process=Worker, Event=threading.Event)
    monkeypatch.setattr(torch.multiprocessing, "get_context", lambda kind: context)
    arguments = ("--data", folder, "--out", tmp_path, "--names", "timm/test_vit", "--seeds", "0,1,2", *QUICK)
    assert train_zoo.main([str(a) for a in (*arguments, "--workers", "2")]) == 0
    assert sorted(row["seed"] for row in rows(tmp_path)) == [0, 1, 2]


def test_nothing_of_torch_is_left_changed(run):
    before = torch.get_rng_state()
    run("timm/test_vit")
    assert torch.equal(before, torch.get_rng_state())
