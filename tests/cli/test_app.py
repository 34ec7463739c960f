"""The command line as a whole."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import suffice
from suffice.cli import output
from suffice.cli.app import app
from suffice.cli.options import writable
from suffice.errors import SufficeWarning
from tests.cli.command import command_of, run

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = (
    (), ("models",), ("predict",), ("methods",), ("explain",), ("score",), ("sanity",), ("evidence",), ("train",),
    ("demo",), ("study",), ("study", "run"), ("study", "status"), ("study", "export"),
    ("compare",), ("shortcuts",), ("figure",), ("report",), ("serve",), ("train", "explainer"), ("train", "shapley"),
    ("bench",), ("bench", "probe"), ("bench", "methods"), ("bench", "metrics"), ("bench", "evidence"),
)  # fmt: skip


def test_in_a_process_of_its_own():
    """The entry point, and no traceback for a mistake."""
    for arguments, code in ((["--version"], 0), (["predict", "a.png", "--model", "nowhere/resnet"], 2)):
        done = subprocess.run(
            [sys.executable, "-m", "suffice", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr


def test_names_are_printed_as_they_are(monkeypatch, capsys):
    monkeypatch.setattr(output.stdout, "_force_terminal", True)
    names = ["IMG [final].jpg", "a[/b].jpg", "x:cat:y.png"]
    output.print_table("a [/study]", ("image", "class"), [(name, 1) for name in names])
    told = capsys.readouterr().out
    assert all(name in told for name in (*names, "a [/study]"))


def test_version():
    assert run("--version").stdout == f"suffice {suffice.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    assert "Usage" in run(*command, "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("predict", "one.png", "--model", "timm/resnet1O"), "Did you mean"),
        (("predict", "missing.png", "--model", "timm/resnet10t"), "missing.png"),
        (("predict", "one.png", "--model", "timm/resnet10t", "--checkpoint", "missing.pth"), "does not exist"),
        (("predict", "one.png"), "--model"),
        (("predict", "one.png", "--model", "timm/resnet10t", "--top", "0"), "--top"),
        (("evidence", "one.png", "--model", "zoo/resnet", "--preset", "iccv"), "no preset 'iccv'"),
        (("evidence", "one.png", "--model", "zoo/resnet", "--threshold", "2"), "--threshold 2.0; it can be a number"),
        (
            ("evidence", "one.png", "--model", "zoo/resnet", "--max-size", "0"),
            "--max-size 0; it can be a whole number from 1 on or none.",
        ),
        (("evidence", "one.png", "--model", "zoo/resnet", "--subset-budget", "-1"), "--subset-budget -1; it can be"),
        (("demo", "--networks", "resnte"), "resnte"),
        (("bench", "probe", "--precision", "fp8"), "fp8"),
        (("paint",), "paint"),
    ],
)
def test_mistakes_are_one_message_and_exit_code_2(arguments, said, photos):
    assert said in run(*arguments, cwd=photos, code=2).stderr


@pytest.mark.parametrize("device", ["tpu", "cuda:99", "cpu:x"])
def test_a_device_that_is_not_there_is_said(device):
    said = run("predict", "scenes:test[:1]", "--model", "zoo/deit", "--device", device, code=2).stderr
    assert f"--device {device} cannot be used here" in " ".join(said.split())


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "--model", "zoo/deit", "--method", "gradient"),
        ("score", "--model", "zoo/deit", "--method", "gradient"),
        ("sanity", "--model", "zoo/deit", "--method", "gradient"),
        ("evidence", "--model", "zoo/deit"),
    ],
)
def test_folders_that_cannot_be_written_to_are_said_before_any_work(command, tmp_path):
    (tmp_path / "file").write_text("")
    # The image does not exist, so that any work would end otherwise.
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        name, *options = command
        said = run(name, "missing.png", *options, "--out", out, code=2).stderr
        assert f"--out {out} cannot be written to" in " ".join(said.split())
    run(name, "missing.png", *options, "--out", tmp_path / "a" / "b", code=2)
    assert not (tmp_path / "a").exists()  # nothing is left behind by a mistake


def test_whether_a_folder_can_be_written_to_is_found_out_without_making_it(tmp_path, monkeypatch):
    """Others may be about to use it: several processes can begin a study in one folder at the same time."""
    monkeypatch.setattr(os, "mkdir", None)
    assert writable(tmp_path / "a" / "b") == tmp_path / "a" / "b"


def test_whoever_reads_the_output_may_have_seen_enough():
    ours, theirs = os.pipe()
    os.close(ours)  # as head does once it has its lines
    with open(theirs, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "suffice", "methods"], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file that is always full")
@pytest.mark.parametrize("command", ["--version", "methods"])  # less than Python gathers before it writes, and more
def test_a_full_disk_is_said_in_words(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "suffice", command], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "Error: The output cannot be written, because the disk is full.\n"


@pytest.mark.filterwarnings("default::suffice.SufficeWarning")
def test_warnings_for_users_are_one_line(tmp_path):
    seen = ("explain", "scenes:train[:2]", "--model", "zoo/resnet", "--device", "cpu", "--method", "eea")
    said = run(*seen, "--option", "mode=pretrained", cwd=tmp_path).stderr.splitlines()
    assert said[0] == (
        "Warning: 2 of 2 images are among those that the explainer was trained on; results on them say nothing about "
        "others."
    )
    assert not [line for line in said if "SufficeWarning" in line or ".py" in line]


@pytest.mark.filterwarnings("default::suffice.SufficeWarning")
def test_warnings_speak_of_options_and_others_are_left_as_they_are(monkeypatch):
    def warning(*_, **__):
        warnings.warn("Write threshold=0.5.", SufficeWarning, stacklevel=1)
        warnings.warn("Of somebody else: threshold=0.5.", UserWarning, stacklevel=1)
        raise KeyboardInterrupt

    monkeypatch.setattr(suffice.vision, "load", warning)
    with pytest.warns(UserWarning, match="Of somebody else: threshold=0.5") as others:
        said = run("evidence", "scenes:test[:1]", "--model", "zoo/deit", code=130).stderr
    assert said.splitlines() == ["Warning: Write --threshold 0.5.", "Stopped."]
    assert [one.category for one in others] == [UserWarning]


def options_of(*words):
    """The options of a command, each with all its names."""
    command = command_of(app)
    for word in words:
        command = command.commands[word]
    options = [(*one.opts, *one.secondary_opts) for one in command.params]
    return [names for names in options if names[0].startswith("--") and names[0] not in ("--json", "--version")]


def unnamed(options, text):
    """The options of which a text has no name."""
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))
    return [names[0] for names in options if not named & set(names)]


def section(*words):
    """The part of the page on the command line that is about a command."""
    page = (DOCS / "cli.md").read_text("utf-8")
    return page.split(f"\n## suffice {' '.join(words)}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("command", ["run", "status", "export"])
def test_the_page_has_every_option_of_studies(command):
    assert unnamed(options_of("study", command), section("study")) == []


@pytest.mark.parametrize("command", [words for words in COMMANDS if words and words not in (("study",), ("bench",))])
def test_the_page_or_one_that_it_refers_to_has_every_option(command):
    own = section("study") if command[0] == "study" else section(*command)
    pages = {"cli.md", *re.findall(r"\]\(([\w-]+\.md)", own)}
    assert unnamed(options_of(*command), "".join((DOCS / page).read_text("utf-8") for page in sorted(pages))) == []
