"""Words and numbers as drawings print them, and how wide they are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from math import isfinite

# What XML cannot hold: control characters, and the lone surrogates that Python puts into undecodable file names.
_UNPRINTABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
THIN_SPACE = "\u2009"
_NARROW = frozenset("iljtfrI.,;:|!'()[]{}/ ·\u00a0" + THIN_SPACE)
_WIDE = frozenset("mwMW@%—…")
_OPERATORS = frozenset("∧∨⊤⊥")  # from fonts of their own, so rather too wide


def printable(text: str) -> str:
    """The text with a replacement sign for what no document can hold."""
    return _UNPRINTABLE.sub("\ufffd", text)


def percent(ratio: float) -> str:
    """A ratio as a reader wants it, such as ``93 %`` or ``0.4 %``; a dash for what is not a number."""
    if not isfinite(ratio):
        return "–"
    if 0 < ratio < 0.0005:
        return f"<{THIN_SPACE}0.1{THIN_SPACE}%"  # little is not nothing
    return f"{100 * ratio:.{1 if 0 < ratio < 0.00995 else 0}f}{THIN_SPACE}%"


def grouped(count: int) -> str:
    """A whole number with thin spaces between the thousands."""
    return f"{count:,}".replace(",", THIN_SPACE)


def counted(count: int, thing: str) -> str:
    """``no regions``, ``1 region``, ``1 204 regions``."""
    return f"{grouped(count) if count else 'no'} {thing}{'' if count == 1 else 's'}"


def text_width(text: str, size: float) -> float:
    """About how wide a text is in a sans-serif type of that size, rather too wide than too narrow."""
    return size * sum(map(_em, text))


def wrap(words: Sequence[str], size: float, width: float) -> list[list[int]]:
    """Break words into lines of at most a width, as indices; a word that is too wide has a line of its own.

    Example:
        >>> wrap(["one", "two", "three"], 10, 50)
        [[0, 1], [2]]
    """
    space = text_width(" ", size)
    lines: list[list[int]] = []
    room = 0.0
    for index, word in enumerate(words):
        needed = text_width(word, size)
        if not lines or needed + space > room:
            lines.append([])
            room = width + space
        lines[-1].append(index)
        room -= needed + space
    return lines


def shortened(text: str, size: float, width: float) -> str:
    """The text, with its middle left out where it would be too wide: file names differ at their ends."""
    if text_width(text, size) <= width:
        return text
    keep = max(min(len(text), int(width / (0.36 * size)) + 1), 2)  # more of the narrowest letters have no room
    while keep > 2 and text_width(text[: keep - keep // 2] + "…" + text[-(keep // 2) :], size) > width:
        keep -= 1
    return text[: keep - keep // 2] + "…" + text[-(keep // 2) :]


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.36
    if character in _WIDE or unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in _OPERATORS:
        return 0.8
    return 0.72 if character.isupper() else 0.62
