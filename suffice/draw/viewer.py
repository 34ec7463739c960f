"""Documents to look at."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from importlib import import_module
from pathlib import Path
from typing import Any, Literal


def show(markup: str, kind: Literal["svg", "html"] = "svg") -> Path | None:
    """Show a document: below the cell of a notebook, elsewhere in the browser.

    Args:
        markup: The document.
        kind: What it is.

    Returns:
        The temporary file that the browser was given; None in a notebook.
    """
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
