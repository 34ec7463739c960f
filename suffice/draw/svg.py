"""SVG as text, and documents to look at.

Attributes only, no style sheet: several pictures can then stand in one page without changing each other.
"""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape, quoteattr

from suffice.draw.palettes import INK
from suffice.draw.words import printable

SANS = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'Segoe UI', Roboto, system-ui, sans-serif"


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


def escaped(content: str) -> str:
    """Text as markup."""
    return escape(printable(content))


def text(x: float, y: float, content: str, size: float, fill: str = INK, **attributes: Any) -> str:
    """A line of text whose base line begins at a point."""
    return tag("text", escaped(content), x=x, y=y, font_size=size, fill=fill, **attributes)


def document(
    width: float, height: float, *inside: str, title: str, description: str = "", definitions: str = ""
) -> str:
    """A whole SVG document on white, without references to anything outside itself.

    Args:
        width: In units of the drawing.
        height: Likewise.
        *inside: Markup.
        title: What it shows, for tooltips and for those who cannot see it.
        description: More about it.
        definitions: Markup of what the rest refers to.
    """
    return tag(
        "svg",
        tag("title", escaped(title)),
        tag("desc", escaped(description)) if description else "",
        definitions,
        tag("rect", width=width, height=height, fill="#fff"),
        *inside,
        "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        font_family=SANS,
        role="img",
    )


def show(markup: str, kind: Literal["svg", "html"] = "svg") -> Path | None:
    """Show a document: below the cell of a notebook, elsewhere in the browser, by a temporary file that is returned."""
    if "ipykernel" in sys.modules:
        display: Any = import_module("IPython.display")
        display.display((display.SVG if kind == "svg" else display.HTML)(markup))
        return None
    with tempfile.NamedTemporaryFile("w", prefix="suffice-", suffix=f".{kind}", delete=False, encoding="utf-8") as file:
        file.write(markup)
    path = Path(file.name)
    if not webbrowser.open(path.as_uri()):
        print(f"No browser to show it in; it is in {path}.")
    return path
