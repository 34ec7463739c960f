"""How fast cross-testing asks its questions, against the bare models: the curves of all maps on all models.

    python benchmarks/cross_speed.py --images 500 --batch 1024 --precision fp16 --compile

What maps show does not change how long curves take, so they are random, and making them is not counted. Efficiency is
the time that the bare models would take for the same forwards, over the time that cross-testing takes. The last line
has the hours that the curves of thirteen models on 5,000 images would take at this rate; the maps come on top of it.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch

import suffice
from benchmarks import real_models
from suffice.bench.bare import BareModel, seconds_of
from suffice.compare.cross import shown_to
from suffice.compare.held import held
from suffice.perturb import Runner

MODELS = ("resnet50_v1", "mobilenet_v2", "efficientnet_lite0", "vit_tiny")
LARGE = 13**2 * 5000  # curves of thirteen models: every image in the order of each map, to every model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    photographs = real_models.photographs()[: options.images]
    names = options.models.split(",")
    maps = [torch.rand(len(photographs), 28, 28, generator=torch.Generator().manual_seed(i)) for i in range(len(names))]
    rows = [tested(name, photographs, maps, options) for name in names]
    whole: dict[str, Any] = {key: sum(row[key] for row in rows) for key in ("forwards", "seconds", "bare seconds")}
    whole |= {"efficiency": round(whole["bare seconds"] / whole["seconds"], 3)}
    whole |= {
        "hours for 13 models, 5,000 images": whole["seconds"] / (len(photographs) * len(names) ** 2) * LARGE / 3600
    }
    print(json.dumps({"images": len(photographs), "models": len(names), **whole}))


def tested(name: str, photographs: suffice.Images, maps: list[torch.Tensor], options: Any) -> dict[str, Any]:
    """Show one model all maps; its line is printed."""
    net = getattr(real_models, name)(options.device)
    runner = Runner(net, batch_size=options.batch, precision=options.precision, compile=options.compile)
    targets = net.predict(photographs).targets.cpu()

    def show(some: suffice.Images, chosen: torch.Tensor, given: list[torch.Tensor]) -> None:
        kept = held(net, some)
        for one in given:
            shown_to(
                net, kept, one[: len(some)], chosen, ["insertion", "deletion"], "jiang",
                seed=0, runner=runner, steps=options.steps,
            )  # fmt: skip

    show(photographs[:8], targets[:8], maps[:1])  # what is compiled but once
    bare = BareModel(runner)
    before = bare.forwards_per_second(rounds=2)
    asked = runner.counters.forwards
    seconds = seconds_of(lambda: show(photographs, targets, maps), net.device)
    forwards = runner.counters.forwards - asked
    speed = (before + bare.forwards_per_second(rounds=2)) / 2
    row = {"model": net.name, "forwards": forwards, "seconds": seconds, "bare forwards/s": speed}
    row |= {"bare seconds": forwards / speed, "efficiency": forwards / speed / seconds}
    print(json.dumps(row), flush=True)
    return row


if __name__ == "__main__":
    main()
