"""SVG as text: elements, type and colors.

Attributes only, no style sheet: several pictures can then stand in one page without changing each other.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape, quoteattr

from suffice.evidence.graph_pictures import INK
from suffice.evidence.graph_text import printable

SANS = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'Segoe UI', Roboto, system-ui, sans-serif"

QUIET = "#4d5866"  # second voice
FAINT = "#6d7988"  # third voice
HAIRLINE = "#d8dee5"
EMPTY = "#eef1f5"
PLAIN = "#5b7a9b"  # kept cells where there is no picture
REMOVED = "#d55e00"  # vermilion: told apart from the ramp with any color vision, and by shape in gray

# Ratio 0 … 1: sand to navy. Lightness falls in even steps (CIE L* 89 to 16), so the order survives in gray.
RAMP = ("#f0dfa8", "#b3cdae", "#7bb9ac", "#4ba2a4", "#278996", "#007187", "#005776", "#073f63", "#17264f")


def color(ratio: float) -> str:
    """The color of a ratio; those beyond 0 and 1 have the colors of the ends, what is not a number that of 0.

    Example:
        >>> color(0), color(0.5), color(1.2)
        ('#f0dfa8', '#278996', '#17264f')
    """
    place = (min(ratio, 1.0) if ratio > 0 else 0.0) * (len(RAMP) - 1)
    low = min(int(place), len(RAMP) - 2)
    ends = [[int(hexed[i : i + 2], 16) for i in (1, 3, 5)] for hexed in RAMP[low : low + 2]]
    mixed = [round(a + (b - a) * (place - low)) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def number(value: float) -> str:
    """A coordinate, as short as three decimals allow.

    Example:
        >>> number(2.0), number(0.12345), number(-0.0001)
        ('2', '0.123', '0')
    """
    rounded = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if rounded == "-0" else rounded


def tag(name: str, *inside: str, **attributes: Any) -> str:
    """An element around markup.

    Example:
        >>> tag("rect", x=1.50, stroke_width=2, fill="a<b")
        '<rect x="1.5" stroke-width="2" fill="a&lt;b"/>'
    """
    written = []
    for key, value in attributes.items():
        if value is not None:
            shown = number(value) if isinstance(value, (int, float)) else printable(str(value))
            written.append(f" {key.rstrip('_').replace('_', '-')}={quoteattr(shown)}")
    opening = f"<{name}{''.join(written)}"
    return f"{opening}>{''.join(inside)}</{name}>" if inside else f"{opening}/>"


def words(content: str) -> str:
    """Text as markup."""
    return escape(printable(content))


def text(x: float, y: float, content: str, size: float, fill: str = INK, **attributes: Any) -> str:
    """A line of text whose base line begins at a point."""
    return tag("text", words(content), x=x, y=y, font_size=size, fill=fill, **attributes)
