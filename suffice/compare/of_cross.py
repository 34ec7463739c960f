"""Tables about a cross-test, and about activations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.compare.channels import Activations
from suffice.compare.cross_result import CrossTest
from suffice.compare.indices import Index
from suffice.compare.pairwise import Numbers
from suffice.compare.sections import Section

TOP = 10  # channels
FEW = 6  # so many models have room for their names above columns


def of_cross_test(found: CrossTest, name: str) -> list[Section]:
    """Matrices, landscape and families of a cross-test, for each metric.

    Args:
        found: The cross-test.
        name: Of the measurement.
    """
    made = []
    for metric in found.metrics:
        part, title = f"{name}-{metric.replace('/', '-')}", f"{name}: {metric}"
        raw, normalized = found.scores(metric), found.normalized(metric)
        made += [
            _matrix(found, raw, part, f"{title}, maps of (row) tested on (column)", ()),
            _matrix(
                found, normalized, f"{part}-normalized", f"{title}, normalized",
                ("(s - b) / (t - b), with the tested model's mean confidence on whole images, t, and baselines, b.",),
            ),
        ]  # fmt: skip
        if len(found.models) > 2:
            if np.isfinite(normalized).all():  # else nobody can be placed
                made.append(_landscape(found, metric, part, title))
            made.append(_families(found, metric, part, title))
    return made


def _matrix(found: CrossTest, values: Numbers, name: str, title: str, notes: tuple[str, ...]) -> Section:
    rows = [[model, *(float(value) for value in row)] for model, row in zip(found.models, values, strict=True)]
    few = len(found.models) <= FEW
    short = () if few else ("maps of", *(f"{number + 1}" for number in range(len(found.models))))
    return Section(name, title, ("maps of", *found.models), rows, notes, short=short)


def _landscape(found: CrossTest, metric: str, name: str, title: str) -> Section:
    """Positions, how sure they are, and the nearest model."""
    place = found.landscape(metric)
    spread = np.full((len(found.models), 2, 2), np.nan) if place.spread is None else place.spread
    apart = np.linalg.norm(place.positions[:, None] - place.positions[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    rows: list[list[Any]] = [
        [model, family, *(float(x) for x in place.positions[i]), *(float(v**0.5) for v in np.diag(spread[i])),
         found.models[int(apart[i].argmin())]]
        for i, (model, family) in enumerate(zip(found.models, found.families, strict=True))
    ]  # fmt: skip
    shares = " and ".join(f"{share:.0%}" for share in place.explained)
    note = (
        f"Kernel PCA: the two directions explain {shares} of the positive part; {place.negative:.0%} of the "
        "eigenvalues are negative, which no positions show. Deviations are those of the bootstrap over images."
    )
    columns = ("model", "family", "x", "y", "deviation of x", "of y", "nearest")
    return Section(f"{name}-landscape", f"{title}, landscape", columns, rows, (note,))


def _families(found: CrossTest, metric: str, name: str, title: str) -> Section:
    """Means by family, with intervals, and whether families matter."""
    matrix = found.by_family(metric)
    rows = [
        [family, *(_cell(matrix.means[i, j], matrix.low[i, j], matrix.high[i, j]) for j in range(len(matrix.families)))]
        for i, family in enumerate(matrix.families)
    ]
    if np.isnan(matrix.within):
        note = "Families cannot be tested: pairs within and between families are needed."
    else:
        note = (
            f"Pairs within families less pairs between them: {matrix.within:+.3f}; permutation test, one-sided: "
            f"p = {matrix.p:.3g}. Normalized means without the models' own maps, 95 % intervals over images."
        )
    return Section(f"{name}-families", f"{title}, families", ("maps of", *matrix.families), rows, (note,))


def _cell(value: float, low: float, high: float) -> Index | None:
    return None if np.isnan(value) else Index(float(value), float(low), float(high))


def of_activations(found: Mapping[str, Activations], name: str) -> Section:
    """How unevenly the activations of channels are spread, of each model.

    Args:
        found: Activations by model.
        name: Of the measurement.
    """
    rows = []
    for model, one in found.items():
        means = one.sorted_means
        top = float(np.clip(means[:TOP], 0, None).sum() / max(np.clip(means, 0, None).sum(), 1e-30))
        rows.append(
            [model, one.layer, len(means), Index(one.dominance, *one.interval()), top, float(means[0]), len(one.maxima)]
        )
    columns = ("model", "layer", "channels", "dominance", f"share of the first {TOP}", "strongest", "images")
    note = (
        "Dominance is the Gini index of the mean maxima of channels: 0 where all are alike, near 1 where one decides. "
        "Few images make it too high; its 95 % interval allows for that, and so reaches further down than up."
    )
    return Section(name, f"{name}: do a few channels decide?", columns, rows, (note,))
