"""How large the report of a large study is, and how long it takes: a made-up study, written straight to its folder.

python benchmarks/report_size.py --models 20 --images 5000
python benchmarks/report_size.py --models 20 --images 5000 --keep FOLDER  # keeps the study and its report.html
python benchmarks/report_size.py --models 20 --images 5000 --open         # also the seconds until Chromium shows it

Predictions, evidence with pictures of 128 pixels, maps of three methods and two metrics. Numbers are drawn at random,
with differences between models; a picture is one of sixteen a block, since true ones would only fill the disk.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image

from suffice.attribution import Attribution
from suffice.evidence import Settings
from suffice.evidence.files.table import table_schema
from suffice.study import Store, Study, map_files
from suffice.study.asked import read_dict
from suffice.study.models import PlannedModel
from suffice.study.plan import Plan, Shard
from suffice.vision.provenance import as_json

FAMILIES = ("older-cnn", "newer-cnn", "convnext", "transformer", "distilled-transformer")
METHODS = ("grad-cam", "gradient", "rise")
GRID, CLASSES, BLOCK = 7, 1000, 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--keep", type=Path, default=None, help="folder for the study; default: a temporary one")
    parser.add_argument("--open", action="store_true", help="also open it in Chromium")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp())
    try:
        started = time.perf_counter()
        study = made_up_study(folder / "run", options.models, options.images)
        built = time.perf_counter() - started
        from suffice.report import make_report

        before, started = time.process_time(), time.perf_counter()
        report = make_report(study)
        found: dict[str, Any] = {
            "models": options.models,
            "images": options.images,
            "seconds to make up the study": round(built, 1),
            "seconds": round(time.perf_counter() - started, 1),
            "CPU seconds": round(time.process_time() - before, 1),
            "MB": round(report.save(folder / "report.html").stat().st_size / 1e6, 2),
            "figures": len(report.figures),
            "findings": len(report.page.findings),
            "images in the gallery": len(report.page.cases),
            "peak RSS in MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }
        if options.open:
            found |= opening(folder / "report.html")
        print(json.dumps(found, indent=1))
    finally:
        if options.keep is None:
            shutil.rmtree(folder)


def opening(page: Path) -> dict[str, float]:
    """Milliseconds until Chromium has read the page, and until it is loaded."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        opened.goto(page.resolve().as_uri())
        times = opened.evaluate("(({domInteractive, loadEventEnd}) => [domInteractive, loadEventEnd])"
                                "(performance.getEntriesByType('navigation')[0])")  # fmt: skip
    return {"ms until it can be used": round(times[0]), "ms until it is loaded": round(times[1])}


def made_up_study(folder: Path, models: int, images: int, *, block: int = BLOCK, seed: int = 0) -> Study:
    """Write a study of random numbers.

    Models differ: in each step through them minimal sufficient explanations (MSEs) are larger and fewer, and
    sub-explanations more. The method ``rise`` is truer than the others, which do not differ.
    """
    random = np.random.default_rng(seed)
    content = {
        "name": "made up",
        "images": "photographs",
        "models": [f"model-{n:02d}" for n in range(models)],
        "measure": {
            "said": {"kind": "predictions"},
            "evidence": {"kind": "evidence", "grid": GRID},
            "maps": {"kind": "attribution", "methods": list(METHODS)},
            "scores": {"kind": "metrics", "maps": "maps", "metrics": ["insertion", "deletion"]},
        },
        "run": {"maps": "fp16"},
    }
    planned = tuple(
        PlannedModel(name, name, name, family=FAMILIES[n % len(FAMILIES)], weights=f"{n:032x}", misfits={})
        for n, name in enumerate(content["models"])
    )
    names = tuple(f"photograph-{n:05d}.jpg" for n in range(images))
    plan = Plan(read_dict(content, "."), planned, names, block, {"suffice": "0", "torch": "0"})
    store = Store(folder)
    plan.save(store)
    classes = random.integers(0, CLASSES, images)
    for shard in plan.shards():
        _write(plan, store, shard, planned.index(plan.model(shard.model)), classes, random)
    return Study.open(folder)


