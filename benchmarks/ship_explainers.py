"""Train the explainers that come with the package, and put them beside the weights of the zoo.

OMP_NUM_THREADS=1 nice -n 15 python benchmarks/ship_explainers.py

Each is trained on the first 600 training scenes, of which a tenth is held out; test scenes are left out by their
content, and none is among them anyway. Weights are in half precision. With --out they are put elsewhere, to be looked
at first.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import suffice
from suffice.attribution.learned import ExplainerRecipe, save_explainer, train_explainer
from suffice.attribution.learned.ready import READY, ready_name

# With the weight of masks, λ; of 5, the explainer of zoo/convnext learned less than nothing.
NETWORKS = {"zoo/resnet": 5.0, "zoo/deit": 5.0, "zoo/convnext": 2.0, "zoo/swin-4": 5.0}
STEPS = {"zoo/swin-4": 400}  # others: 120
IMAGES = "scenes:train[:600]"
MOST = 4_000_000  # bytes of all files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(NETWORKS), help="these networks")
    parser.add_argument("--steps", type=int, help="default: by network")
    parser.add_argument("--mask-weight", type=float, help="λ; default: by network")
    parser.add_argument("--images", default=IMAGES)
    parser.add_argument("--out", type=Path, default=READY, help="folder; default: that of the package")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        net = suffice.load(name)
        weight = NETWORKS[name] if options.mask_weight is None else options.mask_weight
        recipe = ExplainerRecipe(steps=options.steps or STEPS.get(name, 120), batch=16, mask_weight=weight)
        began, file = time.process_time(), options.out / ready_name(name)
        trained = train_explainer(
            net,
            options.images,
            recipe,
            on_progress=lambda row: row.validation and print(row, file=sys.stderr, flush=True),
        )
        save_explainer(trained, file)
        last, seconds = trained.history[-1], time.process_time() - began
        found = f"loss {last.validation:.3f}  confidence {last.confidence:.3f}  kept {last.kept:.3f}"
        print(f"{name:14} {found}  {seconds:.0f} s", flush=True)
    total = sum(file.stat().st_size for file in options.out.glob("*.safetensors"))
    print(f"{total:,} bytes")
    if total > MOST:
        sys.exit(f"More than {MOST:,} bytes.")


if __name__ == "__main__":
    main()
