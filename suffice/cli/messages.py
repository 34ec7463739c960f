"""Errors speak of arguments of Python; here they learn to speak of options of the command that was typed."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from typing import Any

# What is said otherwise than by the name of an argument.
PHRASES = {
    "give a larger max_pixels= or raise PIL.Image.MAX_IMAGE_PIXELS": "give a larger --max-pixels",
    "raise PIL.Image.MAX_IMAGE_PIXELS": "give a larger --max-pixels",
    "open_images(…, labels=…)": "give a list (.csv or .jsonl) with a column label",
    "one list of (x0, y0, x1, y1) an image": "a list (.csv or .jsonl) with columns path and boxes",
    "pretrained=False": "--random-weights",
    " when making the classifier": "",
    ", or preprocess= with the callable that the model was trained with": "",
    ", such as weights.transforms() of torchvision": "",
    "suffice.list_methods() lists": "suffice methods lists",
    "No model of the study is measured by maps; see its key 'models'.": "No --method fits; suffice methods lists more.",
    "Take another folder.": "Take another folder, or start over with --overwrite.",
    "as explainer=PATH": "as --option explainer=PATH",
    "any_weights=True to see": "--option any_weights=true to see",
}
NAMES = {"batch_size": "batch", "targets": "target", "methods": "method"}  # other names of options
_LISTED = re.compile(r"suffice\.list_models\('([^']*)'\) lists them all")
_OR_RETURNED = re.compile(r", or what suffice\.[\w.]+\([^)]*\) returns")  # which cannot be typed
_OR_NONE = re.compile(r"^(--[\w-]+ .*; it can be .* or )None\.$")  # of an option of the command itself
# Not a part of a path, such as runs/seed=3/photo.png.
_ARGUMENT = re.compile(
    r"""(?<![^\s(`])(?P<name>[a-z]\w*)=(?P<value>'[^']*'|"[^"]*"|\[[^\]]*\]|\([^)]*\)|-?\w+(?:\.\d+)?|…|)(?![/\\\w]|\.\w|,\w)""",
    re.VERBOSE,
)


def for_command(text: str, options: Collection[str]) -> str:
    """An error in the words of a command.

    Args:
        text: What the error says.
        options: Options that the command has, such as ``"--threshold"``.

    Example:
        >>> for_command("threshold=2.0; it can be a number from 0 to 1.", ["--threshold"])
        '--threshold 2.0; it can be a number from 0 to 1.'
        >>> for_command("Write size=, mean= and std=.", ["--size", "--mean", "--std"])
        'Write --size, --mean and --std.'
        >>> for_command("certify=-1; it can be a whole number from 0 on or None.", ["--certify"])
        '--certify -1; it can be a whole number from 0 on or none.'
        >>> for_command("rise: masks=-1", ["--size"])
        'rise: masks=-1'
    >>> for_command("There is no file or folder 'seed=3/size=7.png'.", ["--seed", "--size"])
    "There is no file or folder 'seed=3/size=7.png'."
    """
    for phrase, instead in PHRASES.items():
        named = re.findall(r"--[\w-]+", instead)
        if all(option in options for option in named):
            text = text.replace(phrase, instead)
    text = _OR_RETURNED.sub("", _LISTED.sub(r"suffice models '\1' lists them all", text))
    return _OR_NONE.sub(r"\1none.", _ARGUMENT.sub(lambda found: _option(found, options), text))


def of_this_command(text: str) -> str:
    """An error in the words of the command that was typed."""
    return for_command(text, _typed_options())


def _option(found: re.Match[str], options: Collection[str]) -> str:
    name = found["name"]
    option = "--" + NAMES.get(name, name).replace("_", "-")
    if option not in options:
        return found[0]
    value = found["value"]
    if value in ("", "True"):
        return option
    if value.startswith(("[", "(")):
        value = ",".join(part.strip().strip("'\"") for part in value[1:-1].split(",") if part.strip())
    bare = value.strip("'\"")
    return f"{option} {value if ' ' in bare else bare}"


def _typed_options() -> set[str]:
    """Options of the command that was typed."""
    import typer

    from suffice.cli.app import app

    command: Any = typer.main.get_command(app)
    for word in sys.argv[1:]:
        if word not in getattr(command, "commands", {}):
            break
        command = command.commands[word]
    return {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
