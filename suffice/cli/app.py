"""The command line: parse, call, print."""

from __future__ import annotations

import inspect
import os
import sys
from typing import Annotated

import typer

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
from suffice.errors import SufficeError
from suffice.host_memory import keep_freed_memory

app = typer.Typer(
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
        app()
    except SufficeError as error:
        _print_error(of_this_command(str(error)))
        sys.exit(2)
    except KeyboardInterrupt:
        stderr.print("Stopped.")
        sys.exit(130)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # such as a disk that is full
        _print_error(str(error))
        sys.exit(1)


def _print_error(said: str) -> None:
    stderr.print("Error:", style="bold red", end=" ")
    stderr.print(said, soft_wrap=True)
