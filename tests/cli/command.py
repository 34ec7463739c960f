"""Commands as a user meets them, in this process, which is quicker than a new one for each."""

import contextlib
import functools
import io
import os
import re
import sys
from dataclasses import dataclass
from unittest import mock

import typer

from suffice.cli.app import app, main

# All commands with all of their options, made once: making them takes longer than what most of them do here.
command_of = functools.cache(typer.main.get_command)


@dataclass(frozen=True)
class Done:
    stdout: str
    stderr: str


def run(*arguments, cwd=None, code=0):
    """What a command printed, after its exit code was checked; a traceback would be an exception here."""
    stdout, stderr, before, found = io.StringIO(), io.StringIO(), os.getcwd(), 0
    typed = ["suffice", *map(str, arguments)]
    with (
        mock.patch.object(sys, "argv", typed),
        mock.patch.object(typer.main, "get_command", command_of),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            os.chdir(cwd or before)
            main()
        except SystemExit as end:
            found = end.code or 0
        finally:
            os.chdir(before)
    done = Done(stdout.getvalue(), stderr.getvalue())
    assert found == code, f"{found}\n{done.stdout}\n{done.stderr}"
    if code == 2:
        check_options_exist(done.stderr, typed[1:])
    return done


def check_options_exist(said, typed):
    """What a message tells people to type must be there to be typed: in this command, or in the one that it names."""
    command, words = command_of(app), []
    for word in typed:
        if word not in getattr(command, "commands", {}):
            break
        command, words = command.commands[word], [*words, word]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    elsewhere = set(re.findall(r"suffice \w+[^.]*?(--[\w-]+)", said))
    for other in re.findall(r"`suffice [^`]*`", said):  # all of it is of the command that it begins with
        elsewhere.update(re.findall(r"--[\w-]+", other))
    named = {name for name in re.findall(r"(?<![\w-])--[a-z][\w-]*", said) if name not in typed}
    assert named - elsewhere <= known, f"suffice {' '.join(words)} has no {named - known}: {said}"
