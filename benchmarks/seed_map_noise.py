"""What the noise of seed maps changes in the rows of a preset for ResNet-50 (docs/findings.md), on equal photographs.

python benchmarks/seed_map_noise.py --preset preprint --images 24 --precision bf16

Each photograph is searched with the published noise of I-GOS and with what it was when the presets were chosen: 0.2 in
the units of this network, whose pixels are not divided by a standard deviation. Differences are paired; the standard
error of the ratio of means is that of a bootstrap over photographs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.real_models import photographs, resnet50_v1
from suffice import find_evidence
from suffice.attribution import explain
from suffice.evidence import Evidence, Settings, stream
from suffice.evidence.settings import preset
from suffice.perturb import Batch

NOISES = {"published": 0.2, "when chosen": 0.2 / 255 / 0.226}  # in ImageNet's units, of a mean deviation of 0.226
LEVELS = (0.8, 0.7, 0.6, 0.5)


def numbers_of(evidence: Evidence, counting: Any) -> list[float]:
    """MSEs, their mean size, and counts at each level, of a photograph; no size where there is no MSE."""
    counts = evidence.subexplanations(counting)
    size = float(np.mean([len(mse) for mse in evidence.mses])) if evidence.mses else float("nan")
    return [float(len(evidence.mses)), size, *(float(counts[level]) for level in LEVELS)]


def searched(net: Any, images: Any, settings: Settings, noise: float, **how: Any) -> np.ndarray:
    """Numbers of all photographs, [photographs, numbers], with so much noise in seed maps."""

    def seeded(runner: Any, pixels: torch.Tensor, targets: torch.Tensor, chosen: Settings, ids: Any) -> torch.Tensor:
        batch = Batch(runner.net, pixels.to(runner.device), targets, ids, chosen.seed, runner.variant("gradients"))
        return explain(batch, "i-gos", size=chosen.grid, baseline=chosen.baseline, iterations=2, noise=noise)

    with mock.patch.object(stream, "seed_map", seeded):
        found = find_evidence(net, images, settings=settings, progress=True, **how)
    return np.array([numbers_of(evidence, settings.counting) for evidence in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("cvpr2024", "preprint"), default="preprint")
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="of the numbers of every photograph, as JSON")
    options = parser.parse_args()

    images, net = photographs(), resnet50_v1(options.device)
    images = images[:: len(images) // options.images][: options.images]
    settings = preset(options.preset)
    how = {"precision": options.precision, "batch_size": options.batch}
    found = {name: searched(net, images, settings, noise, **how) for name, noise in NOISES.items()}
    print("| noise of seed maps | MSEs | size | ≥ 80 % | ≥ 70 % | ≥ 60 % | ≥ 50 % |\n|---|---|---|---|---|---|---|")
    for name, numbers in found.items():
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in np.nanmean(numbers, axis=0)) + " |")
    now, before = found.values()
    drawn = np.random.default_rng(0).integers(len(now), size=(2000, len(now)))
    ratios = np.nanmean(now[drawn], axis=1) / np.nanmean(before[drawn], axis=1)
    ratio = np.nanmean(now, axis=0) / np.nanmean(before, axis=0)
    cells = (f"{value:.2f} ± {error:.2f}" for value, error in zip(ratio, ratios.std(axis=0), strict=True))
    print("| published / when chosen | " + " | ".join(cells) + " |")
    if options.out:
        options.out.write_text(json.dumps({name: numbers.tolist() for name, numbers in found.items()}))


if __name__ == "__main__":
    main()
