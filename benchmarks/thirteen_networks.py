"""What evidence of the thirteen networks of the CVPR 2024 paper costs: bare speeds of their architectures, and hours.

    python benchmarks/thirteen_networks.py --batch 1024 --precision fp16 --compile --questions 6400 --efficiency 0.85

Where there is no hub, weights are random: they do not change how fast a network is. How many questions a photograph
takes, and how near a search comes to the bare speed, was measured with real networks, and is given.
"""

from __future__ import annotations

import argparse
import json

import torch

import suffice
from suffice.bench.bare import BareModel
from suffice.perturb import Runner

# Networks of the paper with this architecture: four ResNet-50 differ in their weights only.
ARCHITECTURES = {
    "vgg19": 1,
    "resnet50": 4,
    "convnext_tiny": 1,
    "swin_tiny_patch4_window7_224": 1,
    "nest_tiny_jx": 1,
    "deit_small_patch16_224": 1,
    "pit_s_224": 1,
    "deit_small_distilled_patch16_224": 1,
    "pit_s_distilled_224": 1,
    "levit_256": 1,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default=",".join(ARCHITECTURES))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--questions", type=float, required=True, help="forwards that a photograph takes")
    parser.add_argument("--efficiency", type=float, required=True, help="of searches, against the bare model")
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    hours = 0.0
    for name in options.names.split(","):
        net = suffice.load(f"timm/{name}", pretrained=False, device=options.device)
        runner = Runner(net, batch_size=options.batch, precision=options.precision, compile=options.compile)
        speed = BareModel(runner).forwards_per_second()
        own = options.images * options.questions / (speed * options.efficiency) / 3600
        hours += ARCHITECTURES[name] * own
        row = {"architecture": name, "networks": ARCHITECTURES[name], "bare forwards/s": round(speed)}
        print(json.dumps(row | {"hours of each": round(own, 3)}), flush=True)
        torch.compiler.reset()
    print(json.dumps({"images": options.images, "hours on one GPU": round(hours, 2), "on eight": round(hours / 8, 3)}))


if __name__ == "__main__":
    main()
