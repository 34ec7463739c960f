"""``suffice demo``: see it work, without a network, a GPU or a data set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import options as opt
from suffice.cli import output

if TYPE_CHECKING:
    from suffice.vision import Classifier

EXAMPLES = output.examples(
    "suffice demo",
    "suffice demo --full --out everything",
)

SHORT_IMAGES, FULL_IMAGES = 5, 100
# Methods whose maps are drawn and measured, by network; the options make them short.
EXPLAINED: dict[str, dict[str, dict[str, Any]]] = {
    "zoo/resnet": {"gradient": {}, "grad-cam": {}, "occlusion": {"window": 8, "stride": 4}, "rise": {"masks": 500}},
    "zoo/deit": {"rollout": {}, "cgw2": {}, "vit-cx": {}, "tis": {"masks": 128}},
}


def demo(
    out: Annotated[Path, typer.Option(callback=opt.writable, help="Folder for what it writes.")] = Path("suffice-demo"),
    full: Annotated[bool, typer.Option("--full", help=f"{FULL_IMAGES} scenes; takes much longer.")] = False,
    images: Annotated[int | None, typer.Option(min=2, help=f"Scenes.  [default: {SHORT_IMAGES}]")] = None,
    networks: Annotated[str | None, typer.Option(help="Networks of the zoo, as a,b,c.  [default: all]")] = None,
) -> None:
    """Find out what is enough to decide: for an oracle whose rule is known, then for small trained networks.

    The oracle weighs five cells of a 7×7 grid, so what must be found can be worked out on paper. The networks were
    trained on scenes, small pictures made by rule, and come with the package. Then maps of several methods, and how
    true they are to the networks. Writes tables and pictures. Takes three to four minutes of one core.
    """
    from suffice import list_models, load

    count = images or (FULL_IMAGES if full else SHORT_IMAGES)
    # Before anything else, so that a wrong name is said at once.
    names = [f"zoo/{name.strip()}" for name in networks.split(",")] if networks else list_models("zoo/*")
    nets = [load(name, device="cpu") for name in names]
    out.mkdir(parents=True, exist_ok=True)
    with _one_thread():
        _oracle(out)
        _zoo(out, count, nets)
        _maps(out, count)
    output.note(
        "Try next: suffice evidence YOUR_PHOTO.jpg --model timm/deit_small_patch16_224 --out evidence\n"
        "          suffice explain YOUR_PHOTO.jpg --model timm/resnet50 --method grad-cam,rise,igos++ --score\n"
        "          suffice score scenes:test[:50] --model zoo/deit --method rollout,vit-cx,tis"
    )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Several threads would spend more time waiting for each other than on networks as small as these."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _oracle(out: Path) -> None:
    from suffice import find_evidence
    from suffice.evidence import Settings
    from suffice.testing import WeightedSum, minimal_sufficient_sets

    weights = {9: 3.0, 10: 2.5, 16: 2.0, 30: 3.0, 38: 1.5}
    oracle = WeightedSum(weights, threshold=5.0, grid=7, link="smooth", sharpness=0.9)
    cells = ", ".join(f"P{c} {w:g}" for c, w in weights.items())
    output.note(
        f"A classifier whose rule is known: it adds up the weights of the cells it sees, {cells}, and is the surer the "
        "more they exceed 5. What is enough for it to decide?"
    )
    thorough = Settings(baseline="black", beam_width=50, max_mses=None, max_size=6)
    found = find_evidence(oracle.classifier(56), oracle.image(56), targets=1, settings=thorough)[0]
    sums = [(m, sum(weights[c] for c in m.cells)) for m in found.mses]
    rows = [(" ".join(f"P{c}" for c in m.cells), total, f"{m.ratio:.3f}") for m, total in sums]
    output.print_table("Minimal sufficient explanations", ("cells", "sum of weights", "ratio"), rows, right=(1, 2))
    truth = minimal_sufficient_sets(oracle)
    agrees = sorted(m.cells for m in found.mses) == truth
    output.note(f"By brute force there are {len(truth)}; the search found {'just these' if agrees else 'others'}.")
    counts = ", ".join(f"{n} at ≥ {t:.0%}" for t, n in found.subexplanations().items())
    output.note(f"Sub-explanations: {counts}. Asked: {found.questions} masked images.")
    (out / "oracle-graph.svg").write_text(found.graph().to_svg(), encoding="utf-8")
    output.note(f"The structured attention graph: {out / 'oracle-graph.svg'}\n")


def _zoo(out: Path, count: int, nets: list[Classifier]) -> None:
    from suffice import open_images
    from suffice.evidence import Settings
    from suffice.report.tour import HEADINGS, SETTINGS, sentences, table_rows, visits, write_table

    images = open_images(f"scenes:test[:{count}]")
    output.note(
        f"Now {len(nets)} small networks, after those of the papers, trained on scenes: creatures of 16 kinds, which "
        "any two of their five parts tell. What is enough for 90 % of a network's confidence (an MSE, of at most 10 "
        "cells), how many such sets are there, and how many of their subsets still keep 80, 70, 60, 50 %? On "
        f"{count} scenes, with a beam of {SETTINGS.beam_width} (suffice evidence has {Settings().beam_width}):"
    )
    with output.asking("Searching"):
        found = list(visits(nets, images))
    output.print_table("Mean ± standard error over scenes", HEADINGS, table_rows(found), right=range(2, len(HEADINGS)))
    for sentence in sentences(found):
        output.note(f"• {sentence}")
    output.note(
        f"These are {count} scenes and one training run of each network: enough to see how it is done, not to settle a "
        "question. docs/notebook/findings.md has 512 scenes and three runs of each."
    )
    write_table(found, out / "table.csv")
    for visit, net in zip(found, nets, strict=True):
        for evidence in visit.evidence[:2]:
            pixels = net.geometry(images[evidence.index].decode())
            path = out / f"{visit.name}-scene-{evidence.index}.svg"
            path.write_text(evidence.graph().to_svg(pixels), encoding="utf-8")
    output.note(f"Written to {out}: table.csv, and graphs of two scenes for each network.\n")


def _maps(out: Path, count: int) -> None:
    from suffice import load, open_images
    from suffice.report import explain_images

    output.note(
        "Where do the networks look, and is it true? Insertion: confidence while the map's best pixels come in first "
        "(high is good); deletion: while they go first (low is good)."
    )
    images = open_images(f"scenes:test[:{count}]")
    rows = []
    for name, methods in EXPLAINED.items():
        net = load(name, device="cpu")
        with output.asking(name):
            found = explain_images(net, images, list(methods), options=methods, score=True)
        for method, scores in found.scores[""].items():
            both = [scores[metric] for metric in ("insertion", "deletion")]
            rows.append((name, method, *(f"{s.mean:.2f} ± {s.standard_error:.2f}" for s in both)))
        (out / f"maps-{name.partition('/')[2]}.svg").write_text(found.figure(0), encoding="utf-8")
    title = f"Protocol default, mean ± standard error over {count} scenes"
    output.print_table(title, ("network", "method", "insertion", "deletion"), rows, right=(2, 3))
    output.note(f"Written to {out}: maps-resnet.svg and maps-deit.svg.\n")
