"""What is asked beyond the search: questions an image of each, and what comes of stability and of finer grids.

Photographs are searched once, without sub-explanations; then each of the further questions is put about the MSEs found.

python benchmarks/beyond_cost.py --model vit --images 6 --precision bf16
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import torch

from benchmarks import real_models
from suffice import Classifier, Images, find_evidence
from suffice.evidence import Evidence, Settings
from suffice.evidence.beyond.extras import add_extras
from suffice.evidence.telling import most_telling
from suffice.perturb import Runner

MODELS = {"resnet50": real_models.resnet50_v1, "vit": real_models.vit_tiny}
SIDES = (14, 28)
EXTRAS: dict[str, dict[str, Any]] = {
    "second baseline": {"second_baseline": "gray"},
    "stability": {"stability": True},
    "contrastive": {"contrastive": True},
    "refinement": {"refine": SIDES},
    "necessary": {"necessary": True},
}


def areas(evidence: Evidence) -> dict[int, float] | None:
    """Mean share of the image that the refined MSEs cover, by cells a side; the first is the grid of the search."""
    if not evidence.meaningful or not evidence.mses:
        return None
    refined = {evidence.grid.side: most_telling(evidence.mses, overlap=1)[:3], **evidence.refined}
    return {side: mean(len(m) for m in mses) / side**2 for side, mses in refined.items()}


def kept(every: Sequence[Evidence]) -> dict[str, float]:
    """Share of an image's MSEs that stay sufficient under each small change, mean of the images that have some."""
    shares: dict[str, list[float]] = {}
    for evidence in every:
        for change in (evidence.mses[0].stays or {}) if evidence.meaningful and evidence.mses else ():
            shares.setdefault(change, []).append(mean((mse.stays or {})[change] for mse in evidence.mses))
    return {change: mean(values) for change, values in shares.items()}


def costs(net: Classifier, images: Images, precision: Any, batch: int, only: Collection[str]) -> list[str]:
    """Lines of a table in Markdown, as they are measured."""
    settings = Settings(expanded_mses=0)
    found = find_evidence(net, images, settings=settings, precision=precision, batch_size=batch)
    pixels = net.prepare(images).cpu()
    asked = mean(e.questions for e in found)
    lines = ["| what | forwards an image | seconds an image |", "|---|---|---|", f"| search | {asked:,.0f} | |"]
    notes: list[str] = []
    ids = [e.image_id or e.name for e in found]
    for name, wishes in EXTRAS.items():
        if name not in only:
            continue
        runner = Runner(net, batch_size=batch)
        wished = [replace(e, settings=settings.changed(**wishes)) for e in found]
        started = time.perf_counter()
        more = add_extras(runner, pixels, ids, wished)
        seconds = (time.perf_counter() - started) / len(found)
        lines.append(f"| {name} | {runner.counters.forwards / len(found):,.0f} | {seconds:.1f} |")
        print(lines[-1], flush=True)
        if name == "stability":
            told = ", ".join(f"{change} {share:.0%}" for change, share in kept(more).items())
            notes.append(f"MSEs that stay sufficient: {told}")
        if name == "refinement":
            shares = [share for share in map(areas, more) if share]
            told = ", ".join(f"{mean(share[side] for share in shares):.1%} on {side}×{side}" for side in shares[0])
            notes.append(f"Area of three MSEs an image, mean of {len(shares)} images: {told}")
    return [*lines, "", *notes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="vit")
    parser.add_argument("--images", type=int, default=6)
    parser.add_argument("--only", default=",".join(EXTRAS), help="some of what can be asked, by commas")
    parser.add_argument("--precision", default="fp32", help="of the search; what is asked beyond is asked in fp32")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    images = real_models.photographs()
    images = images[:: len(images) // options.images][: options.images]
    only = options.only.split(",")
    print("\n".join(costs(MODELS[options.model](options.device), images, options.precision, options.batch, only)))


if __name__ == "__main__":
    main()
