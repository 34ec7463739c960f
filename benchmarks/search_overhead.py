"""What a search costs beside the model: questions a second of processor time, of a network that costs next to nothing.

python benchmarks/search_overhead.py --images 256 --batch 1024
python benchmarks/search_overhead.py --images 256 --batch 1024 --keep-memory   # as commands do

Each image has one brightness a cell; the network is two small layers over them. One thread; the time is that of the
processor, so that a busy machine does not matter much.
"""

from __future__ import annotations

import argparse
import json
import time

import torch
from torch import Tensor, nn

import suffice
from suffice.evidence import EvidenceStream, Settings
from suffice.perturb import Runner, keep_freed_memory


class Formula(nn.Module):
    """Scores of ten classes from the brightness of 7×7 cells, each of 2×2 pixels."""

    def __init__(self) -> None:
        super().__init__()
        drawn = torch.Generator().manual_seed(1)
        self.first = nn.Parameter(torch.randn(32, 49, generator=drawn) * 0.6)
        self.second = nn.Parameter(torch.randn(10, 32, generator=drawn) * 0.5)

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.relu(pixels[:, 0, ::2, ::2].flatten(1) @ self.first.T) @ self.second.T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep-memory", action="store_true", help="what is freed stays with the process")
    options = parser.parse_args()

    torch.set_num_threads(1)
    if options.keep_memory:
        print(json.dumps({"memory kept": keep_freed_memory()}))
    net = suffice.Classifier(Formula().eval(), size=14, mean=(0,) * 3, std=(1,) * 3)
    cells = 0.2 + 0.8 * torch.rand(options.images, 1, 7, 7, generator=torch.Generator().manual_seed(3))
    images = cells.repeat_interleave(2, 2).repeat_interleave(2, 3).expand(-1, 3, -1, -1)
    settings = Settings(baseline="black", max_regions=3000)
    for _ in range(options.rounds):
        runner = Runner(net, batch_size=options.batch)
        started = time.process_time()
        work = EvidenceStream(net, images, None, settings, runner)
        found = sum(len(evidence.mses) for evidence in work)
        searching = time.process_time() - started
        forwards = work.counters.forwards

        batch, batches = torch.rand(options.batch, 3, 14, 14), 200_000 // options.batch + 1
        started = time.process_time()
        for _ in range(batches):
            runner.logits(batch)
        bare = batches * options.batch / (time.process_time() - started)
        row = {"images": options.images, "MSEs": found, "forwards": forwards, "CPU seconds": round(searching, 2)}
        print(json.dumps(row | {"forwards/s": round(forwards / searching), "bare forwards/s": round(bare)}), flush=True)


if __name__ == "__main__":
    main()
