"""CGW1 in each of its precisions: how far maps are from those in float64, and how fast they are.

Distance is the largest difference as a share of the largest value of the map in float64, and Spearman's correlation of
both. Time is the best of some rounds, and beside it that of one forward and backward of the bare model in fp32.

SUFFICE_ASSETS=assets PYTHONPATH=. python benchmarks/cgw1_precision.py --images 64 --batch 64
"""

from __future__ import annotations

import argparse
import json

import torch
from scipy.stats import spearmanr

import suffice
from benchmarks.real_models import photographs, vit_tiny
from suffice.attribution import explain
from suffice.bench.bare import seconds_of
from suffice.perturb import Batch, Runner

DTYPES = ("float64", "mixed", "tf32", "float32")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None, help="of timm, with random weights; default: the trained ViT-Ti/16")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--first", type=int, default=100, help="number of the first photograph")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    if options.model is None:
        net = vit_tiny(options.device)
    else:
        torch.manual_seed(0)
        net = suffice.load(options.model, pretrained=False, device=options.device)
    net.module.eval().requires_grad_(False)
    pixels = net.prepare(photographs()[options.first : options.first + options.images]).to(net.device)
    targets = torch.cat([net(part).argmax(dim=1) for part in pixels.split(options.batch)])
    ids = [str(number) for number in range(len(pixels))]
    batch = Batch(net, pixels, targets, ids, 0, Runner(net, batch_size=options.batch))

    def bare() -> None:
        for inputs in batch.inputs.split(options.batch):
            leaf = inputs.detach().requires_grad_()
            torch.autograd.grad(net.module(leaf).logsumexp(dim=1).sum(), leaf)

    def best(work) -> float:
        work()
        return min(seconds_of(work, net.device) for _ in range(options.rounds))

    alone, exact = best(bare), explain(batch, "cgw1", dtype="float64").cpu()
    for dtype in DTYPES:
        seconds = best(lambda dtype=dtype: explain(batch, "cgw1", dtype=dtype))
        maps = explain(batch, "cgw1", dtype=dtype).cpu()
        away = (maps - exact).abs().amax(dim=(1, 2)) / exact.amax(dim=(1, 2))
        ranks = [spearmanr(a.flatten(), b.flatten()).statistic for a, b in zip(maps, exact, strict=True)]
        found = {
            "model": net.name,
            "dtype": dtype,
            "images_per_second": len(pixels) / seconds,
            "times_forward_and_backward": seconds / alone,
            "largest_difference": float(away.max()),
            "median_difference": float(away.median()),
            "smallest_correlation": min(ranks),
        }
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
