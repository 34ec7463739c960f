"""How far ratios in half precision are off: random sets of cells of real photographs, against fp32.

    python benchmarks/ratio_errors.py --images 10 --sets 60

By these errors the bands were chosen within which a search asks again in fp32 (BANDS in search/confirmation.py).
"""

from __future__ import annotations

import argparse

import torch

from benchmarks import real_models
from suffice.perturb import Probe, Runner

QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=10)
    parser.add_argument("--sets", type=int, default=60, help="of each image")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    net = real_models.vit_tiny(options.device)
    images = real_models.photographs()[250 : 250 + options.images]
    exact = Probe(net, images, runner=Runner(net, precision="ieee", batch_size=options.batch))
    random, count = torch.Generator().manual_seed(0), options.images * options.sets
    size = torch.randint(4, 45, (count,), generator=random)
    bits = torch.rand(count, exact.grid.cells, generator=random).argsort(1).argsort(1) < size[:, None]
    regions = exact.grid.from_bits(bits).to(exact.device)
    index = torch.arange(options.images, device=exact.device).repeat_interleave(options.sets)
    truth = exact.ask(index, regions) / exact.whole[index]
    print("| precision | mean | " + " | ".join(f"{q:.1%}" for q in QUANTILES) + " |")
    print("|---" * (2 + len(QUANTILES)) + "|")
    for precision in ("fp16", "bf16"):
        runner = Runner(net, precision=precision, batch_size=options.batch)
        probe = Probe(net, images, exact.targets, runner=runner)
        error = (probe.ask(index, regions) / probe.whole[index] - truth).abs().cpu()
        cells = [f"{float(value):.5f}" for value in (error.mean(), *torch.quantile(error, torch.tensor(QUANTILES)))]
        print(f"| {precision} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
