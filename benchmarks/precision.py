"""How far does bf16 move the evidence? The same photographs in fp32, bf16 and fp16.

python benchmarks/precision.py --images 112 --batch 512
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from benchmarks.real_models import photographs, resnet50_v1, vit_tiny
from suffice import find_evidence
from suffice.evidence import EvidenceSet

STATISTICS = ("mses", "mean_size", "distinct_80", "distinct_70", "distinct_60", "distinct_50")


def compared(exact: EvidenceSet, rough: EvidenceSet) -> dict:
    """How much of the evidence is the same, and how far the statistics move."""
    pairs = [({m.cells for m in a.mses}, {m.cells for m in b.mses}) for a, b in zip(exact, rough, strict=True)]
    row = {
        "images": len(exact),
        "same target": sum(a.target == b.target for a, b in zip(exact, rough, strict=True)),
        "same evidence": sum(a == b for a, b in pairs),
        "shared share of MSEs": sum(len(a & b) for a, b in pairs) / max(sum(len(a | b) for a, b in pairs), 1),
    }
    for name in STATISTICS:
        a, b = (np.array(e.to_arrow().column(name).to_pylist(), dtype=float) for e in (exact, rough))
        change = (b - a)[~np.isnan(b - a)]
        row[name] = {
            "fp32": float(np.nanmean(a)), "mean": float(np.nanmean(b)), "change": float(change.mean()),
            "error of the change": float(change.std(ddof=1) / len(change) ** 0.5),
        }  # fmt: skip
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="resnet50,vit")
    parser.add_argument("--images", type=int, default=112)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--max-size", type=int, default=18)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    images = photographs()[: options.images]
    rows = []
    models = {"resnet50": resnet50_v1, "vit": vit_tiny}
    for key in options.models.split(","):
        net = models[key](options.device)

        def found(precision: str) -> EvidenceSet:
            settings = {"batch_size": options.batch, "compile": options.compile, "max_size": options.max_size}
            return find_evidence(net, images, precision=precision, **settings)  # noqa: B023

        exact = found("fp32")
        for precision in ("fp16", "bf16"):
            rows.append({"model": net.name, "precision": precision, **compared(exact, found(precision))})
            print(json.dumps(rows[-1]), flush=True)
            if options.out:
                options.out.write_text(json.dumps(rows, indent=1))
        torch.compiler.reset()


if __name__ == "__main__":
    main()
