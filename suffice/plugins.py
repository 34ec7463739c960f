"""What declares itself when it is imported, such as methods and metrics: found by where it lies, and by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules

from suffice.errors import OptionError


@cache
def import_all(package: str, group: str) -> None:
    """Import all modules of a package, and what others declare by entry points, once: looking for them takes long.

    Args:
        package: Its full name.
        group: Of the entry points.
    """
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    for entry in entry_points(group=group):
        entry.load()


def unknown(kind: str, name: str, known: Iterable[str], aliases: Iterable[str] = ()) -> OptionError:
    """The error for a name that is not known, with close ones, or all.

    Example:
        >>> unknown("metric", "insertoin", ["insertion", "deletion"])
        OptionError("There is no metric 'insertoin'. Did you mean insertion?")
    """
    near = difflib.get_close_matches(name, [*known, *aliases], n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(known)}."
    return OptionError(f"There is no {kind} {name!r}. {hint}")