def _write(
    plan: Plan, store: Store, shard: Shard, model: int, classes: np.ndarray, random: np.random.Generator
) -> None:
    rows = np.array(plan.rows(shard))
    count, kind = len(rows), plan.measurements[shard.measurement].kind
    right = random.random(count) < 0.95 - 0.01 * model
    targets = np.where(right, classes[rows], random.integers(0, CLASSES, count))
    facts = {"family": plan.models[model].family, "group": shard.model, "seed": None}
    facts |= plan.measurements[shard.measurement].facts
    columns: dict[str, Any] = {
        "image": [plan.names[i] for i in rows],
        "image_id": [f"{i:032x}" for i in rows],
        "index": rows,
        "target": targets,
        "label": [f"class {target}" for target in targets],
        "error": pa.nulls(count, pa.string()),
        **{name: pa.array([value] * count, pa.string()) for name, value in facts.items()},
        "confidence": random.beta(8, 2, count),
    }
    if kind == "predictions":
        columns |= {"truth": classes[rows], "correct": targets == classes[rows]}
    elif kind == "evidence":
        columns |= _evidence(count, model, random)
    elif kind == "metrics":
        true = 0.2 if shard.measurement.endswith("rise") else 0.0
        columns |= {"insertion": random.beta(5, 4, count) + true, "deletion": random.beta(2, 8, count) - true}
    else:
        values = torch.from_numpy(random.random((count, 14, 14)).astype(np.float32))
        maps = Attribution(
            values, torch.from_numpy(targets), torch.ones(count), {"method": shard.measurement}, columns["image"],
            columns["image_id"], columns["label"],
        )  # fmt: skip
        store.write(shard.maps, map_files.to_bytes(maps, half=True))
    spent = {"seconds": 0.02 * count, "forwards": 40 * count, "images": count}
    settings = asdict(Settings(grid=GRID)) if kind == "evidence" else {"made": "up"}
    more = {"suffice": as_json({"settings": settings}), "spent": as_json(spent), "makers": "[]"}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(more), buffer, compression="zstd")
    store.write(shard.table, buffer.getvalue())


def _evidence(count: int, model: int, random: np.random.Generator) -> dict[str, Any]:
    """Columns of evidence, others than those of all tables."""
    cells = GRID**2
    mses = 1 + random.poisson(8 / (1 + 0.1 * model), count)
    mses[random.random(count) < 0.02] = 0
    sizes = [1 + random.poisson(2 + 0.25 * model, n) for n in mses]
    own = [[random.choice(cells, size, replace=False).tolist() for size in each] for each in sizes]
    left = random.beta(8, 4, count) + 0.5
    below = random.poisson(np.exp(random.normal(2 + 0.1 * model, 0.5, count)))
    columns: dict[str, Any] = {
        "mses": mses,
        "sizes": pa.array([each.tolist() for each in sizes], pa.list_(pa.int32())),
        "mean_size": pa.array([each.mean() if len(each) else None for each in sizes], pa.float64()),
        "smallest": pa.array([each.min() if len(each) else None for each in sizes], pa.int64()),
        "coverage": [len({c for mse in each for c in mse}) / cells for each in own],
        "diverse_0": np.minimum(mses, 1 + random.poisson(1, count)),
        "mse_cells": pa.array([[sorted(mse) for mse in each] for each in own], pa.list_(pa.list_(pa.int32()))),
        "mse_ratios": pa.array([[0.93] * len(each) for each in own], pa.list_(pa.float64())),
        **{f"distinct_{level}": below * (100 - level) // 20 for level in (90, 80, 70, 60, 50)},
        "depth_ratio_sums": pa.array([[n, n * falls, n * falls / 2] for n, falls in zip(mses, left, strict=True)]),
        "depth_counts": pa.array([[int(n), 2 * int(n), 2 * int(n)] for n in mses], pa.list_(pa.int64())),
        "stopped": np.where(mses > 0, "beam empty", "no confidence"),
        "why": ["made up"] * count,
        "questions": random.integers(500, 4000, count),
        "picture": pa.array(_pictures(random, count), pa.binary()),
    }
    each = {"mse_certified": True, "mse_margins": 0.03, "mse_found": "beam", "mse_asked": 100}
    each |= {"mse_second_ratios": None, "mse_under": None, "mse_stays": None}
    for field in table_schema():
        if field.name in each:
            columns[field.name] = pa.array([[each[field.name]] * n for n in mses], field.type)
        elif field.name not in columns and field.name not in _WRITTEN:
            columns[field.name] = _plain(field.type, field.name, count)
    return columns


_WRITTEN = ("model", "family", "image", "image_id", "index", "target", "label", "confidence")
_NONE = ("contrastive", "necessary", "stability", "exhaustive_mses")


def _plain(kind: pa.DataType, name: str, count: int) -> pa.Array:
    """A column that says nothing."""
    if name in _NONE:
        return pa.nulls(count, kind)
    return pa.array([[] if pa.types.is_map(kind) else kind.to_pandas_dtype()(0)] * count, kind)


def _pictures(random: np.random.Generator, count: int) -> list[bytes]:
    """Pictures about as hard to compress as photographs: clouds of every size, and some noise."""
    made = []
    for _ in range(min(count, 16)):
        pixels = np.zeros((128, 128, 3))
        for side in (2, 4, 8, 16, 32, 64):
            cloud = Image.fromarray(random.integers(0, 255, (side, side, 3), dtype=np.uint8))
            pixels += np.asarray(cloud.resize((128, 128), Image.Resampling.BICUBIC)) / side
        pixels = pixels / pixels.max() * 235 + random.normal(0, 5, pixels.shape)
        buffer = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(buffer, "PNG")
        made.append(buffer.getvalue())
    return [made[n % len(made)] for n in range(count)]


if __name__ == "__main__":
    main()
