"""Reading tables of studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.compare.pairwise import Numbers
from suffice.errors import OptionError

if TYPE_CHECKING:
    import pyarrow

    from suffice.study import Study


def tables_of_kind(study: Study, kind: str) -> list[str]:
    """Names of the tables of a study with measurements of a kind."""
    names = {name.partition("/")[0]: one.kind for name, one in study.asked.measurements.items()}
    return [name for name in study.tables if names[name] == kind]


def chosen_table(study: Study, kind: str, measurement: str | None = None) -> pyarrow.Table:
    """The rows of a measurement of a kind that have no error, by its name or as the only one of its kind."""
    names = tables_of_kind(study, kind)
    if measurement is None and len(names) != 1:
        there = f"say which is meant: {', '.join(names)}" if names else "there is none"
        raise OptionError(f"Expected a study with one measurement of the kind {kind!r}; {there}.")
    return without_errors(study.table(measurement or names[0]))


def without_errors(table: pyarrow.Table) -> pyarrow.Table:
    """The rows that have no error."""
    return table.filter(table["error"].is_null()) if "error" in table.column_names else table


def sole_method(table: pyarrow.Table, method: str | None = None) -> pyarrow.Table:
    """The rows of a method, or of the only one."""
    import pyarrow.compute as pc

    table = without_errors(table)
    if "method" not in table.column_names:
        return table
    methods = table["method"].unique().to_pylist()
    if (method is None and len(methods) > 1) or (method is not None and method not in methods):
        raise OptionError(f"Say which method is meant: {', '.join(map(str, methods))}.")
    return table if method is None else table.filter(pc.equal(table["method"], method))


def floats(table: pyarrow.Table, name: str) -> Numbers:
    """A column of a table as numbers, NaN where there is none, [N]."""
    return np.array([np.nan if value is None else value for value in table[name].to_pylist()], dtype=float)


def by_model(table: pyarrow.Table) -> dict[str, pyarrow.Table]:
    """The rows of each model, in order."""
    import pyarrow.compute as pc

    return {model: table.filter(pc.equal(table["model"], model)) for model in table["model"].unique().to_pylist()}


def numbers_of(table: pyarrow.Table, column: str) -> dict[str, Numbers]:
    """A column as one number for each model and image, all in the same order, NaN where there is none."""
    models, index = table["model"].to_pylist(), table["index"].to_pylist()
    place = {image: number for number, image in enumerate(sorted(set(index)))}
    found = {model: np.full(len(place), np.nan) for model in dict.fromkeys(models)}
    for model, image, value in zip(models, index, floats(table, column), strict=True):
        found[model][place[image]] = value
    return found
