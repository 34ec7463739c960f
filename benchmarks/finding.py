"""Does batch normalization make networks disjunctive? Evidence of trained networks, several seeds each, and the test.

Search (once for each file of weights; what is there already is skipped):

    python benchmarks/finding.py search --weights weights --out evidence --images 512 --batch 4096
    python benchmarks/finding.py search --weights tiny --validation val.npz --out evidence-tiny --images 512

Compare:

    python benchmarks/finding.py compare --out evidence
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from scipy import stats

from suffice import Classifier, find_evidence, open_images
from suffice.compare import paired_ratio
from suffice.evidence import Settings
from suffice.perturb import Runner
from suffice.zoo.training import load_trained, open_data

COUNTS = ("distinct_80", "distinct_70", "distinct_60", "distinct_50")
# (question, changed, reference): does the first have fewer sub-explanations than the second?
QUESTIONS = (
    ("BN instead of LN, ConvNeXt", "convnext-3-bn", "convnext-3"),
    ("GN instead of LN, ConvNeXt", "convnext-3-gn", "convnext-3"),
    ("BN instead of LN, Swin", "swin-4-bn", "swin-4"),
    ("GN instead of LN, Swin", "swin-4-gn", "swin-4"),
    ("kernel 3 instead of 7, ConvNeXt", "convnext-3", "convnext"),
    ("window 4 instead of 7, Swin", "swin-4", "swin"),
    ("distilled, DeiT", "deit-distilled", "deit"),
    ("distilled, PiT", "pit-distilled", "pit"),
    ("modern augmentation, ResNet", "resnet-aug", "resnet"),
)


def search(options: argparse.Namespace) -> None:
    """Search the same images with every network."""
    if options.validation:
        data = open_data(options.validation, validation=options.validation, size=options.size)
        step = max(1, len(data.validation.labels) // options.images)
        images = open_images(data.validation.pixels[::step][: options.images])
    else:
        images = open_images(f"scenes:test[:{options.images}]")
    options.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    files = sorted(options.weights.glob("*.safetensors"))
    for file in files[options.shard :: options.shards]:
        target = options.out / f"{file.stem}.parquet"
        if target.exists():
            continue
        if time.perf_counter() - started > 60 * options.max_minutes:
            print(f"{file.stem}: not searched, the time is over", flush=True)
            continue
        module, facts = load_trained(file, options.device)
        height, width = facts["size"]
        net = Classifier(module, size=(height, width), mean=facts["mean"], std=facts["std"], name=file.stem)
        runner = Runner(net, batch_size=options.batch, precision=options.precision)
        settings = Settings(max_size=options.max_size)
        begun = time.perf_counter()
        found = find_evidence(net, images, settings=settings, runner=runner, images_at_once=options.at_once)
        pq.write_table(found.to_arrow(), target.with_suffix(".part"))
        target.with_suffix(".part").rename(target)
        (options.out / f"{file.stem}.json").write_text(json.dumps({**facts, "file": file.name}))
        print(f"{file.stem}: {time.perf_counter() - begun:.0f} s, accuracy {facts['accuracy']:.3f}", flush=True)


def read(folder: Path) -> dict[str, dict[int, dict[str, np.ndarray]]]:
    """Name → seed → column → one number an image, in the order of images."""
    found: dict[str, dict[int, dict[str, np.ndarray]]] = {}
    for file in sorted(folder.glob("*.parquet")):
        facts = json.loads(file.with_suffix(".json").read_text())
        table = pq.read_table(file)
        order = np.argsort(table.column("index").to_numpy())
        columns = {
            name: np.array(table.column(name).to_pylist(), dtype=float)[order]
            for name in ("mses", "mean_size", *COUNTS)
        }
        found.setdefault(facts["name"], {})[facts["seed"]] = {**columns, "accuracy": np.array([facts["accuracy"]])}
    return found


def compare(options: argparse.Namespace) -> None:
    """Print the table of all networks, and the tests."""
    found = read(options.out)
    columns = ("mses", "mean_size", *COUNTS)
    print("| network | seeds | accuracy | MSEs | size | " + " | ".join(f"≥ {c[-2:]} %" for c in COUNTS) + " |")
    print("|" + "---|" * (5 + len(COUNTS)))
    for name, seeds in found.items():
        cells = []
        for column in columns:
            by_seed = np.array([np.nanmean(run[column]) for run in seeds.values()])
            runs = np.array([run[column] for run in seeds.values()])
            over_images = np.nanmean(runs[:, ~np.isnan(runs).all(axis=0)], axis=0)  # without an MSE there is no size
            image_error = over_images.std(ddof=1) / len(over_images) ** 0.5
            seed_error = by_seed.std(ddof=1) / len(by_seed) ** 0.5 if len(by_seed) > 1 else float("nan")
            cells.append(f"{by_seed.mean():.2f} ± {image_error:.2f} ({seed_error:.2f})")
        accuracy = np.mean([run["accuracy"][0] for run in seeds.values()])
        print(f"| {name} | {len(seeds)} | {accuracy:.1%} | " + " | ".join(cells) + " |")

    print("\nratio of counts over images (paired_ratio, seeds averaged), and Welch's t-test over seeds:")
    print("| question | " + " | ".join(f"≥ {c[-2:]} %" for c in COUNTS) + " |")
    print("|" + "---|" * (1 + len(COUNTS)))
    for question, changed, reference in QUESTIONS:
        if changed not in found or reference not in found:
            continue
        cells = []
        for column in COUNTS:
            # Geometric means over seeds, image by image; and means over images, seed by seed.
            logs = [np.array([np.log1p(run[column]) for run in found[name].values()]) for name in (changed, reference)]
            over_images = paired_ratio(*(np.expm1(log.mean(axis=0)) for log in logs))
            seeds = [log.mean(axis=1) for log in logs]
            over_seeds = stats.ttest_ind(*seeds, equal_var=False).pvalue if min(map(len, seeds)) > 1 else float("nan")
            cells.append(
                f"{over_images.ratio:.2f} [{over_images.low:.2f}, {over_images.high:.2f}] "
                f"(p {over_images.p:.1g}; seeds p {over_seeds:.2g})"
            )
        print(f"| {question} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("search", "compare"))
    parser.add_argument("--weights", type=Path, default=Path("weights"))
    parser.add_argument("--out", type=Path, default=Path("evidence"))
    parser.add_argument("--validation", default=None, help=".npz with photographs; default: scenes")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--at-once", type=int, default=256)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--max-size", type=int, default=18)
    parser.add_argument("--max-minutes", type=float, default=1e9)
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    {"search": search, "compare": compare}[options.what](options)


if __name__ == "__main__":
    main()
