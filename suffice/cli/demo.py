"""``suffice demo``: see it work, without a network, a GPU or a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli import output

EXAMPLES = """
Example:

[green]suffice demo --out demo-output[/green]
"""


def demo(out: Annotated[Path, typer.Option(help="Folder for what it writes.")] = Path("demo-output")) -> None:
    """Ask an oracle, whose way of deciding is known, what it sees in parts of an image."""
    import torch

    from suffice import Probe
    from suffice.testing import AnyOf

    oracle = AnyOf([(9, 10, 16), (30, 38)], grid=7)
    probe = Probe(oracle.classifier(224), oracle.image(224), targets=1, baseline="black")
    cases = {
        "the whole image": range(49),
        "the first combination": (9, 10, 16),
        "the second combination": (30, 38),
        "half of each": (9, 10, 30),
        "all but one cell of each": sorted(set(range(49)) - {9, 30}),
        "nothing": (),
    }
    answers = probe.ask(0, probe.grid.from_cells(cases.values())).tolist()
    output.note(
        "This classifier decides by cells 9, 10 and 16 of a 7×7 grid, or by cells 30 and 38. Shown parts of an image:"
    )
    rows = [(name, len(list(cells)), f"{a:.2f}") for (name, cells), a in zip(cases.items(), answers, strict=True)]
    output.print_table("What the oracle says", ("shown", "cells", "confidence"), rows, right=(1, 2))

    from PIL import Image

    # Hide each cell in turn on top of the second combination: only the cells of the first make a difference.
    alone = probe.grid.full(49) & ~probe.grid.single(torch.arange(49)) & ~probe.grid.from_cells([(30,)])
    drop = (probe.whole[0] - probe.ask(0, alone)).view(7, 7)
    out.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(drop.mul(255).clamp(0, 255).byte().numpy()).resize((224, 224), Image.Resampling.NEAREST)
    picture.save(out / "needed-cells.png")
    counters = probe.counters
    output.note(f"{counters.questions} questions, {counters.forwards} forwards in {counters.seconds:.2f} s.")
    output.note(f"Which cells are needed when cell 30 is hidden: {out / 'needed-cells.png'}")
