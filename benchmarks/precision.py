"""Do searches in half precision find the evidence of fp32, before and after it is confirmed?

    python benchmarks/precision.py --images 250 --batch 1024 --out agreement

The same photographs are searched in fp32 (TF32 off), then by each of ``--runs``: a precision, and what of its result is
confirmed in fp32, ``none``, ``doubtful`` or ``all``. After each run its evidence is saved to a Parquet file in
``--out``, its figures are appended to ``rows.jsonl`` there, and ``table.md`` is written anew. Whether each set holds is
for ``verify_evidence.py`` to say, by those files. A search in fp32 takes longest: ``--reference`` compares with one
that such a run has saved, by its images.

    python benchmarks/precision.py --models vit --images 500 --reference agreement/vit-ieee-none.parquet
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import real_models
from suffice import Classifier, Images
from suffice.evidence import EvidenceSet, EvidenceStream, Settings
from suffice.evidence.files.provenance import search_provenance
from suffice.perturb import Runner

MODELS = {"resnet50": real_models.resnet50_v1, "vit": real_models.vit_tiny}
STATISTICS = ("mses", "mean_size", "distinct_80", "distinct_50")
EXACT = "ieee"
RUNS = "fp16:none,fp16:doubtful,bf16:none,bf16:doubtful,fp16:all"


def agreement(exact: EvidenceSet, other: EvidenceSet) -> dict[str, Any]:
    """How much of the evidence is the same, and how far means move, relative to fp32 and with their standard error.

    Where ``exact`` has fewer images, which must be the first of the others, only these are compared.
    """
    other = other[: len(exact)]
    if [e.image_id for e in exact] != [e.image_id for e in other]:
        raise ValueError("The evidence that is compared must be of the same images.")
    pairs = [({m.cells for m in a.mses}, {m.cells for m in b.mses}) for a, b in zip(exact, other, strict=True)]
    row: dict[str, Any] = {
        "images": len(other),
        "without evidence": sum(not e.mses for e in other),
        "same target": sum(a.target == b.target for a, b in zip(exact, other, strict=True)),
        "same MSEs": sum(a == b for a, b in pairs),
        "MSEs in common": sum(len(a & b) for a, b in pairs) / max(sum(len(a | b) for a, b in pairs), 1),
        "mended": sum(e.mended for e in other),
        "questions": float(np.mean([e.questions for e in other])),
        "for certificates": float(np.mean([e.spent.get("certifying", 0) for e in other])),
        "again in fp32": float(np.mean([e.spent.get("confirming", 0) for e in other])),
    }
    before, after = exact.to_arrow(), other.to_arrow()
    for name in STATISTICS:
        a, b = (np.array(table.column(name).to_pylist(), dtype=float) for table in (before, after))
        both = ~np.isnan(a) & ~np.isnan(b)  # an image without MSEs has no mean size
        change = (b - a)[both] / (a[both].mean() or float("nan"))
        error = change.std(ddof=1) / len(change) ** 0.5 if len(change) > 1 else float("nan")
        row[name] = {"mean": float(np.nanmean(b)), "change": float(change.mean()), "error": float(error)}
    return row


@dataclass
class Run:
    """A search of all photographs, its seconds, and those that went into confirming in fp32."""

    precision: str
    confirm: str
    found: EvidenceSet
    seconds: float
    confirming: float


def searched(net: Classifier, images: Images, settings: Settings, runners: dict[str, Runner], kind: str) -> Run:
    """Search all photographs by a ``"precision:confirmed"``, with the runner of that precision."""
    precision, confirm = kind.split(":")
    chosen, runner = settings.changed(confirm=confirm), runners[precision]
    # What is made once for all images, such as compiled code, is no cost of a search.
    list(EvidenceStream(net, images[:2], None, chosen.changed(max_size=2), runner))
    started = time.perf_counter()
    work = EvidenceStream(net, images, None, chosen, runner)
    evidence = sorted(work, key=lambda e: e.index)
    seconds = time.perf_counter() - started
    about = search_provenance(runner, chosen)
    found = EvidenceSet(evidence, net.name, net.family, work.skipped, work.counters, about)
    exact = work.exact_runner
    return Run(precision, confirm, found, seconds, 0.0 if exact is runner else exact.counters.seconds)


def table(rows: list[dict[str, Any]]) -> str:
    """All rows in Markdown; a change is relative to fp32, ± its standard error."""
    names = ["model", "precision", "confirmed", "images", "same target", "same MSEs", "MSEs in common", "mended"]
    names += [*STATISTICS, "questions", "for certificates", "again in fp32", "seconds", "of it confirming"]
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for row in rows:
        cells = [row["model"], "fp32" if row["precision"] == EXACT else row["precision"], row["confirmed"]]
        cells += [row["images"], row["same target"], row["same MSEs"], f"{row['MSEs in common']:.1%}", row["mended"]]
        for name in STATISTICS:
            s = row[name]
            moved = "" if row["precision"] == EXACT else f" ({s['change']:+.1%} ± {s['error']:.1%})"
            cells.append(f"{s['mean']:.2f}{moved}")
        cells += [f"{row[name]:,.0f}" for name in ("questions", "for certificates", "again in fp32")]
        cells.append(f"{row['seconds']:.1f}")
        cells.append(f"{row['confirming'] / row['seconds']:.1%}")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="vit,resnet50")
    parser.add_argument("--runs", default=RUNS, help=f"precision:confirmed, separated by commas; default {RUNS}")
    parser.add_argument("--images", type=int, default=250)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--grid", type=int, default=Settings().grid)
    parser.add_argument("--max-size", type=int, default=Settings().max_size)
    parser.add_argument("--expanded", type=int, help="MSEs whose sub-explanations are searched; default all")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--without-exact", action="store_true", help="compare with the first run, not with fp32")
    parser.add_argument("--reference", type=Path, help="compare with this saved search of the first of the images")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--assets", type=Path, default=real_models.ASSETS)
    parser.add_argument("--out", type=Path, default=Path("agreement"))
    options = parser.parse_args()

    real_models.ASSETS = options.assets
    options.out.mkdir(parents=True, exist_ok=True)
    settings = Settings(grid=options.grid, max_size=options.max_size, expanded_mses=options.expanded)
    lacks_exact = not (options.without_exact or options.reference)
    runs = [*([f"{EXACT}:none"] if lacks_exact else []), *filter(None, options.runs.split(","))]
    images = real_models.photographs()[: options.images]
    rows: list[dict[str, Any]] = []
    for key in options.models.split(","):
        net = MODELS[key](options.device)
        exact = EvidenceSet.load(options.reference) if options.reference else None
        # Runs of one precision share a runner, so that a model is compiled or converted once.
        precisions = dict.fromkeys(run.split(":")[0] for run in runs)
        # fp32 is bound by its products: compiling gains little there.
        runners = {
            p: Runner(net, batch_size=options.batch, precision=p, compile=options.compile and p != EXACT)
            for p in precisions
        }
        for kind in runs:
            run = searched(net, images, settings, runners, kind)
            exact = exact or run.found
            run.found.save(options.out / f"{key}-{run.precision}-{run.confirm}.parquet")
            row = {"model": net.name, "precision": run.precision, "confirmed": run.confirm}
            row |= {"seconds": run.seconds, "confirming": run.confirming}
            rows.append(row | agreement(exact, run.found))
            with (options.out / "rows.jsonl").open("a") as file:
                print(json.dumps(rows[-1]), file=file)
            (options.out / "table.md").write_text(table(rows) + "\n")
            print(f"{net.name} {kind}: {run.seconds:.1f} s", flush=True)
        torch.compiler.reset()
    print(table(rows))


if __name__ == "__main__":
    main()
