"""Where the parts of a study are written, so that errors can say it, also those found long after reading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from suffice.errors import StudyError, SufficeError
from suffice.study.lines import Key, line_of

Place = tuple[Key, ...]


class PlacedError(StudyError):
    """An error that says where it is."""


@dataclass(frozen=True)
class Places:
    r"""The file of a study, as errors about it need it.

    Attributes:
        name: Of the file; empty where a study was made in Python, and errors have no place to name.
        text: What is in it, if it is TOML, so that a key has a line.
        content: The tables and keys in it.

    Example:
        >>> text = '[measure.maps]\nmethod = "rollout"\n'
        >>> places = Places("study.toml", text, {"measure": {"maps": {"method": "rollout"}}})
        >>> str(places.error(("measure", "maps", "method"), "it does not fit zoo/resnet"))
        'study.toml, line 2: it does not fit zoo/resnet.'
        >>> with places.at(("measure", "maps")):
        ...     raise StudyError("'rollout' does not fit zoo/resnet.")
        Traceback (most recent call last):
        suffice.study.places.PlacedError: study.toml, line 2: 'rollout' does not fit zoo/resnet.
    """

    name: str = ""
    text: str = ""
    content: Any = None

    def error(self, path: Place, what: str) -> StudyError:
        """An error about a key."""
        what += "" if what.endswith((".", "?")) else "."
        if not self.name:
            return StudyError(what)
        line = line_of(self.text, path) if self.text else None
        inside = ".".join(map(str, path)) if path and not line else ""
        where = f", line {line}" if line else f", {inside}" if inside else ""
        return PlacedError(f"{self.name}{where}: {what}")

    @contextmanager
    def at(self, path: Place, *keys: str) -> Iterator[None]:
        """An error inside says where it is, unless it does already; see :meth:`about` for the arguments."""
        try:
            yield
        except PlacedError:
            raise
        except SufficeError as error:
            raise self.error(self.about(path, str(error), *keys), str(error)) from error

    def about(self, path: Place, said: str, *keys: str) -> Place:
        """The key that an error is about.

        Args:
            path: Of the table that has it.
            said: The error.
            *keys: The first of these that the table has is meant, where the error names no key and no value of one.
        """
        path, given = self._given(path)
        if not isinstance(given, Mapping):
            return path
        named = (key for key, value in given.items() if _is_about(said, key, value))
        key = next(named, next((key for key in keys if key in given), None))
        if key is None:
            return path
        entries = given[key] if isinstance(given[key], list) else []
        entry = next((i for i, one in enumerate(entries) if any(_names(said, text) for text in texts_of(one))), None)
        return (*path, key) if entry is None else (*path, key, entry)

    def measurement(self, name: str) -> Place:
        """The table that a measurement comes from, which may stand for several."""
        tables = self.content["measure"] if isinstance(self.content, Mapping) else {}
        return ("measure", name if name in tables else name.partition("/")[0])

    def _given(self, path: Place) -> tuple[Place, Any]:
        """What is written at a path; one model alone needs no list, and has no number then."""
        found, given = list[Key](), self.content
        for key in path:
            if isinstance(key, int) and not isinstance(given, list):
                continue
            found.append(key)
            try:
                given = given[key]
            except (KeyError, IndexError, TypeError):
                return path, None
        return tuple(found), given


def texts_of(value: Any) -> list[str]:
    """All texts of an option: itself, its entries, and the keys and values of tables in it."""
    if isinstance(value, Mapping):
        return [text for item in value.items() for one in item for text in texts_of(one)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [text for one in value for text in texts_of(one)]
    return [value] if isinstance(value, str) else []


def _is_about(said: str, key: str, value: Any) -> bool:
    """Whether an error is about an option: it names it or its value, or begins with the name."""
    return said.startswith(f"{key}=") or repr(key) in said or any(_names(said, text) for text in texts_of(value))


def _names(said: str, text: str) -> bool:
    """Whether an error has a text, or what follows its last slash, in quotes; or a path, perhaps below a folder."""
    if repr(text) in said or ("/" in text and repr(text.rpartition("/")[2]) in said):
        return True
    return bool({"/", "."} & set(text)) and bool(re.search(rf"(?<![\w.-]){re.escape(text)}(?![\w/-]|\.\w)", said))
