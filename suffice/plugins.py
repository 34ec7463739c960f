"""What is known by name.

Methods and metrics declare themselves when they are imported; sources of models and images are declared by a string and
imported when first needed. Outside packages do both by entry points.
"""

from __future__ import annotations

import difflib
import fnmatch
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any

from suffice.errors import OptionError


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """Names that match a shell-style pattern, in their order.

    Example:
        >>> matching(["cgw1", "cgw2", "tam"], "cgw*")
        ['cgw1', 'cgw2']
    """
    return [name for name in names if fnmatch.fnmatchcase(name, pattern)]


_provided: dict[str, dict[str, Any]] = {}


def provide(group: str, name: str, value: Any) -> None:
    """Declare something under a name, as a package does by an entry point of the same group.

    Args:
        group: Such as ``"suffice.sources"``.
        name: What users write.
        value: The object, or ``"package.module:NAME"`` of one that is imported when first needed.
    """
    _provided.setdefault(group, {})[name] = value


def provided(group: str) -> dict[str, Any]:
    """What was declared in a group, here and by entry points of installed packages; nothing is imported."""
    found = _provided.setdefault(group, {})
    for entry in _entry_points(group):
        found.setdefault(entry.name, entry.value)
    return found


def resolve(group: str, name: str) -> Any:
    """The object behind a declared name, imported when first needed."""
    value = provided(group)[name]
    if isinstance(value, str):
        module, _, attribute = value.partition(":")
        value = _provided[group][name] = getattr(import_module(module), attribute)
    return value


@cache
def _entry_points(group: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))  # looking for them takes long


@cache
def import_all(package: str, group: str) -> None:
    """Import all modules of a package, and what others declare by entry points, once: looking for them takes long.

    Args:
        package: Its full name.
        group: Of the entry points.
    """
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    for entry in _entry_points(group):
        entry.load()


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """The sentence of an error that suggests names close to one that is not known; empty where none is close.

    Args:
        name: What was asked for.
        known: What could have been meant.
        prefix: What users write before each of them.

    Returns:
        The sentence with a blank before it, to follow another one.

    Example:
        >>> did_you_mean("tabbi", ["tabby", "tiger", "tiger cat"])
        " Did you mean 'tabby'?"
        >>> did_you_mean("Cat", ["tabby", "tiger cat"])
        " Did you mean 'tiger cat'?"
    """
    names = list(known)
    part = name.lower()
    near = difflib.get_close_matches(name, names, n=3) or [n for n in names if part and part in n.lower()][:3]
    return f" Did you mean {' or '.join(repr(prefix + n) for n in near)}?" if near else ""


def unknown(kind: str, name: str, known: Iterable[str], aliases: Iterable[str] = ()) -> OptionError:
    """The error for a name that is not known, with close ones, or all.

    Example:
        >>> unknown("metric", "insertoin", ["insertion", "deletion"])
        OptionError("There is no metric 'insertoin'. Did you mean 'insertion'?")
    """
    hint = did_you_mean(name, [*known, *aliases]) or f" There are {', '.join(known)}."
    return OptionError(f"There is no {kind} {name!r}.{hint}")


def keyword_options(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """The options of something that declares itself: its keyword-only parameters with their defaults."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    options = {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    if len(options) < len(parameters) or inspect.Parameter.empty in options.values():
        raise OptionError(f"The options of {name} must be keyword-only and have defaults.")
    return options
