"""How well learned Shapley values agree with those that are estimated by asking about very many sets of cells.

python benchmarks/shapley_agreement.py explainers/zoo-resnet-shapley.safetensors --out DIR

Explainers of the zoo are asked about scenes, those of ViT-Ti about photographs that they were not trained on
(benchmarks/real_models.py says where they are). Both are values of the surrogate's score of the class that the model
predicts, for the cells of the explainer. Estimates by ``kernel-shap`` have an error of their own: the agreement of two
of them with other sets says how large it is. Rank correlation (Spearman) over cells, mean and standard error over
images.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor

import suffice
from benchmarks.real_models import imagenette, photographs, vit_tiny, vit_tiny_imagenette
from suffice.attribution.learned import load_shapley
from suffice.metrics.sanity.similarity import SIMILARITIES


def summary(values: Tensor) -> list[float]:
    """Mean and standard error."""
    return [float(values.mean()), float(values.std() / len(values) ** 0.5)]


def explained(file: Path, device: str | None, count: int) -> tuple[suffice.Classifier, suffice.Images]:
    """The model that an explainer is of, and so many images to ask about."""
    name = file.stem.partition("-shapley")[0]
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "vit-tiny":
        return vit_tiny(device), photographs()[: 2 * count : 2]
    if name == "vit-tiny-imagenette":
        return vit_tiny_imagenette(device), imagenette()[:: len(imagenette()) // count][:count]
    return suffice.load(name.replace("-", "/", 1), device=device), suffice.open_images(f"scenes:test[:{count}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--samples", type=int, default=16384)
    parser.add_argument("--precision", default="fp32", help="of the estimates")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, default=Path("."))
    options = parser.parse_args()
    rows = []
    for file in options.files:
        net, images = explained(file, options.device, options.images)
        learned = load_shapley(file, net)
        pixels = net.prepare(images)
        targets = net(pixels).argmax(dim=1)
        made = suffice.attribute(net, pixels, "vit-shapley", targets, explainer=learned).maps
        grid, baseline = learned.explainer.grid[0], learned.recipe.baseline
        how = {"grid": grid, "samples": options.samples, "baseline": baseline, "precision": options.precision}
        first, second = (
            suffice.attribute(learned.surrogate, pixels, "kernel-shap", targets, seed=seed, **how).maps
            for seed in (0, 1)
        )
        own = suffice.attribute(net, pixels, "kernel-shap", targets, **how).maps
        spearman = SIMILARITIES["spearman"]
        rows.append(
            {
                "model": net.name,
                "cells": grid * grid,
                "images": len(pixels),
                "samples": options.samples,
                "validation": dict(learned.validation),
                "with the surrogate's": summary(spearman(made, first)),
                "with the model's own": summary(spearman(made, own)),
                "two estimates": summary(spearman(first, second)),
                "learned, of other images": summary(spearman(made, made.roll(1, 0))),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "shapley-agreement.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with torch.no_grad():
        main()
