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
    """Ask an oracle, whose way of deciding is known, what is enough for it to decide.

    The oracle weighs five cells of a 7×7 grid, so what must be found can be worked out on paper. The demo searches for
    it through the same probe that serves real models, compares, and draws the structured attention graph.
    """
    from suffice import find_evidence
    from suffice.testing import WeightedSum, minimal_sufficient_sets

    weights = {9: 3.0, 10: 2.5, 16: 2.0, 30: 3.0, 38: 1.5}
    oracle = WeightedSum(weights, threshold=5.0, grid=7, link="smooth", sharpness=0.9)
    output.note(
        "A classifier whose rule is known: it adds up the weights of the cells it sees, "
        + ", ".join(f"P{c} {w:g}" for c, w in weights.items())
        + ", and is the surer the more they exceed 5. What is enough for it to decide?"
    )
    found = find_evidence(
        oracle.classifier(224), oracle.image(224), targets=1, baseline="black", beam_width=50, max_mses=None, max_size=6
    )[0]
    rows = [
        (" ".join(f"P{c}" for c in m.cells), sum(weights[c] for c in m.cells), f"{m.ratio:.3f}") for m in found.mses
    ]
    output.print_table("Minimal sufficient explanations", ("cells", "sum of weights", "ratio"), rows, right=(1, 2))
    truth = minimal_sufficient_sets(oracle)
    agrees = sorted(m.cells for m in found.mses) == truth
    output.note(f"By brute force there are {len(truth)}; the search found {'just these' if agrees else 'others'}.")
    counts = ", ".join(f"{n} at ≥ {t:.0%}" for t, n in found.subexplanations().items())
    output.note(f"Sub-explanations: {counts}. Asked: {found.questions} masked images.")

    out.mkdir(parents=True, exist_ok=True)
    (out / "graph.svg").write_text(found.graph().to_svg(), encoding="utf-8")
    output.note(f"The structured attention graph: {out / 'graph.svg'}")
