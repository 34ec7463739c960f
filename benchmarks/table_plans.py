"""What each table of ``tables.py`` consists of: models, methods with their options, metrics and protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

import suffice
from benchmarks import real_models
from suffice.attribution import Method, all_methods, attribute, list_methods
from suffice.attribution.tokens.block_layers import BLOCK_LAYERS
from suffice.attribution.tokens.dropping import can_drop_tokens
from suffice.metrics import Entry, Protocol, find_protocol
from suffice.metrics.protocols import TargetClass
from suffice.perturb import Batch, Runner
from suffice.vision.noise import uniform_noise

REAL: Mapping[str, Callable[[str], suffice.Classifier]] = {
    "resnet50-v1": real_models.resnet50_v1,
    "vit-tiny": real_models.vit_tiny,
}
FAITHFUL = ("insertion", "deletion", "ins-del")
PLACED = ("pointing-game", "energy-pointing-game", "sparseness")
# The baselines of TIS in the order of its columns: mean, blur, black and rand.
OVER = ("tis-mean", "blur-tis", "gray", "tis-noise")
RATIOS, MOST_MASKS, FEWER = (0.125, 0.25, 0.5), 2048, 5

# So little work that everything can be tried on a CPU in minutes; the maps are poor.
QUICK: Mapping[str, Mapping[str, Any]] = {
    "rise": {"masks": 64},
    "kernel-shap": {"samples": 98},
    "lime": {"samples": 64},
    "tis": {"masks": 32, "iterations": 5},
    "vit-cx": {"random_masks": 64},
    "integrated-gradients": {"steps": 8},
    "smoothgrad": {"samples": 4},
    "tam": {"steps": 4},
    "bt-h": {"steps": 4},
    "bt-t": {"steps": 4},
    **{name: {"steps": 3, "iterations": 2} for name in ("i-gos", "igos+", "igos++")},
}


@dataclass(frozen=True)
class Plan:
    """One table.

    Attributes:
        name: Added to the name of the table where there are several; may be empty.
        models: Names of networks, of the zoo or of ``REAL``.
        entries: The methods for a model; those that do not fit it are left out.
        metrics: Columns.
        protocol: Every choice behind them.
        target_class: The class explained; None: as the protocol has it.
        order: The metric by which rows are ordered; None leaves them as they are.
        facts: Further columns of a row, from model, images and entry.
    """

    name: str
    models: tuple[str, ...]
    entries: Callable[[suffice.Classifier], list[Entry]]
    metrics: tuple[str, ...]
    protocol: str | Protocol = "default"
    target_class: TargetClass | None = None
    order: str | None = None
    facts: Callable[[suffice.Classifier, suffice.Images, Entry], Mapping[str, float]] | None = None


def load(name: str, device: str) -> suffice.Classifier:
    """A network of the zoo, a real one, or any other by its name."""
    return REAL[name](device) if name in REAL else suffice.load(name, device=device)


def images_for(model: str, count: int) -> suffice.Images:
    """Test scenes for networks of the zoo, photographs for others; both with labels and boxes."""
    if model.startswith("zoo/"):
        return suffice.open_images(f"scenes:test[:{count}]")
    return real_models.photographs()[:count]


def _random(batch: Batch) -> torch.Tensor:
    return uniform_noise(batch.seeds, torch.zeros_like(batch.seeds), (7, 7))


def _center(batch: Batch) -> torch.Tensor:
    down, across = (torch.linspace(-1, 1, length, device=batch.pixels.device) for length in batch.net.size)
    return (-(down[:, None] ** 2) - across**2).exp().expand(len(batch), -1, -1)


# What a method must beat: maps that know nothing, and maps that know only where photographers put things.
CONTROLS = (
    Method("random", _random, "A random 7×7 map of each image."),
    Method("center", _center, "High in the middle, whatever the image."),
)


def usual(name: str, net: suffice.Classifier) -> Entry:
    """A method as it is by default, fitted to the model where the default is for another kind or size of model."""
    options: dict[str, Any] = {}
    if name == "occlusion":  # 32 and 16 pixels of 224
        options = {"window": min(net.size) // 7, "stride": min(net.size) // 14}
    if name == "tis" and not can_drop_tokens(net.module):
        options = {"mode": "pixels"}
    return Entry(name, options, name)


def every_method(net: suffice.Classifier) -> list[Entry]:
    return [*(usual(name, net) for name in list_methods()), *map(_control, CONTROLS)]


def every_quick_method(net: suffice.Classifier) -> list[Entry]:
    """All but I-GOS and its successors, which optimize every image for as long as the others take together."""
    return [entry for entry in every_method(net) if not entry.name.startswith(("i-gos", "igos"))]


def transformer_methods(net: suffice.Classifier) -> list[Entry]:
    for_transformers = [m.name for m in all_methods().values() if {"attention", "tokens"} & set(m.needs)]
    others = ("vit-cx", "gradient", "grad-cam", "rise")
    return [*(usual(name, net) for name in (*for_transformers, *others)), *map(_control, CONTROLS)]


def vit_cx_variants(net: suffice.Classifier, **reading: str) -> list[Entry]:
    """ViT-CX and the five variants of its ablation study, under one reading of the paper."""
    plain, uncorrected = {"impact": "plain"}, {"coverage": "summed"}
    return [
        Entry("vit-cx", options, label)
        for label, options in {
            "ViT-CX": reading,
            "1: all channels": {**reading, "masks": "all"},
            "2: random masks": {"masks": "random"},
            "3: plain impact": {**reading, **plain},
            "4: no coverage correction": {**reading, **uncorrected},
            "5: plain, no correction": {**reading, **plain, **uncorrected},
        }.items()
    ]


def vit_cx_readings(net: suffice.Classifier) -> list[Entry]:
    """ViT-CX at every layer that its paper or its code may mean, with both kinds of masks of clusters."""
    return [
        Entry("vit-cx", {"layer": layer, "representative": representative}, f"{layer}, {representative}")
        for layer in BLOCK_LAYERS
        for representative in ("stretched", "mean")
    ]


def mask_count(net: suffice.Classifier, images: suffice.Images, entry: Entry) -> Mapping[str, float]:
    """How many masks ViT-CX uses on average, over at most 16 images, from how often it asks the model."""
    options = {**entry.found.options, **entry.options}
    if options["masks"] == "random":
        return {"masks": options["random_masks"]}
    some = images[:16]
    runner = Runner(net)
    attribute(net, some, "vit-cx", runner=runner, **entry.options)
    # Once each: the feature maps and the whole image. Then each mask, and where that is debiased also its noise alone.
    asked = runner.counters.forwards / len(some) - 2
    return {"masks": asked / 2 if options["impact"] == "debiased" else asked}


def tis_masks(net: suffice.Classifier) -> list[int]:
    """2048 masks and four times half as many; fewer where the network has fewer channels to cluster."""
    module: Any = net.module
    channels = len(net.anatomy.blocks) * module.embed_dim
    most = min(MOST_MASKS, 1 << (channels.bit_length() - 1))
    return [most >> step for step in range(FEWER)]


def tis_parameters(net: suffice.Classifier) -> list[Entry]:
    """The settings of Tables 1 to 5 of the supplement: three ratios, then ever fewer masks."""
    counts = tis_masks(net)
    settings = [(ratio, counts[0]) for ratio in RATIOS] + [(RATIOS[-1], count) for count in counts[1:]]
    return [_tis(ratio, count) for ratio, count in settings]


def tis_grid(net: suffice.Classifier) -> list[Entry]:
    """The settings of Table 7, all ratios with all numbers of masks."""
    return [_tis(ratio, count) for count in reversed(tis_masks(net)) for ratio in RATIOS]


def _tis(ratio: float, masks: int) -> Entry:
    return Entry("tis", {"ratio": ratio, "masks": masks}, f"tis {ratio} {masks}")


def tis_emptied(net: suffice.Classifier) -> list[Entry]:
    """Both rules for clusters that lose all their channels, with ever fewer masks."""
    return [
        Entry("tis", {"masks": count, "emptied": rule}, f"tis {count}, emptied {rule}")
        for count in tis_masks(net)
        for rule in ("zero", "left")
    ]


def tis_rivals(net: suffice.Classifier) -> list[Entry]:
    """The methods TIS compares itself with, as its authors ran them; SmoothGrad with the noise of its own paper."""
    settings: dict[str, dict[str, Any]] = {
        "tis": {"masks": tis_masks(net)[0]},
        "vit-cx": {},
        "tam": {"start_layer": 0},
        "cgw1": {},
        "cgw2": {},
        "rollout": {"variant": "vit-explain"},
        "bt-h": {"start_layer": 0},
        "bt-t": {"start_layer": 0},
        "rise": {"masks": 4000, "side": 8, "share": 0.1, "output": "logit"},
        "integrated-gradients": {"baseline": "gray"},
        "smoothgrad": {},
    }
    return [*(Entry(name, options, name) for name, options in settings.items()), *map(_control, CONTROLS)]


def igos_rivals(net: suffice.Classifier) -> list[Entry]:
    names = ("igos++", "igos+", "i-gos", "grad-cam", "rise", "integrated-gradients")
    return [*(Entry(name, {}, name) for name in names), *map(_control, CONTROLS)]


def _control(method: Method) -> Entry:
    return Entry(method, {}, method.name)


def changed(protocol: str | Protocol, name: str, metrics: Mapping[str, Mapping[str, Any]]) -> Protocol:
    """A protocol with other choices for some of its metrics."""
    base = find_protocol(protocol) if isinstance(protocol, str) else protocol
    chosen = {metric: {**(base.chosen or {}).get(metric, {}), **metrics.get(metric, {})} for metric in base.metrics}
    return replace(base, name=name, chosen=chosen)


# Maps of other methods than EEA's are not in [0, 1].
EEA = changed("eea", "eea, maps stretched", {"adp": {"mask": "min-max"}, "pic": {"mask": "min-max"}})
SAME_CELLS = changed("igos", "igos, 28×28 cells", {metric: {"units": 28} for metric in FAITHFUL})
SIX = ("neg", "pos", "lerf", "deletion", "adp", "pic")


DEL_INS_PG = ("deletion", "insertion", "pointing-game")


def _real(model: str) -> tuple[Plan, ...]:
    """Table 1 of ViT-CX and the tables of EEA."""
    return (
        Plan("vit-cx", (model,), every_quick_method, DEL_INS_PG, "vit-cx"),
        Plan("eea-target", (model,), every_quick_method, SIX, EEA, "label"),
        Plan("eea-predicted", (model,), every_quick_method, SIX, EEA, "predicted"),
    )


def _readings(*models: str) -> Plan:
    return Plan("", models, vit_cx_readings, DEL_INS_PG, "vit-cx", facts=mask_count)


def _tis_plans(model: str) -> tuple[Plan, ...]:
    parts = tuple(f"{metric}/{baseline}" for metric in FAITHFUL[:2] for baseline in OVER)
    return (
        Plan("parameters", (model,), tis_parameters, ("ins-del", *parts, "pointing-game"), "tis"),
        Plan("methods", (model,), tis_rivals, (*FAITHFUL, *PLACED), "tis", order="ins-del"),
        Plan("pos-neg", (model,), tis_rivals, ("pos", "neg"), "chefer"),
    )


def _tis_time(model: str) -> Plan:
    return Plan("time", (model,), tis_grid, ("sparseness",), "tis")


TABLES: Mapping[str, tuple[Plan, ...]] = {
    "zoo-methods": (
        Plan(
            "",
            ("zoo/resnet", "zoo/convnext-3-bn", "zoo/swin-4", "zoo/deit"),
            every_method,
            (*FAITHFUL, *PLACED),
            order="ins-del",
        ),
    ),
    "zoo-transformers": (
        Plan("", ("zoo/deit", "zoo/deit-distilled"), transformer_methods, (*FAITHFUL, *PLACED), order="ins-del"),
    ),
    "vit-cx-ablations": tuple(
        Plan(reading, ("zoo/deit",), partial(vit_cx_variants, reading=reading), DEL_INS_PG, "vit-cx", facts=mask_count)
        for reading in ("paper", "code")
    ),
    "vit-cx-readings": (_readings("zoo/deit", "zoo/deit-distilled"),),
    "tis": (*_tis_plans("zoo/deit"), _tis_time("zoo/deit")),
    "real-cnn": _real("resnet50-v1"),
    "real-vit": _real("vit-tiny"),
    "real-tis": _tis_plans("vit-tiny"),
    "real-tis-time": (replace(_tis_time("vit-tiny"), name=""),),
    "tis-emptied": (Plan("", ("zoo/deit",), tis_emptied, FAITHFUL, "tis"),),
    "real-tis-emptied": (Plan("", ("vit-tiny",), tis_emptied, FAITHFUL, "tis"),),
    "real-vit-cx-readings": (_readings("vit-tiny"),),
    "real-igos": (Plan("", ("vit-tiny", "resnet50-v1"), igos_rivals, DEL_INS_PG, "vit-cx"),),
    "igos": tuple(
        Plan(name, ("zoo/resnet", "zoo/convnext-3-bn"), igos_rivals, FAITHFUL, protocol, order="ins-del")
        for name, protocol in (("own-cells", "igos"), ("same-cells", SAME_CELLS))
    ),
}
