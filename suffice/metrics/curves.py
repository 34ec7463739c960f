"""Curves: what the model says while pixels are inserted or removed in the order of a map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.metrics.map_batch import MapBatch, Show, Units
from suffice.metrics.outcome import Curves, Outcome, combined, of_curves
from suffice.options import Count, Share, check_fields
from suffice.perturb.masks import Enlargement

if TYPE_CHECKING:
    from suffice.vision import Classifier

Rounding = Literal["even", "up", "down"]
Ends = Literal["both", "first", "last", "neither"]
Integration = Literal["trapezoid", "trapezoid-points", "trapezoid-unscaled", "right", "right-defect", "mean"]
Value = Literal["score", "accuracy"]
Act = Literal["insert", "remove", "remove least"]


@dataclass(frozen=True)
class CurveChoices:
    """Every choice behind a curve.

    Attributes:
        baseline: What shows where pixels are hidden, see :func:`suffice.perturb.make_baseline`; or a list of several,
            whose curves are averaged.
        units: What is ranked and moved: ``"pixels"``; ``"cells"`` of the map's own resolution; or so many cells a side.
        enlargement: How maps are enlarged to the units: ``"bilinear"``, ``"bilinear-corners"`` or ``"nearest"``. Larger
            maps are averaged over areas.
        masks: How a mask of cells is enlarged to the image.
        steps: In how many steps to go from nothing to everything; None: ``step_size`` says it.
        step_size: Units that move at a time, the last step taking what is left.
        rounding: Where ``steps`` do not divide the units: ``"even"`` steps that differ by one unit at most; or steps
            of the size rounded ``"up"`` or ``"down"``, the last one taking what is left, so that there are fewer or
            more of them.
        fractions: Positions as shares of the units, instead of steps; rounded down to whole units.
        ends: Which end points count for ``steps`` and ``step_size``: ``"both"``, ``"first"`` (nothing moved yet),
            ``"last"`` (everything moved) or ``"neither"``.
        integration: From curve to number. ``"trapezoid"``: mean height by the trapezoid rule. ``"trapezoid-points"``:
            alike, as if points were equally far apart. ``"trapezoid-unscaled"``: not divided by the range of x.
            ``"right"``: each step counts with the value at its end. ``"right-defect"``: alike, and the last step as if
            the value were 1. ``"mean"``: of the points.
        value: The classifier's ``"score"`` of the class, or ``"accuracy"``: 1 where it has the highest score.
        scale: The number is multiplied by this.
    """

    baseline: Any = "blur"
    units: Units = "pixels"
    enlargement: Enlargement = "bilinear"
    masks: Enlargement = "nearest"
    steps: Count | None = 50
    step_size: Count | None = None
    rounding: Rounding = "even"
    fractions: Sequence[Share] | None = None
    ends: Ends = "both"
    integration: Integration = "trapezoid"
    value: Value = "score"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.fractions is not None:
            listed = [float(f) for f in self.fractions]
            if not listed or listed != sorted(set(listed)):
                raise OptionError(f"fractions={self.fractions!r}; expected different shares from 0 to 1 in order.")
        elif self.steps is None and self.step_size is None:
            raise OptionError("Give steps=, step_size= or fractions=.")


def positions(choices: CurveChoices, count: int) -> tuple[list[int], Tensor]:
    """How many of ``count`` pixels, or cells, have moved where a curve is looked at, and that as shares, [T] float64.

    Example:
        >>> positions(CurveChoices(steps=50, rounding="down", ends="last"), 28 * 28)[0][-3:]
        [765, 780, 784]
    """
    if choices.fractions is not None:
        moved = [math.floor(float(f) * count + 1e-9) for f in choices.fractions]
        return moved, torch.tensor([float(f) for f in choices.fractions], dtype=torch.float64)
    if choices.step_size is None and choices.rounding == "even":
        steps = min(choices.steps or count, count)
        moved = [(2 * i * count + steps) // (2 * steps) for i in range(steps + 1)]
    else:
        step = choices.step_size
        if step is None:
            assert choices.steps is not None, "checked when the choices were made"
            step = max(1, count // choices.steps) if choices.rounding == "down" else -(-count // choices.steps)
        moved = [*range(0, count, step), count]
    moved = moved[choices.ends in ("last", "neither") :]
    moved = moved[: len(moved) - (choices.ends in ("first", "neither"))]
    return moved, torch.tensor(moved, dtype=torch.float64) / count


def questions(net: Classifier, options: Mapping[str, Any]) -> int | None:
    """How many masked images a curve asks about, for each image; None where the size of its map decides it."""
    units = options["units"]
    if units == "cells":
        return None
    given = {field.name: options[field.name] for field in fields(CurveChoices)}
    points = len(positions(CurveChoices(**given), math.prod(net.size) if units == "pixels" else int(units) ** 2)[0])
    return points * (len(options["baseline"]) if isinstance(options["baseline"], (list, tuple)) else 1)


def integration_weights(x: Tensor, rule: Integration) -> tuple[Tensor, float]:
    """The integral of a curve at positions x, [T] float64, as a weighted sum: weights [T], and a number to add."""
    count = len(x)
    if rule == "mean":
        return torch.full_like(x, 1 / count), 0.0
    if rule in ("right", "right-defect"):
        widths = x.diff(prepend=x.new_zeros(1))
        if rule == "right":
            return widths, 0.0
        last = float(widths[-1])
        widths[-1] = 0
        return widths, last
    if count < 2:
        raise OptionError(f"integration={rule!r} needs two points or more; there is {count}.")
    if rule == "trapezoid-points":
        x = torch.linspace(0, 1, count, dtype=torch.float64)
    half = x.diff() / 2
    weights = torch.zeros_like(x)
    weights[:-1] += half
    weights[1:] += half
    return (weights if rule == "trapezoid-unscaled" else weights / (x[-1] - x[0])), 0.0


def trace(given: MapBatch, choices: CurveChoices, act: Act) -> Outcome:
    """Curves of images, and the areas under them; one part for each baseline where there are several.

    Args:
        given: The images and their maps.
        choices: How.
        act: ``"insert"`` the most important first; ``"remove"`` them first; or ``"remove least"`` important ones first.
            All go along the same order, so ties are no different between them.
    """
    if not isinstance(choices.baseline, (list, tuple)):
        return _trace(given, choices, choices.baseline, act)
    if not choices.baseline:
        raise OptionError("The list of baselines is empty; name one or more.")
    names = [b if isinstance(b, str) else f"baseline[{i}]" for i, b in enumerate(choices.baseline)]
    traced = (_trace(given, choices, b, act) for b in choices.baseline)
    return combined(dict(zip(names, traced, strict=True)), "mean")


def _trace(given: MapBatch, choices: CurveChoices, baseline: Any, act: Act) -> Outcome:
    ranking = given.ranking(choices.units, choices.enlargement, choices.masks)
    moved, x = positions(choices, ranking.count)
    if not moved:
        raise OptionError("The curve has no point: ends='neither' takes two steps or more.")
    show: Show = "rest" if act == "remove" else "below"
    counts = [ranking.count - k for k in moved] if act == "remove least" else moved
    seen = given.respond(baseline, ranking, show, counts).value(choices.value)
    nothing = given.respond(baseline, ranking, "below", [0]).value(choices.value)[:, 0]
    weights, constant = integration_weights(x, choices.integration)
    whole = given.whole.value(choices.value)
    return of_curves(Curves(x, seen, whole, nothing, weights * choices.scale, constant * choices.scale))
