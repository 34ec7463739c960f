"""Efficiency of the search against the bare model, and against one question at a time.

python benchmarks/evidence_speed.py --models resnet50,vit,deit,swin --images 512 --batch 1024 --precision bf16 --compile

With ``--presets default,cvpr2024`` each is timed, one after the other; what seed maps cost shows in images a second.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from benchmarks.real_models import photographs, resnet50_v1, sharpened, vit_tiny
from suffice.bench import benchmark_evidence
from suffice.evidence import preset

SHARPENED = {"deit": "timm/deit_small_patch16_224", "swin": "timm/swin_tiny_patch4_window7_224"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="resnet50,vit")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--at-once", type=int, default=None)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--twin-images", type=int, default=1)
    parser.add_argument("--max-size", type=int, default=18)
    parser.add_argument("--presets", default="default")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()

    images = photographs()[: options.images]
    rows = []
    for key in options.models.split(","):
        if key == "resnet50":
            net = resnet50_v1(options.device)
        elif key == "vit":
            net = vit_tiny(options.device)
        else:
            pixels = vit_tiny("cpu").prepare(images[:64])
            net = sharpened(SHARPENED[key], options.device, pixels)
        for name in options.presets.split(","):
            timing = benchmark_evidence(
                net,
                images,
                settings=preset(name).changed(max_size=options.max_size),
                batch_size=options.batch,
                precision=options.precision,
                compile=options.compile,
                images_at_once=options.at_once or "auto",
                twin_images=options.twin_images,
            )
            rows.append({"model": net.name, "preset": name, **vars(timing)})
            print(json.dumps(rows[-1]), flush=True)
            if options.out:
                options.out.write_text(json.dumps(rows, indent=2))
        torch.compiler.reset()


if __name__ == "__main__":
    main()
