"""``suffice study`` as a user meets it."""

import json

import pyarrow.parquet as pq
import pytest

from suffice.cli import study as command
from suffice.study import Study, calibrate
from suffice.study import study as studies
from suffice.study.kinds.attribution import Maps
from suffice.study.kinds.predictions import Predictions
from tests.cli.command import run
from tests.study.small import write_pictures
from tests.study.test_asked import WRONG

FILE = """\
name = "tiny: a/b"
images = "pictures"
models = ["tests.study.small:any_of", { name = "tests.study.small:weighted", label = "sum" }]
[run]
block = 4
[measure.said]
kind = "predictions"
[measure.maps]
kind = "attribution"
method = "occlusion"
window = 8
stride = 8
[measure.scores]
kind = "metrics"
maps = "maps"
metrics = ["insertion"]
steps = 9
"""
CPU = ("--device", "cpu")


@pytest.fixture
def folder(tmp_path):
    write_pictures(tmp_path / "pictures", 6)
    (tmp_path / "study.toml").write_text(FILE)
    return tmp_path


def rows(done):
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def test_run_then_status_then_export(folder):
    done = run("study", "run", "study.toml", "--only", "said", *CPU, cwd=folder)
    assert "Written to runs/tiny-a-b" in done.stderr
    assert [(row["measurement"], row["images"]) for row in rows(done)][::2] == [
        ("said", "6/6"), ("maps", "0/6"), ("scores", "0/6"),
    ]  # fmt: skip
    done = run("study", "status", "runs/tiny-a-b", cwd=folder)
    assert "tiny: a/b · 4/12 shards · no worker is running · time left not yet known" in done.stderr
    assert rows(done)[0]["shards"] == "2/2"
    done = run("study", "run", "runs/tiny-a-b", *CPU, "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert found["finished"]
    assert {line["images_done"] for line in found["lines"]} == {6}
    done = run("study", "export", "runs/tiny-a-b", "--out", "out", cwd=folder)
    assert "Written to out: said.parquet, maps.parquet, scores.parquet, models.parquet, failures.parquet" in done.stderr
    assert pq.read_table(folder / "out/scores.parquet").num_rows == 12
    done = run("study", "export", "runs/tiny-a-b", "--format", "csv", "--json", cwd=folder)
    assert json.loads(done.stdout)["files"][0].endswith("said.csv")


def test_options_overrule_the_file(folder):
    run("study", "run", "study.toml", "--precision", "ieee", "--batch", "3", "--only", "said", *CPU, cwd=folder)
    how = Study.open(folder / "runs/tiny-a-b").asked.run
    assert (how.precision, how.batch, how.compile, how.block) == ("ieee", 3, False, 4)
    said = run("study", "run", "study.toml", *CPU, cwd=folder, code=2).stderr
    assert "run.precision is fp32, was ieee" in " ".join(said.split())


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(folder):
    before = sorted(folder.rglob("*"))
    done = run("study", "run", "study.toml", "--dry-run", "--devices", "2", "--calibrate", "1", *CPU, cwd=folder)
    assert sorted(folder.rglob("*")) == before
    first = rows(done)[0]
    assert (first["measurement"], first["shards"], first["images"], first["done"]) == ("said", "2", "6", "0")
    assert first["forwards"] == "1"
    assert "±" in first["s / image"]
    assert "on 2 devices such as cpu" in done.stderr
    assert "groups of 1 images" in done.stderr
    found = json.loads(run("study", "run", "study.toml", "--dry-run", "--json", *CPU, cwd=folder).stdout)
    assert (found["devices"], len(found["lines"])) == (1, 6)
    assert found["seconds"] > 0
    run("study", "run", "study.toml", *CPU, cwd=folder)
    done = run("study", "run", "runs/tiny-a-b", "--dry-run", *CPU, cwd=folder)
    assert "nothing left to run" in done.stderr
    said = run("study", "run", "study.toml", "--devices", "2", cwd=folder, code=2).stderr
    assert "are for --dry-run" in said


def test_a_dry_run_says_what_it_measured_too_little(folder, monkeypatch):
    asked = ("study", "run", "study.toml", "--dry-run", *CPU)
    monkeypatch.setattr(calibrate, "ENOUGH", 0.0)
    done = run(*asked, cwd=folder)
    assert all(row["s / image"].endswith(" ± ? (1 group)") for row in rows(done))
    assert " ± ? on one cpu" in done.stderr
    said = " ".join(done.stderr.split())
    assert "Rough, because" in said
    assert "maps of sum, 1 group;" in said


def test_a_dry_run_names_what_it_could_not_measure(folder, monkeypatch):
    def failing(self, work):
        raise RuntimeError("the model is ill")

    monkeypatch.setattr(Maps, "measure", failing)
    asked = ("study", "run", "study.toml", "--dry-run", *CPU)
    done = run(*asked, cwd=folder, code=1)
    assert [row["s / image"] for row in rows(done)].count("not measured") == 4
    assert "without the 4 lines not measured on one cpu" in " ".join(done.stderr.split())
    done = run(*asked, "--only", "maps", cwd=folder, code=1)
    assert "How long it takes is not known." in done.stderr


def test_a_dry_run_for_other_numbers_of_images_and_devices(folder):
    asked = ("study", "run", "study.toml", "--dry-run", "--only", "said", "--calibrate", "1", *CPU)
    several = ("--images", "100", "--images", "1000", "--devices", "1", "--devices", "4")
    found = json.loads(run(*asked, *several, "--json", cwd=folder).stdout)
    assert [(one["images"], one["devices"]) for one in found["totals"]] == [(100, 1), (100, 4), (1000, 1), (1000, 4)]
    assert found["images"] == 100
    assert found["totals"][3]["forwards"] == 10 * found["totals"][0]["forwards"]
    said = run(*asked, *several, cwd=folder)
    assert {row["images"] for row in rows(said)} == {"100"}
    assert "1,000 images: " in said.stderr


def test_what_failed_is_exit_code_1_and_how_to_do_it_again(folder, monkeypatch):
    def failing(self, work):
        raise RuntimeError("ill")

    monkeypatch.setattr(Maps, "measure", failing)
    done = run("study", "run", "study.toml", *CPU, cwd=folder, code=1)
    assert "8 shards failed" in done.stderr
    assert "  maps of tests.study.small:any_of: RuntimeError: ill\n" in done.stderr
    assert done.stderr.count("ill") == 1  # the same reason everywhere, and maps that scores do without therefore
    assert "suffice study run runs/tiny-a-b --retry-failed" in " ".join(done.stderr.split())
    done = run("study", "run", "study.toml", "--dry-run", "--out", "other", "--only", "maps", *CPU, cwd=folder, code=1)
    assert "Does not work: maps of sum: RuntimeError: ill" in done.stderr
    monkeypatch.undo()
    run("study", "run", "runs/tiny-a-b", *CPU, cwd=folder, code=1)  # not by itself
    done = run("study", "run", "runs/tiny-a-b", "--retry-failed", *CPU, cwd=folder)
    assert {row["failed"] for row in rows(done)} == {"0"}


def test_one_shard_that_failed_and_several_reasons(folder, monkeypatch):
    reasons = iter(["one", "two", "two", "three\nand more", "four"])
    measure = Predictions.measure

    def failing(self, work):
        if (reason := next(reasons, None)) is None:
            return measure(self, work)
        raise RuntimeError(reason)

    (folder / "study.toml").write_text(FILE.replace("block = 4", "block = 1"))
    monkeypatch.setattr(Predictions, "measure", failing)
    done = run("study", "run", "study.toml", "--only", "said", *CPU, cwd=folder, code=1)
    assert "5 shards failed" in done.stderr
    told = [line.rpartition(": ")[2] for line in done.stderr.splitlines() if "RuntimeError" in line]
    assert told == ["one", "two", "three"]
    reasons = iter(["five"])
    done = run("study", "run", "study.toml", "--only", "said", "--retry-failed", *CPU, cwd=folder, code=1)
    assert "1 shard failed" in done.stderr


def test_ctrl_c_keeps_what_is_finished(folder, monkeypatch):
    def stopped(self, work):
        raise KeyboardInterrupt

    monkeypatch.setattr(Maps, "measure", stopped)
    done = run("study", "run", "study.toml", "--out", "mine", *CPU, cwd=folder, code=130)
    assert "What is finished is in mine; run the same command again to continue." in done.stderr
    monkeypatch.undo()
    assert {row["images"] for row in rows(run("study", "run", "mine", *CPU, cwd=folder))} == {"6/6"}


def test_ctrl_c_before_anything_was_begun(folder, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(studies, "make_plan", stopped)
        said = run("study", "run", "study.toml", "--out", "mine", *CPU, cwd=folder, code=130).stderr
    assert "Nothing was started yet; run the same command again to begin." in said
    assert "What is finished" not in said
    assert not (folder / "mine").exists()
    run("study", "run", "study.toml", "--out", "mine", "--only", "said", *CPU, cwd=folder)
    monkeypatch.setattr(studies, "make_plan", stopped)
    said = run("study", "run", "study.toml", "--out", "mine", *CPU, cwd=folder, code=130).stderr
    assert "What is finished is in mine" in said


def test_watching_ends_when_all_is_done(folder, monkeypatch):
    run("study", "run", "study.toml", "--out", "mine", "--only", "said", *CPU, cwd=folder)

    def others_work(seconds):
        run("study", "run", "mine", *CPU, cwd=folder)

    monkeypatch.setattr(command.time, "sleep", others_work)
    done = run("study", "status", "mine", "--watch", cwd=folder)
    assert {row["images"] for row in rows(done)} == {"6/6"}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_one_line_and_nothing_is_written(folder, kind):
    text, where, what = WRONG[kind]
    (folder / "study.toml").write_text(text)
    before = sorted(folder.rglob("*"))
    said = run("study", "run", "study.toml", *CPU, cwd=folder, code=2).stderr
    assert said.startswith("Error: study.toml")
    assert said.count("\n") == 1
    assert where in said
    assert what in said
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [
        ('"pictures"', '"picturse"', "study.toml, line 2: There is no file or folder"),
        ('"tests.study.small:any_of"', '"zoo/resnte"', "study.toml, line 3: The zoo has no network 'resnte'"),
        ('label = "sum"', 'checkpoint = "none.safetensors"', "line 3: There is no checkpoint none.safetensors"),
        ('"occlusion"\nwindow = 8\nstride = 8', '"rollout"', "line 10: maps (rollout) does not fit tests"),
        ("window = 8", 'target_class = "label"\nwindow = 8', "line 11: maps does not fit the images"),
        ('["insertion"]\nsteps = 9', '["pointing-game"]', "line 16: scores does not fit the images"),
    ],
)
def test_what_the_file_names_and_is_not_there_is_said_before_anything_is_written(folder, line, instead, said):
    (folder / "study.toml").write_text(FILE.replace(line, instead))
    before = sorted(folder.rglob("*"))
    assert said in " ".join(run("study", "run", "study.toml", *CPU, cwd=folder, code=2).stderr.split())
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "study.toml", "--only", "siad"), "Did you mean 'said'?"),
        (("run", "study.toml", "--out", "pictures"), "is not empty"),
        (("run", "study.toml", "--out", "study.toml"), "--out study.toml cannot be written to"),
        (("run", "study.toml", "--out", "nowhere://here"), "nowhere://here"),
        (("run", "none.toml"), "none.toml cannot be read: No such file or directory."),
        (("run", "none"), "There is no study in none: no such file or folder."),
        (("run", "study.toml", "--device", "tpu"), "--device tpu cannot be used here"),
        (("status", "study.toml"), "was not run yet"),
        (("status", "pictures"), "There is no study in pictures"),
        (("status", "none"), "There is no study in none: no such file or folder."),
        (("status", "memory://none"), "There is no study in memory://none: no plan.json."),
        (("export", "none"), "There is no study in none: no such file or folder."),
        (("export", "none", "--tables", "tables"), "There is no study in none: no such file or folder."),
        (("export", "pictures", "--format", "xls"), "xls"),
    ],
)
def test_mistakes(folder, arguments, said):
    told = " ".join(run("study", *arguments, cwd=folder, code=2).stderr.split())
    assert said in told
    assert "Errno" not in told
