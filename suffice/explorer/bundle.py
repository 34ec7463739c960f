"""The modules of the page as one, for notebooks, which load a single file."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent / "page"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)


def bundled(start: str = "widget.js") -> str:
    """One module of a module and all that it imports, those that others need first.

    Our modules are written so that this is all it takes: they import by name from files beside them, name nothing
    alike, and export where they declare.
    """
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in parts:
            return
        parts[name] = ""  # so that a circle would end
        text = (PAGE / name).read_text("utf-8")
        for needed in _IMPORT.findall(text):
            add(needed)
        del parts[name]
        parts[name] = re.sub(r"^export (?!default)", "", _IMPORT.sub("", text), flags=re.MULTILINE)

    add(start)
    return "\n".join(f"// {name}\n{text}" for name, text in parts.items())


def stylesheet() -> str:
    """The style sheet of the page."""
    return (PAGE / "style.css").read_text("utf-8")
