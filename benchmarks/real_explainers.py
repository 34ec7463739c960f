"""Train explainers of ViT-Ti and the original ResNet-50 on photographs that studies/real-eea.toml does not ask about.

python benchmarks/real_explainers.py --device cuda --out explainers

The study scores every second of a thousand photographs, one a class (benchmarks/real_models.py says where they are);
training sees the others, less a tenth that is held out. They are few, so they are altered each time. For each network
two losses of masks, each in a folder: ``bce`` with λ = 5, and what the published code computes, ``bce-of-logit`` with
its λ = 50. An explainer that has blackened out its images is trained again at a third of the rate. What each ended with
is a line of real.jsonl. Explainers that are there already stay; with --only and --losses several processes share the
work.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from benchmarks.real_models import photographs, resnet50_v1, vit_tiny
from suffice.attribution.learned import ExplainerRecipe, open_explainer_images, save_explainer, train_explainer
from suffice.perturb import Runner

NETWORKS = {"vit-tiny": vit_tiny, "resnet50-v1": resnet50_v1}
RATES = {"vit-tiny": 2e-4, "resnet50-v1": 1e-4}  # with the usual 1e-3, one step blackened all images of the latter
LOSSES = {"bce": 5.0, "bce-of-logit": 50.0}
BLACK, TRIES = 0.005, 3  # less than this is kept of an image; how often it is tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=list(LOSSES))
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("explainers"))
    options = parser.parse_args()
    everything = photographs()
    for name in options.only:
        files = {loss: options.out / loss / f"{name}.safetensors" for loss in options.losses}
        missing = {loss: file for loss, file in files.items() if not file.exists()}
        if not missing:
            continue
        net = NETWORKS[name](options.device)
        images = open_explainer_images(Runner(net), everything[1::2][: options.images], never=everything[::2])
        for loss, file in missing.items():
            recipe = ExplainerRecipe(
                steps=options.steps,
                batch=options.batch,
                mask_weight=LOSSES[loss],
                mask_loss=loss,
                lr=RATES[name],
                alters=True,
            )
            for _ in range(TRIES):
                trained = train_explainer(net, images, recipe, precision=options.precision)
                last = trained.history[-1]
                told = {
                    "network": name, "mask loss": loss, "lr": recipe.lr, "images": len(trained.ids),
                    "loss": last.validation, "confidence": last.confidence, "kept": last.kept,
                    "trained with": last.loss, "seconds": trained.seconds,
                }  # fmt: skip
                print(json.dumps(told), flush=True)
                options.out.mkdir(parents=True, exist_ok=True)
                with (options.out / "real.jsonl").open("a") as table:
                    table.write(json.dumps(told) + "\n")
                if last.kept is not None and last.kept > BLACK:
                    break
                recipe = replace(recipe, lr=recipe.lr / 3)
            save_explainer(trained, file)


if __name__ == "__main__":
    main()
