"""Means of models with their intervals: Tables 1 and 2 of the papers as dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.compare.pairwise import as_columns, bootstrap_mean, holm, wilcoxon_each
from suffice.compare.ranking import letters_of
from suffice.draw.theme import Looks
from suffice.report.figures import queries
from suffice.report.figures.charts import Marked, altair, data_of, names_axis, sentence, specification
from suffice.report.figures.drawing import Behind, Drawing
from suffice.report.figures.papers import CVPR, PREPRINT
from suffice.report.figures.reading import aligned, families_of, good_rows, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.study import Study

if TYPE_CHECKING:
    import pyarrow

DRAWS = 999
TICKS = 8  # more would stand in each other's way on an axis of decimals
COLUMNS = ("index", "mses", "mean_size", "distinct_50")
QUANTITIES = {
    "mses": ("mses", "Minimal sufficient explanations (MSEs) an image", "MSEs an image"),
    "mean_size": ("mse-size", "Cells of a minimal sufficient explanation (MSE)", "cells of an MSE, mean of an image"),
    "distinct_50": (
        "subexplanations",
        "Sub-explanations that keep half of the confidence",
        "sub-explanations ≥ 50 %, an image",
    ),
}


def interval_table(
    values: Mapping[str, Sequence[float]], families: Mapping[str, str], *, level: float = 0.95, seed: int = 0
) -> pyarrow.Table:
    """Mean and bootstrap interval of each model, and letters: models that share one do not differ significantly.

    Args:
        values: For each model one number an image, in the same order; NaN where an image has none.
        families: Of each model.
        level: Of the intervals.
        seed: Of the bootstrap.

    Returns:
        Columns ``model``, ``family``, ``mean``, ``low``, ``high``, ``images``, ``letters``.

    Example:
        >>> table = interval_table({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 4.0]}, {"a": "x", "b": "y"})
        >>> table["mean"].to_pylist()[0], table["letters"].to_pylist()
        (2.0, ['a', 'a'])
    """
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    for number, (model, column) in enumerate(values.items()):
        some = np.asarray(column, dtype=float)
        some = some[np.isfinite(some)]
        if not len(some):
            continue
        ends = bootstrap_mean(some, level, DRAWS, np.random.default_rng([seed, number])) if len(some) > 1 else None
        low, high = ends or (float("nan"), float("nan"))
        rows.append(
            {"model": model, "family": families.get(model, ""), "mean": float(some.mean()), "low": low, "high": high,
             "images": len(some)}
        )  # fmt: skip
    letters = _letters({row["model"]: values[row["model"]] for row in rows}, {r["model"]: r["mean"] for r in rows})
    return pa.Table.from_pylist([{**row, "letters": letters.get(row["model"], "")} for row in rows])


def _letters(values: Mapping[str, Sequence[float]], means: Mapping[str, float]) -> dict[str, str]:
    """Letters by Wilcoxon's test of every two models, corrected by Holm's rule; none for a model alone."""
    if len(values) < 2:
        return {}
    columns = as_columns(values)
    pairs = list(combinations(columns, 2))
    differences = [columns[a] - columns[b] for a, b in pairs]
    adjusted = holm(wilcoxon_each([both[np.isfinite(both)] for both in differences]))
    different = [pair for pair, p in zip(pairs, adjusted, strict=True) if p < 0.05]
    return letters_of(sorted(means, key=lambda model: means[model], reverse=True), different)


def interval_chart(table: pyarrow.Table, axis: str, log: bool = False) -> dict[str, Any]:
    """Dots with intervals, one line a model, and its letters; see :func:`interval_table`."""
    alt = altair()
    looks = Looks.of_models(dict(zip(table["model"].to_pylist(), table["family"].to_pylist(), strict=True)))
    marked = Marked("model", looks)
    base = alt.Chart(data_of(table)).encode(y=alt.Y("model:N", sort=list(looks.names), axis=names_axis()))
    scale = alt.Scale(type="log") if log else alt.Scale(zero=False, nice=True)
    across = alt.Axis(title=axis, tickCount=TICKS)
    tips = [
        alt.Tooltip("model:N"), alt.Tooltip("family:N"), alt.Tooltip("mean:Q", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g", title="from"), alt.Tooltip("high:Q", format=".4~g", title="to"),
        alt.Tooltip("images:Q"), alt.Tooltip("letters:N"),
    ]  # fmt: skip
    rule = base.mark_rule(strokeWidth=2.5).encode(
        x=alt.X("low:Q", scale=scale, axis=across), x2="high:Q", color=marked.color(legend=False), tooltip=tips
    )
    dots = base.mark_point(filled=True, size=95, opacity=1).encode(
        x=alt.X("mean:Q", scale=scale, axis=across),
        color=marked.color(legend=False),
        shape=marked.shape(legend=False),
        tooltip=tips,
    )
    letters = base.mark_text(align="left", dx=7, fontSize=11).encode(x="high:Q", text="letters:N")
    return specification(alt.layer(rule, dots, letters), height=24 * len(looks.names))


@figure(
    "summary",
    "How many explanations, how large, how many below them",
    needs="evidence",
    papers=(f"{CVPR}, Tables 1 and 2", f"{PREPRINT}, Table 1"),
    order=10,
)
def summary(study: Study, *, measurement: str | None = None) -> list[Drawing]:
    """Mean and interval of each model: number and size of MSEs, sub-explanations."""
    made = []
    for name in tables_of(study, "evidence", measurement):
        rows = good_rows(study, name, COLUMNS)
        for column, (short, title, axis) in QUANTITIES.items():
            values = aligned(rows, column)
            table = interval_table(values, families_of(study, list(values)))
            made.append(
                Drawing(
                    name=f"summary-{short}",
                    title=title,
                    reading="Dots are means over images, lines their 95 % bootstrap intervals. Models that share a "
                    "letter do not differ significantly (Wilcoxon's test, image by image, corrected by Holm's rule).",
                    alt=f"{title}, mean and 95 % interval: {interval_words(table)}.",
                    spec=interval_chart(table, axis),
                    table=table,
                    source=origin(study, [name], "Intervals and letters: suffice.compare."),
                    query=queries.mean_of_models(study, name, {"mean": column}),
                    behind=Behind(name, {"model": ("model", "is")}),
                )
            )
    return made


def interval_words(table: pyarrow.Table, most: int = 20) -> str:
    """Means and intervals as words.

    Example:
        >>> interval_words(interval_table({"a": [2.0, 2.0, 2.0]}, {"a": "x"}))
        'a 2 [2, 2]'
    """
    return sentence(
        (f"{row['model']} {row['mean']:.3g} [{row['low']:.3g}, {row['high']:.3g}]" for row in table.to_pylist()), most
    )
