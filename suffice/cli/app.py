"""The command line: parse, call, print."""

from __future__ import annotations

import errno
import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import suffice
from suffice.cli import (
    bench,
    compare,
    demo,
    evidence,
    explain,
    figure,
    listing,
    predict,
    report,
    sanity,
    score,
    serve,
    shortcuts,
    study,
    train_explainer,
)
from suffice.cli.messages import of_this_command
from suffice.cli.output import stderr
from suffice.errors import SufficeError, SufficeWarning
from suffice.host_memory import keep_freed_memory


class _Commands(TyperGroup):
    """Commands, of which none ends without a word after Ctrl-C; those that keep something say so themselves."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # typer itself would exit without a word
            stderr.print("Stopped.")
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Commands,
    help="What is enough for an image classifier to decide.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"suffice {suffice.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...


app.command("demo", epilog=demo.EXAMPLES)(demo.demo)
app.command("models", epilog=listing.MODELS_EXAMPLES)(listing.models)
app.command("predict", epilog=predict.EXAMPLES)(predict.predict)
app.command("methods", epilog=listing.METHODS_EXAMPLES)(listing.methods)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("score", epilog=score.EXAMPLES)(score.score)
app.command("sanity", epilog=sanity.EXAMPLES)(sanity.sanity)
app.command("evidence", epilog=evidence.EXAMPLES)(evidence.evidence)
app.add_typer(study.app, name="study")
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("shortcuts", epilog=shortcuts.EXAMPLES)(shortcuts.shortcuts)
app.command("figure", epilog=figure.EXAMPLES)(figure.figure)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.add_typer(train_explainer.train_app, name="train")
app.add_typer(bench.app, name="bench")


def _flow(commands: typer.Typer) -> None:
    """Let the help of commands wrap as wide as the terminal: typer keeps the line breaks of their docstrings."""
    for command in commands.registered_commands:
        paragraphs = inspect.cleandoc(command.help or command.callback.__doc__ or "").split("\n\n")
        command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _flow(group.typer_instance)


_flow(app)


def main() -> None:
    """Run the command line; a user's mistake is one clear message and exit code 2, never a traceback."""
    keep_freed_memory()
    try:
        with _warnings_as_lines():
            app()
    except SufficeError as error:
        _print_titled("Error:", of_this_command(str(error)), "bold red")
        sys.exit(2)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # such as a disk that is full
        _print_titled("Error:", _in_words(error), "bold red")
        sys.exit(1)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Within it, warnings that are for users are one line each, without the place in the code that they come from."""
    show = warnings.showwarning

    def show_as_line(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, SufficeWarning):
            _print_titled("Warning:", of_this_command(str(message)), "bold yellow")
        else:
            show(message, category, *where, **more)

    warnings.showwarning = show_as_line
    try:
        yield
    finally:
        warnings.showwarning = show


def _in_words(error: OSError) -> str:
    """What the operating system says; of a full disk, which standard output may be on, as a sentence."""
    if error.errno == errno.ENOSPC:
        return f"{error.filename or 'The output'} cannot be written, because the disk is full."
    return str(error)


def _print_titled(title: str, said: str, style: str) -> None:
    stderr.print(title, style=style, end=" ")
    stderr.print(said, soft_wrap=True)
