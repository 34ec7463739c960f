"""Protocols: every choice that a metric leaves open, under one name.

A table to read: each protocol lists the metrics it defines and what it chooses for them; whatever it does not mention
is as the metric declares it. Values are shares of 1 unless ``scale`` says otherwise. Baselines are pixels: ``"gray"``
is zero after normalization, which several papers call black.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from suffice.errors import OptionError
from suffice.metrics.metric import all_metrics, find_metric
from suffice.plugins import matching, unknown

TargetClass = Literal["explained", "predicted", "label"]

# Naming one of these unsets the others.
ALTERNATIVES = ("steps", "step_size", "fractions")


@dataclass(frozen=True)
class Protocol:
    """A named set of choices.

    Attributes:
        name: By which users call it.
        about: What it follows, and where it had to decide for itself.
        target_class: The class asked about where the user names none: the one that the maps ``"explained"`` (the
            predicted one where that is not known), the one that the model ``"predicted"``, or the ``"label"``.
        chosen: For each metric it defines, the options that it sets; None for all metrics as they are.
    """

    name: str
    about: str
    target_class: TargetClass
    chosen: Mapping[str, Mapping[str, Any]] | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that it defines."""
        return tuple(all_metrics() if self.chosen is None else self.chosen)

    @property
    def choices(self) -> dict[str, dict[str, Any]]:
        """Every choice for every metric that it defines."""
        return {name: self.options(name) for name in self.metrics}

    def options(self, metric: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Every choice for one metric, with some changed.

        Raises:
            OptionError: The protocol says nothing about this metric, or the metric has no such option.
        """
        found = find_metric(metric)
        if self.chosen is not None and metric not in self.chosen:
            raise OptionError(
                f"The protocol {self.name!r} says nothing about {metric}; it defines {', '.join(self.metrics)}. "
                "protocol='default' defines every metric."
            )
        options = dict(found.options)
        for layer in ((self.chosen or {}).get(metric, {}), changes or {}):
            found.check(layer)
            if any(layer.get(name) is not None for name in ALTERNATIVES):
                options.update({name: None for name in ALTERNATIVES if name in options})
            options.update(layer)
        return options


RISE = {"steps": 224, "rounding": "up", "integration": "trapezoid-points"}
IGOS = {"units": "cells", "masks": "bilinear-corners", "steps": 50, "rounding": "down", "ends": "last",
        "integration": "right"}  # fmt: skip
JIANG = {**IGOS, "units": 28, "ends": "both", "integration": "trapezoid"}
VIT_CX = {"baseline": "gray", "steps": 28, "rounding": "up", "integration": "trapezoid-points"}
TIS = {"baseline": ("blur-tis", "gray", "tis-noise", "tis-mean"), "steps": 224, "rounding": "up", "ends": "last",
       "integration": "mean"}  # fmt: skip
TENTHS = tuple(i / 10 for i in range(1, 10))
EEA = {"baseline": "black", "fractions": (0.0, *TENTHS), "integration": "trapezoid-unscaled", "scale": 100.0}
CHEFER = {"baseline": "black", "fractions": TENTHS, "integration": "mean", "value": "accuracy"}

PROTOCOLS = {
    p.name: p
    for p in (
        Protocol(
            "default",
            "Ours. Insertion and deletion over the same blur in 50 even steps, both ends, trapezoid rule; POS and NEG "
            "as accuracy over 10 to 90 %; the rest as published. The class is the one that the map explains.",
            "explained",
            None,
        ),
        Protocol(
            "rise",
            "The causal metric of RISE: 224 pixels a step at 224×224, 225 points, both ends. Insertion over its "
            "near-box blur, deletion to the mean color. Its table over 5000 images uses 28 steps: write steps=28.",
            "predicted",
            {
                "insertion": {**RISE, "baseline": "blur-rise"},
                "deletion": {**RISE, "baseline": "gray"},
                "ins-del": {**RISE, "baseline": "blur-rise", "deletion_baseline": "gray"},
            },
        ),
        Protocol(
            "igos",
            "The metric of the iGOS++ repositories: cells of the map itself, a fiftieth of them (rounded down) a step, "
            "masks enlarged with aligned corners, right sums. The repositories count the last step as if the score "
            "were 1; integration='right-defect' does the same.",
            "predicted",
            {"insertion": IGOS, "deletion": IGOS, "ins-del": IGOS},
        ),
        Protocol(
            "jiang",
            "Cross-testing: 28×28 cells over a blur, 15 cells a step as in the repositories of iGOS++, and the "
            "trapezoid rule over both ends as in the papers. normalize='set' gives their (s - b) / (t - b).",
            "predicted",
            {"insertion": JIANG, "deletion": JIANG, "ins-del": JIANG},
        ),
        Protocol(
            "vit-cx",
            "The paper names RISE's metrics on an empty canvas and has no code: read as the mean color for both, in "
            "28 steps, like the scripts of its baselines. Pointing game: the highest pixel in any box, no tolerance.",
            "predicted",
            {"insertion": VIT_CX, "deletion": VIT_CX, "ins-del": VIT_CX, "pointing-game": {"tolerance": 0.0}},
        ),
        Protocol(
            "tis",
            "224 steps without the starting point, averaged over four baselines: blur, zero, uniform noise and the "
            "image's mean, the last two in ImageNet's units for every model; each is found in .parts. The repository "
            "has no area code; the mean of the points is ours.",
            "label",
            {
                "insertion": TIS,
                "deletion": TIS,
                "ins-del": TIS,
                "pointing-game": {"tolerance": 0.0, "largest": 0.5},
                "energy-pointing-game": {"values": "absolute", "largest": 0.5},
                "sparseness": {"values": "shifted"},
                "sensitivity-max": {"samples": 10, "radius": 0.02, "space": "imagenet"},
            },
        ),
        Protocol(
            "eea",
            "EEA / LTX: black pixels, 0 to 90 % in tenths, the area not divided by its range, times 100, so that 90 is "
            "the highest. Its DEL is deletion here; its INS removes the least important first, so it is lerf here.",
            "label",
            {
                "pos": {**EEA, "value": "accuracy"},
                "neg": {**EEA, "value": "accuracy"},
                "deletion": EEA,
                "lerf": {**EEA, "units": "pixels"},
                "adp": {"mask": "raw", "baseline": "black", "scale": 100.0},
                "pic": {"mask": "raw", "baseline": "black", "scale": 100.0},
            },
        ),
        Protocol(
            "chefer",
            "Perturbation test of Chefer et al.: black pixels, accuracy at 10 to 90 %. The scripts print each step; "
            "the mean of the nine is ours.",
            "label",
            {"pos": CHEFER, "neg": CHEFER},
        ),
    )
}


def all_protocols() -> dict[str, Protocol]:
    """All protocols by name.

    Example:
        >>> all_protocols()["igos"].choices["insertion"]["integration"]
        'right'
    """
    return dict(PROTOCOLS)


def list_protocols(pattern: str = "*") -> list[str]:
    """List the names of protocols that match a shell-style pattern.

    Example:
        >>> list_protocols("r*")
        ['rise']
    """
    return matching(PROTOCOLS, pattern)


def find_protocol(name: str | Protocol) -> Protocol:
    """A protocol by its name; an unknown name is an error that lists those there are."""
    if isinstance(name, Protocol):
        return name
    if name not in PROTOCOLS:
        raise unknown("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
