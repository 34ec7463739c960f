"""Numbers in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

NONE = "–"


def p_value(p: float) -> str:
    """A p-value with as many digits as it is worth.

    Example:
        >>> p_value(0.00004), p_value(0.0312), p_value(0.42)
        ('p < 0.001', 'p = 0.031', 'p = 0.42')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def short(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, and no exponent.

    Example:
        >>> short(0.123456), short(12.3456), short(12345.6), short(float("nan")), short(-0.0001, 2)
        ('0.123', '12.3', '12,346', '–', '-0.00010')
    """
    if not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    places = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{min(places, 6)}f}"


def percent(value: float, places: int = 0) -> str:
    """A share as a percentage.

    Example:
        >>> percent(0.3912), percent(0.9953, 1), percent(float("nan"))
        ('39 %', '99.5 %', '–')
    """
    return f"{100 * value:.{places}f} %" if math.isfinite(value) else NONE


def signed(value: float) -> str:
    """A number with its sign, the minus as wide as the plus.

    Example:
        >>> signed(0.5), signed(-0.74)
        ('+0.50', '−0.74')
    """
    return f"{value:+.2f}".replace("-", "−")


def interval(low: float, high: float, places: int) -> str:
    """Both ends of an interval.

    Example:
        >>> interval(0.342, 0.441, 2)
        '[0.34, 0.44]'
    """
    return f"[{low:,.{places}f}, {high:,.{places}f}]"


def places_for(*values: float) -> int:
    """Decimals such that the smallest of some numbers still has two digits that count, at most four.

    Example:
        >>> places_for(12.3, 14.0), places_for(1.2, 0.9), places_for(0.051, 0.02)
        (0, 2, 3)
    """
    sizes = [abs(value) for value in values if math.isfinite(value) and value != 0]
    smallest = min(sizes, default=1.0)
    return min(max(1 - math.floor(math.log10(smallest)), 0), 4)


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in a row, some of them where there are many.

    Example:
        >>> listed(["a"]), listed(["a", "b", "c"]), listed(list("abcdefg"))
        ('a', 'a, b and c', 'a, b, c and 4 more')
    """
    shown = list(names)
    if len(shown) > most:
        rest = len(shown) - most + 1
        return f"{', '.join(shown[: most - 1])} and {rest} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def counted(number: int, noun: str, plural: str = "") -> str:
    """How many of something.

    Example:
        >>> counted(1, "image"), counted(5000, "image"), counted(2, "family", "families")
        ('1 image', '5,000 images', '2 families')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
