"""Train the explainers that studies/eea-*.toml score: other weights of masks, other numbers of images, other trunks.

python benchmarks/explainer_variations.py zoo/resnet zoo/deit --out explainers

For each network:

* ``weights``: λ = 0 (no mask loss), 1, 5 and 20: NETWORK-weight-LAMBDA.safetensors;
* ``images``: 60, 200, 600 and 2,000 training scenes (a tenth of which is held out), as many steps for each:
  NETWORK-images-COUNT.safetensors;
* ``trunks``: the other one of the networks named explains it: NETWORK-by-OTHER.safetensors, as suffice train explainer
  --explainer calls it.

What each ended with is a line of variations.jsonl.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import suffice
from suffice.attribution.learned import (
    ExplainerImages,
    ExplainerRecipe,
    open_explainer_images,
    save_explainer,
    train_explainer,
)
from suffice.perturb import Runner
from suffice.vision import Classifier

WEIGHTS = (0, 1, 5, 20)
COUNTS = (60, 200, 600, 2000)
USUAL = 600


def first(images: ExplainerImages, count: int) -> ExplainerImages:
    """The first of the images."""
    kept = {name: getattr(images, name)[:count] for name in ("pixels", "targets", "ids", "held_out")}
    return replace(images, name=f"scenes:train[:{count}]", **kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--vary", nargs="+", default=["weights", "images", "trunks"])
    parser.add_argument("--weights", nargs="+", type=float, default=WEIGHTS)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS)
    parser.add_argument("--trunks", nargs="+", default=["zoo/resnet", "zoo/deit"])
    parser.add_argument("--usual", type=int, default=USUAL, help="images where their number does not vary")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, default=Path("explainers"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    for model in options.models:
        net = suffice.load(model, device=options.device)
        most = max(options.counts) if "images" in options.vary else options.usual
        images = open_explainer_images(Runner(net), f"scenes:train[:{most}]")
        recipe = ExplainerRecipe(steps=options.steps, batch=options.batch)

        def train(
            name: str, count: int, recipe: ExplainerRecipe, net=net, images=images, trunk: Classifier | None = None
        ) -> None:
            trained = train_explainer(net, first(images, count), recipe, trunk=trunk)
            file = options.out / f"{net.name.replace('/', '-')}-{name}.safetensors"
            save_explainer(trained, file)
            last = trained.history[-1]
            told = {
                "file": file.name, "weight": recipe.mask_weight, "images": len(trained.ids), "loss": last.validation,
                "confidence": last.confidence, "kept": last.kept, "seconds": trained.seconds,
            }  # fmt: skip
            print(json.dumps(told), flush=True)
            with (options.out / "variations.jsonl").open("a") as table:
                table.write(json.dumps(told) + "\n")

        if "trunks" in options.vary:
            for other in (name for name in options.trunks if name != model):
                trunk = suffice.load(other, device=options.device)
                train(f"by-{other.replace('/', '-')}", options.usual, recipe, trunk=trunk)
        if "weights" in options.vary:
            for weight in options.weights:
                train(f"weight-{weight:g}", options.usual, replace(recipe, mask_weight=weight))
        if "images" in options.vary:
            for count in options.counts:
                train(f"images-{count}", count, recipe)


if __name__ == "__main__":
    main()
