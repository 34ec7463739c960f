"""Metrics that are areas under curves: insertion, deletion, their difference, MoRF and LeRF, POS and NEG."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from suffice.metrics.curves import CurveChoices, questions, trace
from suffice.metrics.map_batch import MapBatch
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Outcome, combined

RISE = "Petsiuk, Das, Saenko, RISE, BMVC 2018"
SAMEK = "Samek et al., Evaluating the Visualization of What a Deep Neural Network Has Learned, TNNLS 2017"
CHEFER = "Chefer, Gur, Wolf, Transformer Interpretability Beyond Attention Visualization, CVPR 2021"
REGIONS = CurveChoices(units=14, steps=None, step_size=1)
TENTHS = CurveChoices(
    baseline="black", steps=None, fractions=tuple(i / 10 for i in range(1, 10)), value="accuracy"
)  # fmt: skip

_curve = partial(metric, bounds=(0, 1), needs=("maps", "model"), questions=questions)


@_curve("insertion", higher_is_better=True, reference=RISE, choices=CurveChoices())
def insertion(given: MapBatch, choices: CurveChoices) -> Outcome:
    """Area under the score while the most important pixels are inserted."""
    return trace(given, choices, "insert")


@_curve("deletion", higher_is_better=False, reference=RISE, choices=CurveChoices())
def deletion(given: MapBatch, choices: CurveChoices) -> Outcome:
    """Area under the score while the most important pixels are deleted."""
    return trace(given, choices, "remove")


@_curve("morf", higher_is_better=False, reference=SAMEK, choices=REGIONS)
def morf(given: MapBatch, choices: CurveChoices) -> Outcome:
    """Mean score while the most relevant regions are removed first."""
    return trace(given, choices, "remove")


@_curve("lerf", higher_is_better=True, reference=SAMEK, choices=REGIONS)
def lerf(given: MapBatch, choices: CurveChoices) -> Outcome:
    """Mean score while the least relevant regions are removed first."""
    return trace(given, choices, "remove least")


@_curve("pos", higher_is_better=False, reference=CHEFER, choices=TENTHS)
def pos(given: MapBatch, choices: CurveChoices) -> Outcome:
    """Accuracy while the most important 10 to 90 % of the pixels are removed (positive perturbation)."""
    return trace(given, choices, "remove")


@_curve("neg", higher_is_better=True, reference=CHEFER, choices=TENTHS)
def neg(given: MapBatch, choices: CurveChoices) -> Outcome:
    """Accuracy while the least important 10 to 90 % of the pixels are removed (negative perturbation)."""
    return trace(given, choices, "remove least")


@dataclass(frozen=True)
class InsDelChoices(CurveChoices):
    """Every choice behind both curves; ``deletion_baseline`` is None where it is the same as of insertion."""

    deletion_baseline: Any = None


@metric(
    "ins-del",
    higher_is_better=True,
    bounds=(-1, 1),
    needs=("maps", "model"),
    reference="Zhang, Rao, Yang, Group-CAM, 2021 (the overall score)",
    choices=InsDelChoices(),
    questions=lambda net, options: (one := questions(net, options)) and 2 * one,
)
def ins_del(given: MapBatch, choices: InsDelChoices) -> Outcome:
    """Insertion less deletion; both are found in the parts."""
    other = choices.baseline if choices.deletion_baseline is None else choices.deletion_baseline
    removed = trace(given, replace(choices, baseline=other), "remove")
    return combined({"insertion": trace(given, choices, "insert"), "deletion": removed}, "difference")
