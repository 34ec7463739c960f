"""Paths in the files of studies."""

from __future__ import annotations

import os
import re
from pathlib import Path

from suffice.errors import StudyError


def placed(path: str, base: Path) -> Path:
    """A path of a study: relative to its folder, with ``$NAME`` for a variable of the environment and ``~`` for home.

    Example:
        >>> placed("weights/a.safetensors", Path("studies")).as_posix()
        'studies/weights/a.safetensors'
    """
    if (base / path).exists():
        return base / path
    found = os.path.expanduser(os.path.expandvars(path))
    if lacking := re.search(r"\$\{?(\w+)", found):
        raise StudyError(f"There is no variable {lacking[1]} in the environment; {path!r} needs it.")
    return base / found
