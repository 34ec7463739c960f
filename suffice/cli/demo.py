"""``suffice demo``: see it work, without a network, a GPU or a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli import output

EXAMPLES = """
Examples:

[green]suffice demo[/green]

[green]suffice demo --full --out everything[/green]
"""

# One of each family, and the pairs that differ in one thing.
SHORT = ("vgg", "resnet", "convnext-3", "convnext-3-bn", "swin-4", "swin-4-bn", "deit", "deit-distilled")
SHORT_IMAGES, FULL_IMAGES = 16, 100


def demo(
    out: Annotated[Path, typer.Option(help="Folder for what it writes.")] = Path("suffice-demo"),
    full: Annotated[bool, typer.Option("--full", help="All networks and more images; takes much longer.")] = False,
    images: Annotated[int | None, typer.Option(min=2, help=f"Scenes.  [default: {SHORT_IMAGES}]")] = None,
) -> None:
    """Find out what is enough to decide: for an oracle whose rule is known, then for small trained networks.

    The oracle weighs five cells of a 7×7 grid, so what must be found can be worked out on paper. The networks were
    trained on scenes, small pictures made by rule, and come with the package. Writes tables and pictures.
    """
    out.mkdir(parents=True, exist_ok=True)
    _oracle(out)
    _zoo(out, full, images or (FULL_IMAGES if full else SHORT_IMAGES))


def _oracle(out: Path) -> None:
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
    (out / "oracle-graph.svg").write_text(found.graph().to_svg(), encoding="utf-8")
    output.note(f"The structured attention graph: {out / 'oracle-graph.svg'}\n")


def _zoo(out: Path, full: bool, count: int) -> None:
    from suffice import load, models, open_images
    from suffice.present.tour import HEADINGS, sentences, table_rows, visits, write_table

    trained = [m.name for m in models("zoo/*") if m.pretrained]
    chosen = [name for name in trained if full or name.partition("/")[2] in SHORT]
    if not chosen:
        output.note("The zoo has no trained networks yet, so the demo ends here.")
        return
    images = open_images(f"scenes:test[:{count}]")
    output.note(
        f"Now {len(chosen)} networks and {count} scenes. In each, what is enough for 90 % of the network's confidence "
        "(an MSE, of at most 10 cells), how many such sets are there, and how many of their subsets still keep 80, 70, "
        "60, 50 %?"
    )
    nets = [load(name, device="cpu") for name in chosen]
    with output.progress("Searching") as on_progress:
        found = list(visits(nets, images, on_progress=on_progress))
    output.print_table("Mean ± standard error over scenes", HEADINGS, table_rows(found), right=range(2, len(HEADINGS)))
    for sentence in sentences(found):
        output.note(f"• {sentence}")
    output.note(f"These are {count} scenes and one seed: enough to see how it is done, not to settle a question.")
    write_table(found, out / "table.csv")
    for visit, net in zip(found, nets, strict=True):
        for evidence in visit.evidence[:2]:
            pixels = net.geometry(images[evidence.index].decode())
            path = out / f"{visit.name}-scene-{evidence.index}.svg"
            path.write_text(evidence.graph().to_svg(pixels), encoding="utf-8")
    output.note(f"Written to {out}: table.csv, and graphs of two scenes for each network.")
    output.note(
        "Try next: suffice evidence YOUR_PHOTO.jpg --model timm/deit_small_patch16_224 --out evidence\n"
        "          suffice explain YOUR_PHOTO.jpg --model timm/deit_small_patch16_224 --method grad-cam,rise"
    )
