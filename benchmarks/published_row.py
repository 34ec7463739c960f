"""Which reading of the unstated choices comes closest to the published rows for ResNet-50?

    python benchmarks/published_row.py --images 512 --batch 1024 --precision bf16 --compile --out rows.json

All readings with the same baseline, cells and resize rule share one probe, so that no masked image is scored twice.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import torch

from benchmarks.real_models import photographs, resnet50_v1
from suffice.evidence import Evidence, EvidenceStream, Settings
from suffice.evidence.counting import COUNTINGS
from suffice.evidence.files.table import count_column, evidence_table
from suffice.evidence.search.searcher import Searcher
from suffice.evidence.search.seed_map import seed_map
from suffice.perturb import Probe, Runner

PUBLISHED = {
    "cvpr2024": {"mses": 6.76, "mean_size": 7.28, 0.8: 53.68, 0.7: 108.55, 0.6: 180.44, 0.5: 296.92},
    "preprint": {"mses": 13.52, 0.8: 11.17, 0.7: 40.70, 0.6: 145.19, 0.5: 373.76},
}
LEVELS = (0.8, 0.7, 0.6, 0.5)

# (baseline, cells, resize rule) → searches
HARD_BLUR, SOFT_BLUR, SOFT_BLACK = ("blur", "hard", "crop"), ("blur", "soft", "crop"), ("black", "soft", "squash")
SEARCHES = {
    HARD_BLUR: {
        "all candidates": {},
        "all candidates, no limit of MSEs": {"max_mses": None, "max_size": 12},
        "up to the first level with an MSE": {"max_mses": 0},
        "within the beam": {"passing": "beam"},
        "within the beam, no limit of MSEs": {"passing": "beam", "max_mses": None},
        "15 candidates, up to the first level with an MSE": {"search": "sag", "max_mses": 0},
        "15 candidates by seed map": {"search": "sag"},
        "10 candidates by seed map": {"search": "sag", "candidates": 10},
        "8 candidates by seed map": {"search": "sag", "candidates": 8},
        "10 candidates, up to the first level with an MSE": {"search": "sag", "candidates": 10, "max_mses": 0},
        "15 candidates, within the beam": {"search": "sag", "passing": "beam"},
        "15 candidates, within the beam, no limit": {"search": "sag", "passing": "beam", "max_mses": None},
    },
    SOFT_BLUR: {
        "up to the first level with an MSE": {"max_mses": 0},
        "15 candidates by seed map": {"search": "sag", "strict": True},
        "10 candidates by seed map": {"search": "sag", "candidates": 10, "strict": True},
        "7 candidates by seed map": {"search": "sag", "candidates": 7, "strict": True},
        "5 candidates by seed map": {"search": "sag", "candidates": 5, "strict": True},
        "15 candidates, within the beam": {"search": "sag", "passing": "beam", "strict": True},
        "15 candidates, within the beam, no limit": {"search": "sag", "passing": "beam", "max_mses": None},
        "within the beam": {"passing": "beam"},
    },
    SOFT_BLACK: {
        "15 candidates by seed map": {"search": "sag", "strict": True},
        "15 candidates, as implemented": {"search": "sag", "strict": True, "beam_width": 3, "beam_off_by_one": True, "repeated_sets": True, "noise_defect": True},  # noqa: E501
    },
}  # fmt: skip


def distance(row: dict, published: dict) -> float:
    """Mean absolute log ratio to a published row: 0 is a match, 0.69 is off by a factor of two on average."""
    values = [math.log(max(row[k], 1e-3) / v) for k, v in published.items()]
    return sum(map(abs, values)) / len(values)


def run(probe: Probe, settings: Settings, saliency: torch.Tensor | None, names: list[str]) -> list[Evidence]:
    """Search all images of a probe."""
    searcher = Searcher(probe, settings)
    searcher.admit(torch.arange(len(probe)), saliency if settings.search == "sag" else None)
    maker = EvidenceStream(probe.net, names_only(names), None, settings, probe.runner)
    found = []
    while searcher.active:
        found += [maker.evidence_of(f, probe, slot, slot) for slot, f in searcher.round().items()]
    return sorted(found, key=lambda e: e.index)


def names_only(names: list[str]) -> list[torch.Tensor]:
    return [torch.zeros(3, 2, 2) for _ in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--max-size", type=int, default=18)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", default="", help="names of searches, separated by semicolons")
    parser.add_argument("--out", type=Path, default=Path("rows.json"))
    options = parser.parse_args()

    images = photographs()[: options.images]
    own = resnet50_v1(options.device)
    runner = Runner(own, batch_size=options.batch, precision=options.precision, compile=options.compile)
    rows = []
    only = set(filter(None, options.only.split(";")))
    for (baseline, cells, rule), every in SEARCHES.items():
        searches = {n: c for n, c in every.items() if not only or f"{baseline}/{cells}/{n}" in only}
        if not searches:
            continue
        net = own.replace(resize=rule)
        pixels = net.prepare(images)
        probe = Probe(own, pixels, baseline=baseline, cells=cells, runner=runner, remember=1 << 25)
        saliency = {}
        for name, changes in searches.items():
            started = time.perf_counter()
            settings = Settings(**{"max_size": options.max_size, "baseline": baseline, "cells": cells, **changes})
            defect = settings.noise_defect
            if settings.search == "sag" and defect not in saliency:
                saliency[defect] = seed_map(Runner(own), pixels, probe.targets, settings, images.ids)
            for expanded in (None, 3):
                found = run(probe, settings.changed(expanded_mses=expanded), saliency.get(defect), images.names)
                table = evidence_table(found)
                mean = {
                    n: float(table.column(n).to_numpy().astype(float).mean())
                    for n in ("mses", "confidence", "questions")
                }
                sizes = [s for s in table.column("mean_size").to_pylist() if s is not None]
                with_mse = [m for m in table.column("mses").to_pylist() if m]
                for counting in COUNTINGS:
                    row = {
                        "baseline": baseline, "cells": cells, "resize": rule, "search": name,
                        "expanded": "all" if expanded is None else f"first {expanded}", "counting": counting,
                        "mses": mean["mses"], "median_mses": sorted(table.column("mses").to_pylist())[len(found) // 2],
                        "mean_size": sum(sizes) / max(len(sizes), 1), "without_mse": 1 - len(with_mse) / len(found),
                        "truncated": sum(table.column("truncated").to_pylist()),
                        **{t: float(table.column(count_column(counting, t)).to_numpy().mean()) for t in LEVELS},
                    }  # fmt: skip
                    row |= {f"distance to {n}": distance(row, p) for n, p in PUBLISHED.items()}
                    rows.append(row)
            print(f"{baseline}/{cells}/{rule} {name}: {time.perf_counter() - started:.0f} s", flush=True)
            options.out.write_text(json.dumps(rows, indent=1))
    for published in PUBLISHED:
        print(f"\nclosest to {published}: {PUBLISHED[published]}")
        for row in sorted(rows, key=lambda r: r[f"distance to {published}"])[:6]:
            print({k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
