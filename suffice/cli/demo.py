"""``suffice demo``: see it work, without a network, a GPU or a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
Example:

[green]suffice demo --out demo-output[/green]
"""


def demo(out: Annotated[Path, typer.Option(help="Folder for what it writes.")] = Path("demo-output")) -> None:
    """Ask an oracle, whose way of deciding is known, what is enough for it to decide."""
