"""Pictures of two classes, for studies/eea-classes-zoo.toml: does a map change with the class it is asked about?

python benchmarks/two_classes.py --out two-classes

A picture is the middle of one test scene beside the middle of another of a different class. Those are kept in which
every one of the networks finds just these two classes likeliest, the second with at least 5 %. index.csv has each
picture twice: with the class of its left half and a box around that half, and likewise for the right.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

import suffice
from suffice.zoo.scenes import CLASSES, SIZE, render

FIRST = 2_005_000  # test scenes that no other study asks about
HALF = SIZE // 2
LEAST = 0.05


def pairs(start: int, count: int) -> tuple[Tensor, Tensor]:
    """Pictures [N, 3, H, W] in [0, 1], and the classes of their halves [N, 2]."""
    scenes = render(torch.arange(start, start + 2 * count))
    middle = scenes.pixels[..., HALF // 2 : HALF // 2 + HALF]
    both = torch.cat([middle[:count], middle[count:]], dim=-1)
    classes = torch.stack([scenes.labels[:count], scenes.labels[count:]], dim=1)
    differ = classes[:, 0] != classes[:, 1]
    return (both[differ] * 255).round() / 255, classes[differ]


@torch.no_grad()
def sees_both(net: suffice.Classifier, pictures: Tensor, classes: Tensor) -> Tensor:
    """In which pictures the two classes are the likeliest, bool [N]."""
    best = net(pictures.to(net.device)).cpu().topk(2)
    same = best.indices.sort(dim=1).values == classes.sort(dim=1).values
    return same.all(dim=1) & (best.values[:, 1] > LEAST)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["zoo/resnet", "zoo/deit"])
    parser.add_argument("--pictures", type=int, default=50)
    parser.add_argument("--block", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("two-classes"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    nets = [suffice.load(name, device="cpu") for name in options.models]
    rows: list[tuple[str, str, str]] = []
    tried, start = 0, FIRST
    while len(rows) < 2 * options.pictures:
        pictures, classes = pairs(start, options.block)
        start, tried = start + 2 * options.block, tried + len(pictures)
        good = torch.stack([sees_both(net, pictures, classes) for net in nets]).all(dim=0)
        for picture, (left, right) in zip(pictures[good], classes[good].tolist(), strict=True):
            name = f"{len(rows) // 2:03}.png"
            bytes_ = (picture * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
            Image.fromarray(bytes_).save(options.out / name)
            for label, x in ((left, 0), (right, HALF)):
                rows.append((name, CLASSES[label], json.dumps([[x, 0, x + HALF, SIZE]])))
    with (options.out / "index.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("file", "label", "boxes"), *rows[: 2 * options.pictures]])
    found = len(rows) // 2
    print(f"{found} of {tried} pictures show two classes to {', '.join(options.models)}")


if __name__ == "__main__":
    main()
