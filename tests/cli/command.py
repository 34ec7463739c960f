"""Commands as a user meets them, in this process, which is quicker than a new one for each."""

import contextlib
import io
import os
import sys
from dataclasses import dataclass
from unittest import mock

from suffice.cli.app import main


@dataclass(frozen=True)
class Done:
    stdout: str
    stderr: str


def run(*arguments, cwd=None, code=0):
    """What a command printed, after its exit code was checked; a traceback would be an exception here."""
    stdout, stderr, before, found = io.StringIO(), io.StringIO(), os.getcwd(), 0
    typed = ["suffice", *map(str, arguments)]
    with mock.patch.object(sys, "argv", typed), contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            os.chdir(cwd or before)
            main()
        except SystemExit as end:
            found = end.code or 0
        finally:
            os.chdir(before)
    done = Done(stdout.getvalue(), stderr.getvalue())
    assert found == code, f"{found}\n{done.stdout}\n{done.stderr}"
    return done
