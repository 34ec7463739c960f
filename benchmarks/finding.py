"""Does batch normalization make networks disjunctive? The test, of a study of trained networks, several seeds each.

WEIGHTS=$PWD/weights suffice study run studies/seeds-scenes.toml --precision fp16
python benchmarks/finding.py runs/seeds-scenes
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import stats

from suffice import Study
from suffice.compare import paired_ratio
from suffice.zoo.training.weights import read_facts

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


def read(study: Study) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """Name → seed → column → one number an image, in the order of images; accuracy is that of the training."""
    table = study.table("evidence")
    if table["error"].null_count < table.num_rows:
        raise SystemExit("Some images have an error; see 'error' in the table of the study.")
    found: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for model in study.plan.models:
        rows = [label == model.label for label in table["model"].to_pylist()]
        own = table.filter(rows)
        columns = {name: np.array(own[name].to_pylist(), dtype=float) for name in ("mses", "mean_size", *COUNTS)}
        accuracy = read_facts(study.asked.base / str(model.checkpoint))["accuracy"]
        found.setdefault(model.group, {})[str(model.seed)] = {**columns, "accuracy": np.array([accuracy])}
    return found


def compare(study: Study) -> None:
    """Print the table of all networks, and the tests."""
    found = read(study)
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
    parser.add_argument("study", help="folder of a study that was run")
    compare(Study.open(parser.parse_args().study))


if __name__ == "__main__":
    main()
