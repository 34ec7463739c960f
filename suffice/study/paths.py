"""Paths in the files of studies."""

from __future__ import annotations

import os
import re
from pathlib import Path

from suffice.errors import StudyError


def expanded(text: str) -> str:
    """A text of a study with the values of variables of the environment in place of ``$NAME``, and home for ``~``."""
    found = os.path.expanduser(os.path.expandvars(text))
    if lacking := re.search(r"\$\{?(\w+)", found):
        raise StudyError(f"There is no variable {lacking[1]} in the environment; {text!r} needs it.")
    return found


def placed(path: str, base: Path) -> Path:
    """A path of a study: relative to its folder, with variables as in :func:`expanded`.

    Example:
        >>> placed("weights/a.safetensors", Path("studies")).as_posix()
        'studies/weights/a.safetensors'
    """
    return base / path if (base / path).exists() else base / expanded(path)
