"""``suffice study run``: interrupted, and with other engines."""

import os
import signal
import sys

import pytest

from tests.cli.command import run
from tests.forks import CONTEXT
from tests.study.processes import done, ended, unfinished, wait_for
from tests.study.small import write_study


def command(*arguments: object) -> None:
    """The command, in this process."""
    from suffice.cli import main

    sys.argv = ["suffice", *map(str, arguments)]
    main()


def test_ctrl_c_is_exit_code_130_and_leaves_what_is_finished(tmp_path):
    file, out = write_study(tmp_path), tmp_path / "run"
    process = CONTEXT.Process(target=command, args=("study", "run", file, "--out", out, "--device", "cpu"), daemon=True)
    process.start()
    assert wait_for(lambda: done(out) >= 3, process)
    os.kill(process.pid, signal.SIGINT)
    assert ended(process) == 130
    assert 3 <= done(out) < 24
    assert not unfinished(out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gpus", "1"), "--gpus 1.0 is for --engine ray"),
        (("--address", "auto"), "--address auto is for --engine ray"),
    ],
)
def test_options_of_engines_that_do_not_fit(tmp_path, arguments, said):
    file = write_study(tmp_path)
    done = run("study", "run", str(file), "--out", str(tmp_path / "run"), *arguments, code=2)
    assert said in done.stderr
    assert not (tmp_path / "run").exists()
