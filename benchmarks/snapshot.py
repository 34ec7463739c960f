"""Numbers of every method, metric and preset on networks of the zoo, to be compared after a change.

    python benchmarks/snapshot.py write before.safetensors
    ... change the package ...
    python benchmarks/snapshot.py write after.safetensors
    python benchmarks/snapshot.py compare before.safetensors after.safetensors

The comparison prints, for each entry, the largest difference relative to the largest magnitude, worst first.
"""

from __future__ import annotations

import sys
import time

import torch
from safetensors.torch import load_file, save_file

import suffice

NETWORKS = ("deit", "deit-distilled", "swin", "resnet", "convnext-3-bn", "levit")
IMAGES = "scenes:test[:5]"
# Smaller than by default where that only takes longer.
OPTIONS = {
    "rise": {"masks": 96},
    "kernel-shap": {"samples": 128},
    "lime": {"samples": 96},
    "tis": {"masks": 48},
    "i-gos": {"iterations": 3, "steps": 5, "size": 8},
    "igos+": {"iterations": 3, "steps": 5, "size": 8},
    "igos++": {"iterations": 3, "steps": 5, "size": 8},
    "integrated-gradients": {"steps": 9},
    "smoothgrad": {"samples": 9},
    "occlusion": {"window": 16, "stride": 8},
    "bt-h": {"steps": 5},
    "bt-t": {"steps": 5},
    "tam": {"steps": 5},
}
# Other readings of the same methods, as (name, options).
VARIANTS = (
    ("vit-cx", {"masks": "random", "random_masks": 64}),
    ("vit-cx", {"impact": "plain", "coverage": "summed"}),
    ("vit-cx", {"representative": "stretched", "masks": "all"}),
    ("tis", {"masks": 24, "mode": "pixels", "ratio": (0.25, 0.5)}),
    ("score-cam", {"reading": "original"}),
    ("score-cam", {"reading": "mask-sum"}),
    ("smoothgrad", {"samples": 5, "variant": "variance", "output": "score"}),
    ("rollout", {"variant": "vit-explain"}),
    ("rollout", {"variant": "tam"}),
    ("igos++", {"iterations": 2, "steps": 4, "size": 6, "btv": "asymmetric", "search_loss": "plain"}),
    ("gradient", {"times": "input", "reduction": "sum"}),
)
METRICS = {
    "default": None,
    "rise": ("insertion", "deletion"),
    "igos": ("insertion", "deletion"),
    "jiang": ("insertion", "deletion", "ins-del"),
    "vit-cx": ("insertion", "deletion", "pointing-game"),
    "tis": ("insertion", "deletion", "sparseness", "energy-pointing-game"),
    "eea": ("pos", "neg", "deletion", "lerf"),
    "chefer": ("pos", "neg"),
}


def numbers() -> dict[str, torch.Tensor]:
    """Everything, by name."""
    found: dict[str, torch.Tensor] = {}
    images = suffice.open_images(IMAGES)
    for name in NETWORKS:
        started = time.perf_counter()
        net = suffice.load(f"zoo/{name}", device="cpu")
        found.update({f"{name}/{key}": value for key, value in _of_network(net, images)})
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    return found


def _of_network(net, images):
    found = net.predict(images)
    yield "predict", found.scores
    fitting = [name for name in _methods() if _fits(name, net)]
    for method in fitting:
        try:
            maps = suffice.attribute(net, images, method, **OPTIONS.get(method, {}))
        except suffice.SufficeError:  # such as a grid of tokens that changes on the way
            continue
        yield f"maps/{method}", maps.maps
        yield f"confidences/{method}", maps.confidences
    for number, (method, options) in enumerate(VARIANTS):
        if method in fitting and (method, net.name) not in (("rollout", "zoo/levit"), ("rollout", "zoo/swin")):
            yield f"maps/{number}:{method}", suffice.attribute(net, images, method, targets=2, **options).maps
    maps = suffice.attribute(net, images, "gradient", targets=[3, 1, 4, 1, 5])
    for protocol, metrics in METRICS.items():
        wanted = [m for m in metrics or _metrics() if m not in ("adp", "pic")] if metrics else list(_metrics())
        scores = suffice.measure(net, images, maps, wanted, protocol)
        for metric in wanted:
            yield f"scores/{protocol}/{metric.replace('localisation', 'localization')}", scores[metric].values
            if scores[metric].curves is not None:
                yield f"curves/{protocol}/{metric}", scores[metric].curves.y
    for preset, changes in (
        ("default", {}),
        ("default", {"minimal": "subset", "max_size": 6}),
        ("cvpr2024", {}),
        ("preprint", {}),
    ):
        evidence = _evidence(net, images[:2], preset, changes)
        key = f"evidence/{preset}{len(changes)}"
        for number, one in enumerate(evidence):
            words = one.grid.from_cells(m.cells for m in one.mses)
            yield f"{key}/{number}/mses", words
            yield f"{key}/{number}/ratios", torch.tensor([m.ratio for m in one.mses])
            order = one.regions.sort().indices
            yield f"{key}/{number}/regions", one.regions[order]
            yield f"{key}/{number}/region ratios", one.ratios[order]
            counts = [list(one.subexplanations(c).values()) for c in ("distinct", "per-mse", "tree", "tree3")]
            yield f"{key}/{number}/counts", torch.tensor(counts, dtype=torch.float64)
            yield f"{key}/{number}/facts", torch.tensor([one.target, one.questions, one.levels, len(one.diverse(1))])


def _evidence(net, images, preset, changes):
    if hasattr(suffice, "list_methods"):
        return suffice.find_evidence(net, images, settings=suffice.evidence.preset(preset).changed(**changes))
    return suffice.find_evidence(net, images, preset=preset, **changes)


def _methods():
    return suffice.list_methods() if hasattr(suffice, "list_methods") else list(suffice.methods())


def _metrics():
    return suffice.list_metrics() if hasattr(suffice, "list_metrics") else list(suffice.metrics())


def _fits(name, net):
    if hasattr(suffice, "list_methods"):
        return suffice.attribution.find_method(name).incompatibility(net) is None
    return suffice.methods()[name].misfit(net) is None


def compare(before: str, after: str) -> int:
    """Print differences, worst first; the exit status says whether an entry is missing or differs by over 1e-6."""
    old, new = load_file(before), load_file(after)
    rows = []
    for key in sorted(old.keys() | new.keys()):
        if key not in old or key not in new or old[key].shape != new[key].shape:
            rows.append((float("inf"), key))
            continue
        one, other = old[key].double(), new[key].double()
        same = (one == other) | (one.isnan() & other.isnan())
        scale = max(float(one.nan_to_num().abs().max()) if one.numel() else 0.0, 1e-12)
        gap = (one - other).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
        rows.append((float(gap.max()) / scale if gap.numel() else 0.0, key))
    rows.sort(reverse=True)
    for difference, key in rows[:40]:
        print(f"{difference:10.2e}  {key}")
    far = [key for difference, key in rows if difference > 1e-6]
    print(f"{len(rows)} entries, {len(far)} differ by more than 1e-6 of their largest magnitude")
    return 1 if far else 0


if __name__ == "__main__":
    command, *files = sys.argv[1:]
    if command == "write":
        torch.set_num_threads(1)
        save_file({k: v.detach().cpu().contiguous() for k, v in numbers().items()}, files[0])
    else:
        sys.exit(compare(*files))
