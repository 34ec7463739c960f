"""From JSON that anybody could have written to values of known types, or to an error that says what was expected."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from suffice.errors import OptionError
from suffice.perturb import list_baselines

FINEST = 56  # cells a side of the free brush
LONGEST_TEXT = 300


class Fields:
    """The fields of a message, read one by one.

    Example:
        >>> fields = Fields({"grid": 7})
        >>> fields.whole("grid", 1, 56), fields.text("baseline", "blur")
        (7, 'blur')
        >>> Fields({"grid": "7"}).whole("grid", 1, 56)
        Traceback (most recent call last):
        suffice.errors.OptionError: grid is '7'; expected a whole number from 1 to 56.
    """

    def __init__(self, given: Any) -> None:
        if not isinstance(given, dict):
            raise OptionError(f"A question is an object of JSON, not {_shown(given)}.")
        self._given = given

    def text(self, name: str, default: str | None = None, longest: int = LONGEST_TEXT) -> str:
        """A text; required where there is no default."""
        value = self._given.get(name, default)
        if not isinstance(value, str) or len(value) > longest:
            raise OptionError(f"{name} is {_shown(value)}; expected a text of up to {longest} characters.")
        return value

    def maybe_text(self, name: str) -> str | None:
        """A text, or None where it is empty, null or absent."""
        return self.text(name) or None if self._given.get(name) is not None else None

    def one_of(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of some texts."""
        value = self._given.get(name, default)
        if not isinstance(value, str) or value not in choices:
            listed = ", ".join(choices[:12]) + (", …" if len(choices) > 12 else "")
            raise OptionError(f"{name} is {_shown(value)}; expected one of {listed or 'none: there is nothing'}.")
        return value

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number within limits."""
        value = self._given.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise OptionError(f"{name} is {_shown(value)}; expected a whole number from {low} to {high}.")
        return value

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        """A number within limits."""
        value = self._given.get(name, default)
        fine = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not fine or not isfinite(value) or not low <= value <= high:  # type: ignore[arg-type, operator]
            raise OptionError(f"{name} is {_shown(value)}; expected a number from {low:g} to {high:g}.")
        return float(value)  # type: ignore[arg-type]

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self._given.get(name, default)
        if not isinstance(value, bool):
            raise OptionError(f"{name} is {_shown(value)}; expected true or false.")
        return value

    def some(self, name: str, longest: int) -> list[Any]:
        """A list of up to so many entries; empty where it is absent."""
        value = self._given.get(name, [])
        if not isinstance(value, list) or len(value) > longest:
            raise OptionError(f"{name} is {_shown(value)}; expected a list of up to {longest}.")
        return value


@dataclass(frozen=True)
class Question:
    """What is shown of which image, and what is asked about it.

    Attributes:
        image: Key of the image.
        grid: Cells per side.
        cells: The cells that are shown, ascending, row-major.
        baseline: Name of what shows in the others.
        target: Index or name of the class asked about; None for what each model predicts.
    """

    image: str
    grid: int
    cells: tuple[int, ...]
    baseline: str = "blur"
    target: str | None = None

    @classmethod
    def read(cls, fields: Fields) -> Question:
        """Read a question from a message, with fields of the same names; ``cells`` are as :func:`pack` writes them.

        Baselines are those with a name: another text would be the name of a file.
        """
        grid = fields.whole("grid", 1, FINEST, 7)
        return cls(
            image=fields.text("image"),
            grid=grid,
            cells=unpack(fields.text("cells", "", longest=FINEST**2), grid),
            baseline=fields.one_of("baseline", list_baselines(), "blur"),
            target=fields.maybe_text("target"),
        )


def pack(cells: Sequence[int], grid: int) -> str:
    """Cells as they are written in links: their bits, the lowest first, in the letters of base64 that URLs take.

    Example:
        >>> pack((17, 24, 25), 7)
        'AAACAwAAAA'
        >>> unpack("AAACAwAAAA", 7)
        (17, 24, 25)
    """
    bits = np.zeros(grid**2, dtype=np.uint8)
    bits[list(cells)] = 1
    return base64.urlsafe_b64encode(np.packbits(bits, bitorder="little").tobytes()).decode().rstrip("=")


def unpack(text: str, grid: int) -> tuple[int, ...]:
    """The cells that :func:`pack` wrote; an empty text stands for none."""
    length = -(-(grid**2) // 8)
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise OptionError("cells are not in the letters of base64; expected the bits of the cells.") from None
    if text and len(data) != length:
        raise OptionError(f"cells have {len(data)} bytes; those of a {grid}×{grid} grid have {length}.")
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    if bits[grid**2 :].any():
        raise OptionError(f"There are cells beyond the {grid**2} of a {grid}×{grid} grid.")
    return tuple(np.flatnonzero(bits).tolist())


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
