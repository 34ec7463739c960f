"""Train learned Shapley values of zoo/deit or ViT-Ti for so many seconds.

python benchmarks/train_shapley.py zoo/deit --grid 7 --seconds 100 --device cuda --out explainers
python benchmarks/train_shapley.py vit-tiny --grid 7 --lr 1e-4 --alters --more PHOTOS --device cuda --out explainers
python benchmarks/train_shapley.py vit-tiny-imagenette --grid 7 --lr 3e-4 --sets 4 --precision bf16 --out explainers

A few steps are timed first, and as many are done as fit; --steps says how many instead. Scenes are rendered where the
model is, many thousands in a second or two. ViT-Ti has the photographs that studies/real-eea.toml does not ask about
(benchmarks/real_models.py says where they are), and with --more others that you have; what looks like one of those that
are evaluated is left out. ViT-Ti that knows the ten classes of Imagenette only, as the original was trained, has its
training photographs. Writes OUT/MODEL-shapley-GRID.safetensors and the rows of its training as .jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path

import torch

import suffice
from benchmarks.real_models import imagenette, photographs, vit_tiny, vit_tiny_imagenette
from suffice.attribution.learned import (
    ExplainerImages,
    ShapleyProgress,
    ShapleyRecipe,
    open_explainer_images,
    save_shapley,
    train_shapley,
)
from suffice.attribution.learned.images import HELD_OUT, short_id
from suffice.attribution.learned.shapley_training import LOOK
from suffice.perturb import Runner
from suffice.vision.images.arrays import fingerprint
from suffice.zoo.scenes import render_pixels
from suffice.zoo.scenes.dataset import to_bytes

TIMED = 40  # steps
CHUNK = 2048  # scenes that are rendered at once


def scenes(net: suffice.Classifier, count: int) -> ExplainerImages:
    """The first training scenes, rendered on the model's device, where they stay."""
    parts = [
        to_bytes(render_pixels(torch.arange(first, min(first + CHUNK, count), device=net.device), 0, net.device)[0])
        for first in range(0, count, CHUNK)
    ]
    pixels = torch.cat(parts)
    ids = torch.tensor([short_id(fingerprint(one)) for one in pixels.cpu()], dtype=torch.int64)
    held_out = torch.arange(count) % HELD_OUT == 0
    unused = torch.zeros(count, dtype=torch.int64)  # values are of all classes
    return ExplainerImages(pixels, unused, ids, held_out, f"scenes:train[:{count}]")


def photographs_for(net: suffice.Classifier, more: list[str], count: int | None) -> ExplainerImages:
    """Every second photograph and more of them, without those that look like one that is evaluated."""
    everything = photographs()
    runner, never = Runner(net), everything[::2]
    own = open_explainer_images(runner, everything[1::2][:count], never=never)
    if not more:
        return own
    others = open_explainer_images(runner, more[0] if len(more) == 1 else more, never=everything)
    known = thumbnails(net.prepare(never).cpu())
    seen = thumbnails(others.pixels.float() / 255)
    new = torch.cat([(known @ part.T).amax(dim=0) < 0.95 for part in seen.split(512)])
    print(json.dumps({"more": len(new), "like one that is evaluated": int((~new).sum())}), flush=True)
    # The look on the way is at photographs like those that are evaluated; the others are all for training.
    joined = zip(
        (own.pixels, own.targets, own.ids, own.held_out),
        (others.pixels[new], others.targets[new], others.ids[new], torch.zeros(int(new.sum()), dtype=torch.bool)),
        strict=True,
    )
    return ExplainerImages(*(torch.cat(pair) for pair in joined), f"{own.name} and {len(new)} others")


def thumbnails(pixels: torch.Tensor) -> torch.Tensor:
    """Small gray versions of images, of mean 0 and length 1, [N, 256]: their products are correlations."""
    small = torch.nn.functional.adaptive_avg_pool2d(pixels.mean(dim=1), 16).flatten(1)
    return torch.nn.functional.normalize(small - small.mean(dim=1, keepdim=True), dim=1)


def steps_within(
    seconds: float, net: suffice.Classifier, images: ExplainerImages, recipe: ShapleyRecipe, how: dict
) -> int:
    """How many steps of the explainer take so long, from some that are timed."""
    ticks: list[float] = []

    def tick(row: ShapleyProgress) -> None:
        if row.part == "explainer":
            ticks.append(time.perf_counter())

    train_shapley(net, images, replace(recipe, surrogate_steps=0, steps=TIMED), on_progress=tick, **how)
    # Rows are TIMED / 10 steps and a look each, which costs as much as a step with so many images, or less.
    per_row = TIMED // 10 + min(LOOK, len(images.validation)) / recipe.batch
    each = (ticks[-1] - ticks[4]) / (len(ticks) - 5) / per_row
    return max(20, int(seconds / each))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["zoo/deit", "zoo/resnet", "vit-tiny", "vit-tiny-imagenette"])
    parser.add_argument("--images", type=int, help="default: 20,000 scenes, all photographs")
    parser.add_argument("--more", nargs="+", default=[], help="further photographs")
    parser.add_argument("--grid", type=int, help="rows and columns of cells; default: those of the last layer")
    parser.add_argument("--seconds", type=float, default=100, help="for the explainer")
    parser.add_argument("--steps", type=int, help="instead of --seconds")
    parser.add_argument("--surrogate-steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--sets", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--surrogate-lr", type=float, default=1e-4)
    parser.add_argument("--alters", action="store_true")
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("explainers"))
    options = parser.parse_args()

    if options.model == "vit-tiny":
        net = vit_tiny(options.device)
        images = photographs_for(net, options.more, options.images)
    elif options.model == "vit-tiny-imagenette":
        net = vit_tiny_imagenette(options.device)
        runner = Runner(net, precision=options.precision)
        training = imagenette("train")
        if options.images:  # they lie sorted by class
            training = training[:: max(1, len(training) // options.images)][: options.images]
        images = open_explainer_images(runner, training, never=imagenette())
    else:
        net = suffice.load(options.model, device=options.device)
        images = scenes(net, options.images or 20_000)
    recipe = ShapleyRecipe(
        surrogate_steps=options.surrogate_steps, batch=options.batch, sets=options.sets, lr=options.lr,
        surrogate_lr=options.surrogate_lr, grid=options.grid, alters=options.alters,
    )  # fmt: skip
    how = {"precision": options.precision}
    steps = options.steps or steps_within(options.seconds, net, images, recipe, how)
    cells = f"-{options.grid}" if options.grid else ""
    file = options.out / f"{options.model.replace('/', '-')}-shapley{cells}.safetensors"
    rows = file.with_suffix(".jsonl")
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with rows.open("w") as table:

        def tell(row: ShapleyProgress) -> None:
            line = json.dumps({**asdict(row), "seconds": round(time.perf_counter() - began, 1)})
            print(file.stem, line, flush=True)
            table.write(line + "\n")
            table.flush()

        learned = train_shapley(net, images, replace(recipe, steps=steps), on_progress=tell, **how)
    save_shapley(learned, file)
    told = {"model": net.name, "images": len(learned.ids), "seconds": time.perf_counter() - began}
    print(json.dumps({**told, "recipe": asdict(learned.recipe), "validation": dict(learned.validation)}), flush=True)


if __name__ == "__main__":
    main()
