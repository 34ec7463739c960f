"""The command line as a whole."""

import subprocess
import sys

import pytest

import suffice
from tests.cli.command import run

COMMANDS = (
    (), ("models",), ("predict",), ("methods",), ("explain",), ("score",), ("sanity",), ("evidence",), ("train",),
    ("demo",), ("bench",), ("bench", "probe"), ("bench", "methods"), ("bench", "metrics"), ("bench", "evidence"),
)  # fmt: skip


def test_in_a_process_of_its_own():
    """The entry point, and no traceback for a mistake."""
    for arguments, code in ((["--version"], 0), (["predict", "a.png", "--model", "nowhere/resnet"], 2)):
        done = subprocess.run(
            [sys.executable, "-m", "suffice", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr


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
        (("evidence", "one.png", "--model", "zoo/resnet", "--threshold", "2"), "threshold=2.0; it can be a number"),
        (("demo", "--networks", "resnte"), "resnte"),
        (("bench", "probe", "--precision", "fp8"), "fp8"),
        (("paint",), "paint"),
    ],
)
def test_mistakes_are_one_message_and_exit_code_2(arguments, said, photos):
    assert said in run(*arguments, cwd=photos, code=2).stderr
