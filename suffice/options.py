"""One check for all options: is a value among those that its annotation allows?

Whoever takes options writes down what they can be where Python has a place for it: in the annotation. ``Literal`` lists
choices, ``Annotated[int, Range(1)]`` gives limits, and the usual types, unions and sequences mean what they say. The
error is made from the same annotation.
"""

from __future__ import annotations

import collections.abc
import inspect
import math
import numbers
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from suffice.errors import OptionError


@dataclass(frozen=True)
class Range:
    """Limits of a number, for ``Annotated[float, Range(0, 1)]``.

    Attributes:
        low: The lowest value.
        high: The highest value; a finite number is asked for even where this is infinite.
        above: Whether the value must be above ``low``, not just at it.
        below: Whether the value must be below ``high``.
    """

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def __contains__(self, value: float) -> bool:
        over = value > self.low if self.above else value >= self.low
        under = value < self.high if self.below else value <= self.high
        return over and under and math.isfinite(value)

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.above else f"from {self.low:g}" if self.low > -math.inf else ""
        if self.high == math.inf:
            return f"{low} on" if low.startswith("from") else low
        return f"{low} {'to below' if self.below else 'to'} {self.high:g}".strip()


Count = Annotated[int, Range(1)]
"""A whole number, 1 or more."""
Amount = Annotated[float, Range(0)]
"""A finite number, 0 or more."""
Share = Annotated[float, Range(0, 1)]
"""A number from 0 to 1."""


def check_options(values: Mapping[str, Any], of: Any, name: str = "") -> None:
    """Raise an error if a value is not among those that its annotation allows.

    Args:
        values: Options by name.
        of: The function or dataclass whose annotations say what they can be.
        name: Of what has the options, for the error about one that it does not have.

    Raises:
        OptionError: With what was given and what it can be.

    Example:
        >>> def blur(image, *, sigma: Annotated[float, Range(0)] = 1.0, border: Literal["reflect", "zero"] = "zero"):
        ...     ...
        >>> check_options({"border": "mirror"}, blur)
        Traceback (most recent call last):
        suffice.errors.OptionError: border='mirror'; it can be 'reflect' or 'zero'.
        >>> check_options({"sigma": -1}, blur)
        Traceback (most recent call last):
        suffice.errors.OptionError: sigma=-1; it can be a number from 0 on.
        >>> check_options({"sgima": 1}, blur, "blur")
        Traceback (most recent call last):
        suffice.errors.OptionError: blur has no option 'sgima'; its options are sigma, border.
    """
    hints = _hints(of)
    for option, value in values.items():
        if option not in hints:
            known = ", ".join(hints) or "none"
            raise OptionError(
                f"{name or getattr(of, '__name__', 'It')} has no option {option!r}; its options are {known}."
            )
        if not allows(hints[option], value):
            raise OptionError(f"{option}={value!r}; it can be {in_words(hints[option])}.")


def check_fields(instance: Any) -> None:
    """The same for all fields of a dataclass, to be called in its ``__post_init__``."""
    kind: Any = type(instance)
    check_options({field: getattr(instance, field) for field in _hints(kind)}, kind)


def takes(of: Any, option: str, value: Any) -> bool:
    """Whether an option of a function or dataclass can have a value, and its annotation says so.

    Example:
        >>> def smooth(image, *, sigma: float = 1.0, anything=None):
        ...     ...
        >>> takes(smooth, "sigma", 2.0), takes(smooth, "sigma", "2"), takes(smooth, "anything", 2.0)
        (True, False, False)
    """
    hint = _hints(of).get(option, Any)
    return hint is not Any and allows(hint, value)


def allows(hint: Any, value: Any) -> bool:
    """Whether an annotation allows a value.

    Example:
        >>> allows(int | None, 3), allows(int, True), allows(float, 3), allows(tuple[float, ...], [0.5, "x"])
        (True, False, True, False)
    """
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin is Annotated:
        return allows(args[0], value) and all(value in limit for limit in args[1:] if isinstance(limit, Range))
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in args)
    if origin in (Union, types.UnionType):
        return any(allows(part, value) for part in args)
    if hint is bool:
        return isinstance(value, bool)
    if hint is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool)
    if origin is collections.abc.Callable:
        return callable(value)
    if origin in (collections.abc.Sequence, list, tuple):
        several = isinstance(value, collections.abc.Sequence) and not isinstance(value, str)
        length = _length(hint)
        return several and length in (None, len(value)) and all(allows(args[0], item) for item in value)
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else True


def in_words(hint: Any) -> str:
    """What an annotation allows, for people.

    Example:
        >>> in_words(Literal["a", "b", "c"] | None), in_words(Annotated[int, Range(1)])
        ("'a', 'b', 'c' or None", 'a whole number from 1 on')
    """
    return _listed(_alternatives(hint))


def _alternatives(hint: Any) -> list[str]:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return [repr(choice) for choice in args]
    if origin in (Union, types.UnionType):
        return [words for part in args for words in _alternatives(part)]
    if origin is Annotated:
        return [f"{in_words(args[0])} {' '.join(str(limit) for limit in args[1:] if isinstance(limit, Range))}".strip()]
    if hint is None or hint is type(None):
        return ["None"]
    if origin in (collections.abc.Sequence, list, tuple):
        number = "" if _length(hint) is None else f" of {_length(hint)}"
        return [f"a list{number}, each of them {in_words(args[0])}"]
    named = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}
    if hint in named:
        return [named[hint]]
    if origin is collections.abc.Callable or hint is Callable:
        return ["a function"]
    return [f"a {getattr(origin or hint, '__name__', 'value')}"]


def _length(hint: Any) -> int | None:
    """How many values a tuple has; None where there can be any number."""
    args = get_args(hint)
    return len(args) if get_origin(hint) is tuple and args[-1] is not Ellipsis else None


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


@cache
def _hints(of: Any) -> dict[str, Any]:
    """Annotations by name: of the fields of a class, of the keyword-only parameters of a function."""
    hints = get_type_hints(of, include_extras=True)
    if isinstance(of, type):
        return {field: hints[field] for field in getattr(of, "__dataclass_fields__", ())}
    code = inspect.unwrap(of).__code__
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return {option: hints.get(option, Any) for option in keywords}
