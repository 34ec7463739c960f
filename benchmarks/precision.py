"""How far does bf16 move the evidence? The same photographs in fp32 and in bf16.

python benchmarks/precision.py --images 112 --batch 512
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from benchmarks.real_models import photographs, resnet50_v1, vit_tiny
from suffice import find_evidence

STATISTICS = ("mses", "mean_size", "distinct_80", "distinct_70", "distinct_60", "distinct_50")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=112)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--max-size", type=int, default=18)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    images = photographs()[: options.images]
    rows = []
    for make in (resnet50_v1, vit_tiny):
        net = make(options.device)
        exact, rough = (
            find_evidence(
                net, images, precision=p, batch_size=options.batch, compile=options.compile, max_size=options.max_size
            )
            for p in ("fp32", "bf16")
        )
        shared = [len({m.cells for m in a.mses} & {m.cells for m in b.mses}) for a, b in zip(exact, rough, strict=True)]
        union = [len({m.cells for m in a.mses} | {m.cells for m in b.mses}) for a, b in zip(exact, rough, strict=True)]
        row = {
            "model": net.name,
            "images": len(exact),
            "same target": sum(a.target == b.target for a, b in zip(exact, rough, strict=True)),
            "same evidence": sum(s == u for s, u in zip(shared, union, strict=True)),
            "shared share of MSEs": sum(shared) / max(sum(union), 1),
        }
        for name in STATISTICS:
            a, b = exact.summary().statistics[name], rough.summary().statistics[name]
            row[name] = {"fp32": a.mean, "bf16": b.mean, "standard error": a.error}
        rows.append(row)
        print(json.dumps(row), flush=True)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1))
        torch.compiler.reset()


if __name__ == "__main__":
    main()
