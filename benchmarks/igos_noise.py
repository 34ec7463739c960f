"""Whether it matters how often iGOS++ draws noise: once for a line search, as here, or anew for every trial.

The published loop draws anew in every call, so that a step is compared with a loss under other noise and is taken or
refused partly by luck. Both are run with two seeds each, and maps are compared between rules and between seeds.

The optimization of some images ends in one of two quite different masks, and the seed decides in which. Means of
distances over a few images therefore count such images more than anything else: look at medians and errors, and take
many images before saying that rules differ by less or more than seeds.

python benchmarks/igos_noise.py --model zoo/resnet,zoo/deit --images 24
"""

from __future__ import annotations

import argparse
import json
from itertools import product

import torch
from torch import Tensor

import suffice
from benchmarks.igos_speed import OneAtATime
from suffice.metrics import Scores
from suffice.perturb import Counters, Runner

SEEDS = (0, 1)


def once_a_search(
    net: suffice.Classifier, images: suffice.Images, seed: int, iterations: int, counters: Counters
) -> Tensor:
    """Ours, [N, 28, 28]."""
    runner = Runner(net)
    options = {"btv": "asymmetric", "iterations": iterations}
    maps = suffice.attribute(net, images, "igos++", seed=seed, runner=runner, **options).maps
    counters.forwards += runner.counters.forwards
    return maps


def once_a_trial(
    net: suffice.Classifier, images: suffice.Images, seed: int, iterations: int, counters: Counters
) -> Tensor:
    """As published, [N, 28, 28]."""
    torch.manual_seed(seed)
    pixels = net.prepare(images)
    return torch.cat([OneAtATime(net, one, counters, steps=20, size=28).run(iterations) for one in pixels.split(1)])


RULES = {"once a search": once_a_search, "once a trial": once_a_trial}


def distances(a: Tensor, b: Tensor) -> Tensor:
    """Distance of each map [N, h, w] of one set from that of the other, relative to their mean size; [N]."""
    size = (a.flatten(1).norm(dim=1) + b.flatten(1).norm(dim=1)) / 2
    return (a - b).flatten(1).norm(dim=1) / size


def summary(values: Tensor) -> str:
    """Mean, standard error and median of values [N]."""
    return f"{values.mean():.4f} ± {values.std() / len(values) ** 0.5:.4f}, median {values.median():.4f}"


def score(net: suffice.Classifier, images: suffice.Images, maps: Tensor) -> Scores:
    return suffice.measure(net, images, maps, ["insertion", "deletion"], "igos")


def compare(name: str, count: int, iterations: int, device: str) -> dict[str, object]:
    """What both rules give on some test scenes."""
    net = suffice.load(name, device=device)
    net.module.eval().requires_grad_(False)
    images = suffice.open_images(f"scenes:test[:{count}]")
    maps: dict[tuple[str, int], Tensor] = {}
    found: dict[str, object] = {"model": name, "images": count}
    means = {}
    for rule, make in RULES.items():
        counters = Counters()
        for seed in SEEDS:
            maps[rule, seed] = make(net, images, seed, iterations, counters).cpu()
        scores = [score(net, images, maps[rule, seed]) for seed in SEEDS]
        means[rule] = {m: sum(s[m].values for s in scores) / len(SEEDS) for m in ("insertion", "deletion")}
        found[rule] = {
            **{metric: float(values.mean()) for metric, values in means[rule].items()},
            "inputs_per_image": counters.forwards / count / len(SEEDS),
            "distance_of_seeds": summary(distances(maps[rule, 0], maps[rule, 1])),
        }
    search, trial = RULES
    crossed = [distances(maps[search, a], maps[trial, b]) for a, b in product(SEEDS, SEEDS)]
    found["distance_of_rules"] = summary(torch.stack(crossed).mean(dim=0))
    for metric in ("insertion", "deletion"):
        found[f"{metric}: once a search less once a trial"] = summary(means[search][metric] - means[trial][metric])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="zoo/resnet,zoo/deit", help="networks of the zoo, separated by commas")
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    for name in options.model.split(","):
        print(
            json.dumps(compare(name, options.images, options.iterations, options.device), indent=1, ensure_ascii=False),
            flush=True,
        )


if __name__ == "__main__":
    main()
