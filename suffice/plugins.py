"""What is known by name.

Methods and metrics declare themselves when they are imported; sources of models and images are declared by a string and
imported when first needed. Outside packages do both by entry points.
"""

from __future__ import annotations

import difflib
import fnmatch
import inspect
from collections.abc import Callable, Iterable
from functools import cache, wraps
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any, Generic, Protocol, TypeVar

from suffice.errors import OptionError

Function = TypeVar("Function", bound=Callable[..., Any])


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


def check_arguments(function: Callable[..., Any], given: Iterable[str], options: Iterable[str] = ()) -> None:
    """Raise an error where a keyword given to a function is nearly one of its arguments, and suggest that one.

    Args:
        function: What was called.
        given: The keywords.
        options: Those that mean something else, such as the options of a method.

    Example:
        >>> def paint(image, colors=3, **options): ...
        >>> check_arguments(paint, ["color", "brush"])
        Traceback (most recent call last):
        suffice.errors.OptionError: paint has no argument 'color'. Did you mean colors=?
    """
    own = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    known = {*own, *options}
    for name in given:
        near = difflib.get_close_matches(name, own, n=1, cutoff=0.8)
        if near and name not in known:
            raise OptionError(f"{function.__name__} has no argument {name!r}. Did you mean {near[0]}=?")


def suggests_arguments(function: Function) -> Function:
    """A function without ``**options`` that says of a keyword that it does not have which one could be meant.

    Example:
        >>> @suggests_arguments
        ... def paint(image, *, colors=3): ...
        >>> paint("cat.png", brush=1)
        Traceback (most recent call last):
        suffice.errors.OptionError: paint has no argument 'brush'. See help(paint).
    """
    known = inspect.signature(function).parameters

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        unknown = [name for name in kwargs if name not in known]
        check_arguments(function, unknown)
        if unknown:
            name = function.__name__
            hint = did_you_mean(unknown[0], known) or f" See help({name})."
            raise OptionError(f"{name} has no argument {unknown[0]!r}.{hint}")
        return function(*args, **kwargs)

    return called  # type: ignore[return-value]


def keyword_options(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """The options of something that declares itself: its keyword-only parameters with their defaults."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    options = {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    if len(options) < len(parameters) or inspect.Parameter.empty in options.values():
        raise OptionError(f"The options of {name} must be keyword-only and have defaults.")
    return options


class Declared(Protocol):
    """What a registry holds: a function with the facts about it."""

    @property
    def name(self) -> str:
        """What users write."""
        ...

    @property
    def function(self) -> Callable[..., Any]:
        """What it does."""
        ...


Item = TypeVar("Item", bound=Declared)


class Registry(Generic[Item]):
    """Things of one kind that declare themselves when their module is imported.

    Args:
        kind: What one of them is called, for errors.
        package: Where ours lie; all its modules are imported when first needed.
        group: Of the entry points by which others are found.
    """

    def __init__(self, kind: str, package: str, group: str) -> None:
        self.kind, self.package, self.group = kind, package, group
        self._items: dict[str, Item] = {}
        self._aliases: dict[str, str] = {}
        self._complete = False

    def add(self, item: Item, aliases: Iterable[str] = ()) -> None:
        """Declare one; a name that another module has taken is an error."""
        for key in (item.name, *aliases):
            taken = self._items.get(self._aliases.get(key, key))
            if taken is not None and taken.function.__module__ != item.function.__module__:
                raise OptionError(f"There is already a {self.kind} {key!r}; choose another name.")
        self._items[item.name] = item
        self._aliases.update(dict.fromkeys(aliases, item.name))

    def forget(self, name: str) -> None:
        """Take one off the list."""
        del self._items[name]
        self._aliases = {alias: own for alias, own in self._aliases.items() if own != name}

    def all(self) -> dict[str, Item]:
        """All of them by name."""
        if not self._complete:
            self._complete = True  # first, as modules may look for others while they are imported
            try:
                for module in iter_modules(import_module(self.package).__path__, f"{self.package}."):
                    import_module(module.name)
                for entry in _entry_points(self.group):
                    entry.load()
            except BaseException:
                self._complete = False
                raise
        return dict(sorted(self._items.items()))

    def find(self, name: str | Item) -> Item:
        """One by its name or an alias, or as it is; an unknown name is an error that suggests close ones."""
        if not isinstance(name, str):
            return name
        known = self.all()
        found = known.get(self._aliases.get(name, name))
        if found is None:
            raise unknown(self.kind, name, known, self._aliases)
        return found
