"""What of a study is compared: quantities of each image, by model and by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from suffice.attribution import find_method
from suffice.compare.pairwise import Numbers
from suffice.errors import SufficeError
from suffice.metrics import find_metric
from suffice.report.figures.reading import good_rows
from suffice.report.page.comparing import Comparison, Quantity
from suffice.study.kinds.metrics import Metrics

if TYPE_CHECKING:
    import pyarrow

    from suffice.study import Study

MSES = Quantity("mses", "minimal sufficient explanations (MSEs)", "ways", counts=True)
SIZE = Quantity(
    "mean_size", "cells of an MSE", "enough",
    says="{first} needs {by} {more} cells for a minimal sufficient explanation than {second}", ways=("more", "fewer"),
)  # fmt: skip
INDEPENDENT = Quantity("diverse_0", "ways to decide that share no cell", "ways", counts=True)
BELOW_80 = Quantity("distinct_80", "sub-explanations at ≥ 80 %", "ways", counts=True)
BELOW_50 = Quantity("distinct_50", "sub-explanations at ≥ 50 %", "ways", counts=True)
RIGHT = Quantity(
    "correct", "accuracy", "studied", scale=100, higher_is_better=True,
    says="{first} is right on {by} percentage points {more} of the images than {second}", ways=("more", "less"),
    ends=("the best", "the last"),
)  # fmt: skip
OF_EVIDENCE = (SIZE, MSES, BELOW_80, BELOW_50, INDEPENDENT)


class Columns:
    """Columns of a table of a study as numbers, one for each model and image.

    Args:
        study: That was run.
        table: Its name.
        columns: Which.
    """

    def __init__(self, study: Study, table: str, columns: Sequence[str]) -> None:
        self.plan = study.plan
        self.rows: pyarrow.Table = good_rows(study, table, ["index", *columns])
        self.models = list(dict.fromkeys(self.rows["model"].to_pylist()))
        self._place = {model: number for number, model in enumerate(self.models)}
        self._model = np.array([self._place[model] for model in self.rows["model"].to_pylist()], dtype=int)
        self._index = self.rows["index"].to_numpy()

    def grid(self, column: str) -> Numbers:
        """A column as [models, images], NaN where there is nothing."""
        found = np.full((len(self.models), len(self.plan.names)), np.nan)
        values = self.rows[column].cast("float64").to_numpy(zero_copy_only=False)
        found[self._model, self._index] = values
        return found

    def groups(self) -> dict[str, list[int]]:
        """Positions of the trainings of each architecture; most have one."""
        found: dict[str, list[int]] = {}
        for number, model in enumerate(self.models):
            planned = self.plan.model(model)
            found.setdefault(planned.group if planned.seed is not None else model, []).append(number)
        return found


def evidence_columns(study: Study, table: str) -> Columns:
    """What is compared of a table of evidence."""
    return Columns(study, table, [quantity.key for quantity in OF_EVIDENCE])


def compare_evidence(columns: Columns) -> list[Comparison]:
    """Every two models by each quantity of evidence, over the images in which both have some."""
    none = columns.grid("mses") == 0
    return [_by_model(columns, quantity, none) for quantity in OF_EVIDENCE]


def compare_predictions(columns: Columns) -> Comparison | None:
    """Every two models by how often they are right; None where images have no labels."""
    right = columns.grid("correct")
    return _by_model(columns, RIGHT) if np.isfinite(right).any() else None


def _by_model(columns: Columns, quantity: Quantity, leave_out: np.ndarray | None = None) -> Comparison:
    grid = columns.grid(quantity.key)
    if leave_out is not None:
        grid[leave_out] = np.nan
    groups = columns.groups()
    trainings = {name: grid[rows] for name, rows in groups.items()}
    means = {name: own.mean(axis=0) for name, own in trainings.items()}  # of images that all its trainings have
    members = {name: [columns.models[row] for row in rows] for name, rows in groups.items()}
    return Comparison(quantity, list(groups), lambda a, b: (means[a], means[b]), trainings, members)


class MethodScores:
    """Scores of methods in one table of a study: values [models, images] of each method and metric."""

    def __init__(self, study: Study, table: str) -> None:
        plan = study.plan
        measurement = plan.measurements[plan.asked.named(table)[0]]
        assert isinstance(measurement, Metrics)
        self.table, self.protocol, self.metrics = table, measurement.protocol, list(measurement.metrics)
        self.options = dict(measurement.options)
        rows = good_rows(study, table, ["index", "method", *self.metrics])
        models = [model.label for model in plan.models if model.label in set(rows["model"].to_pylist())]
        methods = rows["method"].to_pylist()
        self.models, self.methods = models, list(dict.fromkeys(methods))
        place = [{name: number for number, name in enumerate(names)} for names in (models, self.methods)]
        where = (
            [place[1][method] for method in methods],
            [place[0][model] for model in rows["model"].to_pylist()],
            rows["index"].to_numpy(),
        )
        self.values: dict[str, Numbers] = {}
        for metric in self.metrics:
            values = np.full((len(self.methods), len(models), len(plan.names)), np.nan)
            values[where] = rows[metric].cast("float64").to_numpy(zero_copy_only=False)
            self.values[metric] = values

    @cached_property
    def controls(self) -> list[str]:
        """Methods that look at nothing, such as random maps."""
        return [name for name in self.methods if _is_control(name)]

    def models_of_methods(self) -> dict[str, tuple[str, ...]]:
        """The models that each method was run on."""
        found = {}
        for number, method in enumerate(self.methods):
            own = [np.isfinite(values[number]).max(axis=1) for values in self.values.values()]  # [models] each
            found[method] = tuple(model for model, some in zip(self.models, np.max(own, axis=0), strict=True) if some)
        return found

    def shared(self, metric: str, first: str, second: str) -> list[str]:
        """The models that both of two methods were judged on by a metric."""
        there = np.isfinite(self.values[metric]).max(axis=2)  # [methods, models]
        both = there[self.methods.index(first)] & there[self.methods.index(second)]
        return [model for model, some in zip(self.models, both, strict=True) if some]

    def comparison(self, metric: str) -> Comparison:
        """Every two methods by a metric: values of an image are means over the models that both methods fit."""
        values = self.values[metric]
        there = np.isfinite(values).max(axis=2)  # [methods, models]

        def both(first: str, second: str) -> tuple[Numbers, Numbers]:
            a, b = self.methods.index(first), self.methods.index(second)
            shared = there[a] & there[b]
            if not shared.any():
                return np.array([np.nan]), np.array([np.nan])
            return values[a][shared].mean(axis=0), values[b][shared].mean(axis=0)

        better = direction(metric)
        quantity = Quantity(
            metric, metric, "truest", higher_is_better=better,
            says=f"By {metric}, {{first}} scores {{by}} {{more}} than {{second}}",
            ends=("the best", "the last"),
        )  # fmt: skip
        return Comparison(quantity, self.methods, both)


def direction(metric: str) -> bool | None:
    """Whether higher is better; None where neither way is, or the metric is not known here."""
    try:
        return find_metric(metric.partition("/")[0]).higher_is_better
    except SufficeError:
        return None


def _is_control(name: str) -> bool:
    try:
        return "control" in find_method(name).reference
    except SufficeError:
        return False


def of_families(comparison: Comparison, families: Mapping[str, str]) -> Comparison | None:
    """The same quantity of families: means over their models; None without two families of two models or more."""
    members: dict[str, list[str]] = {}
    for name in comparison.names:
        members.setdefault(families.get(name, ""), []).append(name)
    large = {family: names for family, names in members.items() if family and len(names) > 1}
    if len(large) < 2:
        return None
    own = {
        f"the family {family}": np.mean([comparison.values_of(name) for name in names], axis=0)
        for family, names in large.items()
    }
    named = {f"the family {family}": names for family, names in large.items()}
    return Comparison(comparison.quantity, list(own), lambda a, b: (own[a], own[b]), members=named)
