"""Where something stands in a TOML file, for errors: the parser of the standard library does not say."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")

# What matters within a value: texts and comments as a whole, so that no bracket in them counts.
_TOKEN = re.compile(r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*|[\[\]{},]|[^\s\[\]{},"\'#]+')

Key = str | int


def line_of(text: str, path: Sequence[Key]) -> int | None:
    r"""The line, from 1 on, on which a key stands; that of what contains it where it has none of its own.

    Args:
        text: Of the file.
        path: Names of tables and keys, and numbers of entries of lists, from outside to inside.

    Example:
        >>> text = 'name = "a"\n[[models]]\nname = "b"\n[[models]]\nnmae = "c"\n'
        >>> line_of(text, ("models", 1, "nmae")), line_of(text, ("models", 0)), line_of(text, ("images",))
        (5, 2, None)
    """
    wanted, best, found = tuple(path), 0, None
    for number, place in _places(text):
        if len(place) > best and place == wanted[: len(place)]:
            best, found = len(place), number
    if found is not None and best < len(wanted) and isinstance(entry := wanted[best], int):
        return _line_of_entry(text, found, entry) or found
    return found


def _line_of_entry(text: str, line: int, number: int) -> int | None:
    """The line on which an entry of a list begins, of the list whose key stands on a line."""
    start = sum(map(len, text.splitlines(keepends=True)[: line - 1]))
    start = text.find("=", start) + 1
    depth, begins = 0, True
    for token in _TOKEN.finditer(text, start):
        if token[0].startswith("#"):
            continue
        if begins and depth == 1 and token[0] != "]":
            if number == 0:
                return text.count("\n", 0, token.start()) + 1
            number, begins = number - 1, False
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth == 0:  # the end, or no list
            return None
        begins = begins or (depth == 1 and token[0] == ",")
    return None


def _places(text: str) -> list[tuple[int, tuple[Key, ...]]]:
    """The tables and keys that begin on each line."""
    places: list[tuple[int, tuple[Key, ...]]] = []
    table: tuple[Key, ...] = ()
    entries: dict[tuple[Key, ...], int] = {}
    quotes = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if quotes:  # within a text of several lines
            quotes = "" if quotes in line else quotes
            continue
        if header := _HEADER.match(line):
            table = _within_lists(_names(header[2]), entries)
            if header[1] == "[[":
                entries[table] = entries.get(table, -1) + 1
                table = (*table, entries[table])
            places.append((number, table))
        elif key := _KEY.match(line):
            places.append((number, (*table, *_names(key[1]))))
        quotes = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
    return places


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", dotted))


def _within_lists(names: tuple[str, ...], entries: dict[tuple[Key, ...], int]) -> tuple[Key, ...]:
    """A header such as ``models.options`` belongs to the last entry of ``models``."""
    place: tuple[Key, ...] = ()
    for position, name in enumerate(names):
        place = (*place, name)
        if place in entries and position < len(names) - 1:
            place = (*place, entries[place])
    return place
