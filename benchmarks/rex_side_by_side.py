"""Evidence beside ReX, the other package for minimal sufficient explanations: how small, how minimal, how costly.

    python -m venv rex && rex/bin/pip install . timm rex-xai==0.4.1
    OMP_NUM_THREADS=1 PYTHONPATH=. rex/bin/python benchmarks/rex_side_by_side.py --images 20 --out rex.jsonl

Both explain ViT-Ti on the first photographs of which it is at least half sure, on one thread. ReX runs with its
defaults (20 iterations, tree depth 10, boxes and chunks of 10 pixels, a queue of 1 by area), but in batches of 16, by
which it is faster. Both hide pixels behind zeros after normalization, for this model gray: the default of ReX. Of
``suffice`` it is the smallest MSE that is compared; its cost is that of all MSEs. Each is asked for what keeps the
class on top (ReX's default), and for what also keeps 0.9 of the confidence.

An explanation is judged by the cells of a 7×7 grid that it touches: the share of those that can be hidden, one at a
time, while the same criterion still holds. Seconds are those of the processor. Rows are appended to ``--out`` one by
one; what is there already is not done again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.real_models import photographs, vit_tiny
from suffice import Classifier, find_evidence
from suffice.perturb import Grid, RegionMasks

KEEPS = {"top-1": 0.0, "both": 0.9}  # criterion → least share of the confidence
SIDE = 7
BATCH = 16


@dataclass
class Explained:
    """What a package answers: a mask [H, W], None where it finds nothing, and what that took."""

    mask: Tensor | None
    forwards: int
    seconds: float


@dataclass
class Asked:
    """The model as a function of normalized inputs [B, 3, H, W] that counts them.

    While it is ``watching`` for a class, it also keeps the first input that has the class on top, and the cost so far.
    """

    net: Classifier
    inputs: int = 0
    started: float = field(default_factory=time.process_time)
    watching: int | None = None
    first: Explained | None = None

    @torch.no_grad()
    def __call__(self, inputs: Tensor) -> Tensor:
        """Logits [B, classes]."""
        self.inputs += len(inputs)
        logits = self.net.logits(inputs)
        hits = (logits.argmax(dim=1) == self.watching).nonzero().flatten() if self.watching is not None else ()
        if self.first is None and len(hits):
            # Shown pixels differ from zero: no byte lies exactly at the model's mean of 127.5.
            self.first = self.cost_of((inputs[hits[0]] != 0).any(dim=0))
        return logits

    def cost_of(self, mask: Tensor | None) -> Explained:
        """An explanation with the cost until now."""
        return Explained(mask, self.inputs, time.process_time() - self.started)


def by_rex(net: Classifier, pixels: Tensor, criteria: list[str]) -> dict[str, Explained]:
    """The sufficient explanations of ReX.

    It adds pixels by their responsibility, ten at a time, until it is content. So one run that is to keep the
    confidence passes through the answer of one that is to keep the class alone, which is the first with the class on
    top; what that one would have cost is read off there.
    """
    strictest = max(criteria, key=lambda keeps: KEEPS[keeps])
    from rex_xai.input.input_data import Data
    from rex_xai.lib import ReX
    from rex_xai.utils._utils import ResponsibilityStyle

    asked = Asked(net)
    shape = [BATCH, 3, *net.size]
    rex = ReX(asked, shape, "cpu", "RGB")
    rex.data = Data(None, shape, "cpu", mode="RGB")
    rex.data.data = net.normalize(pixels)
    rex.args.batch_size, rex.args.seed, rex.args.progress_bar = BATCH, 0, False
    rex.args.responsibility_style = ResponsibilityStyle.Multiplicative  # what the name in its defaults stands for
    rex.args.minimum_confidence_threshold = KEEPS[strictest]
    rex.set_target()
    rex.calculate_responsibility()
    if rex.maps.get(rex.data.target.classification) is None:  # no part of the image ever had the class
        return dict.fromkeys(criteria, asked.cost_of(None))
    asked.watching = rex.data.target.classification
    rex.extract_sufficient_explanation()
    assert asked.first is not None  # what keeps class and confidence keeps the class
    explained = {"top-1": asked.first, strictest: asked.cost_of(rex.explanation.sufficiency_mask[0].bool())}
    return {keeps: explained[keeps] for keeps in criteria}


def by_suffice(net: Classifier, pixels: Tensor, criteria: list[str]) -> dict[str, Explained]:
    """The smallest MSE for each criterion, and what the search for all of them took."""
    explained = {}
    for keeps in criteria:
        started = time.process_time()
        found = find_evidence(net, pixels, grid=SIDE, baseline="gray", keeps=keeps, expanded_mses=0)
        seconds = time.process_time() - started
        smallest = min(found[0].mses, key=len, default=None)
        mask = None if smallest is None else cell_masks(net, [smallest.cells])[0]
        explained[keeps] = Explained(mask, found.counters.forwards, seconds)
    return explained


WAYS: dict[str, Callable[[Classifier, Tensor, list[str]], dict[str, Explained]]] = {
    "ReX": by_rex,
    "suffice": by_suffice,
}


def cell_masks(net: Classifier, sets: list[tuple[int, ...]]) -> Tensor:
    """Masks that show sets of cells, bool [K, H, W]."""
    regions = Grid(SIDE).from_cells(sets)
    return RegionMasks(regions, Grid(SIDE)).rows(slice(len(sets)), net.size, torch.device("cpu"))


@torch.no_grad()
def judged(net: Classifier, pixels: Tensor, mask: Tensor, keeps: str) -> dict[str, float]:
    """How large an explanation [H, W] is, whether it holds, and how many of its cells can go."""
    cells = cell_masks(net, [(cell,) for cell in range(SIDE**2)])
    touched = cells[(cells & mask).any(dim=(1, 2))]
    masks = torch.cat([torch.ones_like(mask)[None], mask[None], mask & ~touched])
    inputs = torch.where(masks[:, None], net.normalize(pixels), 0.0)
    scores = torch.cat([net.logits(chunk).softmax(dim=1) for chunk in inputs.split(BATCH)])
    target = scores[0].argmax()
    ratio = scores[:, target] / scores[0, target]
    # ReX rounds confidences to four digits before it compares them.
    holds = (scores.argmax(dim=1) == target) & (ratio >= KEEPS[keeps] - 2e-4)
    return {
        "area": float(mask.float().mean()),
        "cells": len(touched),
        "removable": int(holds[2:].sum()),
        "holds": bool(holds[1]),
        "ratio": float(ratio[1]),
    }


def table(rows: list[dict]) -> str:
    """Means over photographs, in Markdown."""
    lines = [
        "| keeps | package | photographs | without one | area | cells touched | of these removable | none removable in "
        "| ratio | forwards | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for keeps in KEEPS:
        for way in WAYS:
            mine = [row for row in rows if row["keeps"] == keeps and row["way"] == way]
            found = [row for row in mine if "area" in row]
            if not found:
                continue
            mean = {name: sum(r[name] for r in found) / len(found) for name in ("area", "cells", "removable", "ratio")}
            cost = {name: sum(r[name] for r in mine) / len(mine) for name in ("forwards", "seconds")}
            lines.append(
                f"| {'class' if keeps == 'top-1' else 'class and 0.9'} | {way} | {len(mine)} | {len(mine) - len(found)}"
                f" | {mean['area']:.1%} | {mean['cells']:.1f} | {mean['removable'] / mean['cells']:.1%}"
                f" | {sum(row['removable'] == 0 for row in found)} | {mean['ratio']:.2f}"
                f" | {cost['forwards']:,.0f} | {cost['seconds']:.0f} |"
            )
    return "\n".join(lines)


def confident(net: Classifier, least: float) -> Iterator[tuple[str, Tensor]]:
    """Photographs of which the model is sure, as names and pixels [1, 3, H, W]."""
    images = photographs()
    for index, image in enumerate(images):
        pixels = net.prepare(images[index : index + 1])
        if net.predict(pixels).scores.max() >= least:
            yield image.name, pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--least", type=float, default=0.5, help="least confidence on the whole photograph")
    parser.add_argument("--ways", default="ReX,suffice")
    parser.add_argument("--keeps", default="top-1,both", help="top-1: the class; both: the class and its confidence")
    parser.add_argument("--out", type=Path, default=Path("rex.jsonl"))
    options = parser.parse_args()

    net = vit_tiny("cpu")
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(row["image"], row["way"], row["keeps"]) for row in rows}
    for name, pixels in islice(confident(net, options.least), options.images):
        for way in options.ways.split(","):
            criteria = [keeps for keeps in options.keeps.split(",") if (name, way, keeps) not in done]
            if not criteria:
                continue
            for keeps, explained in WAYS[way](net, pixels, criteria).items():
                row = {"image": name, "way": way, "keeps": keeps}
                row |= {"forwards": explained.forwards, "seconds": explained.seconds}
                if explained.mask is not None:
                    row |= judged(net, pixels, explained.mask, keeps)
                rows.append(row)
                with options.out.open("a") as file:
                    print(json.dumps(row), file=file)
    print(table(rows))


if __name__ == "__main__":
    main()
