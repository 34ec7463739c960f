"""Cross-tests and families as matrices of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.compare import CrossTest
from suffice.compare.families import FamilyMatrix
from suffice.draw.palettes import INK, RAMP
from suffice.draw.theme import Looks
from suffice.report.figures import queries
from suffice.report.figures.charts import altair, data_of, sentence, specification
from suffice.report.figures.drawing import Behind, Drawing
from suffice.report.figures.papers import CVPR, PREPRINT
from suffice.report.figures.reading import good_rows, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.study import Study

if TYPE_CHECKING:
    import pyarrow

NORMALIZED = (
    "Normalized: (score - low) / (high - low), with means over images of the tested model's confidence on whole images "
    "(high) and on the baseline (low)."
)


def cross_tests(study: Study, measurement: str | None = None, method: str | None = None) -> list[tuple[str, CrossTest]]:
    """The cross-tests of a study, one for each method whose maps were tested, with the names of their tables."""
    import pyarrow.compute as pc

    found = []
    for name in tables_of(study, "cross-test", measurement):
        rows = good_rows(study, name, ())
        # Of a study that runs, the maps of models that were tested themselves.
        rows = rows.filter(pc.is_in(rows["maps_of"], pc.unique(rows["model"])))
        there = dict.fromkeys(rows["method"].to_pylist()) if "method" in rows.column_names else {None: None}
        found += [(name, CrossTest.from_table(rows, one)) for one in there if method in (None, one)]
    return found


def cross_query(study: Study, table: str, found: CrossTest, metric: str, *, families: bool = False) -> str:
    """SQL for the matrix of a cross-test by a metric, or for that of families."""
    own = f"hidden_{metric}"  # where the score of a baseline is not its confidence
    hidden = own if own in good_rows(study, table, (own,)).column_names else "hidden"
    query = queries.crossed_families if families else queries.crossed
    return query(study, table, metric, hidden, found.about.get("method"))


def matrix_table(values: np.ndarray, rows: list[str], columns: list[str], **more: np.ndarray) -> pyarrow.Table:
    """A matrix as a table: ``row``, ``column``, ``value``, and further matrices of the same shape by name."""
    import pyarrow as pa

    return pa.Table.from_pylist(
        [
            {"row": row, "column": column, "value": float(values[i, j])}
            | {name: float(other[i, j]) for name, other in more.items()}
            for i, row in enumerate(rows)
            for j, column in enumerate(columns)
        ]
    )


def matrix_chart(
    table: pyarrow.Table,
    *,
    down: str,
    across: str,
    order: list[str] | None = None,
    columns: list[str] | None = None,
    format: str = ".2f",
    value: str = "score",
    diverging: float | None = None,
    mark: str | None = None,
    shade: str = "value",
    step: int = 30,
) -> dict[str, Any]:
    """A heat map with its numbers.

    Args:
        table: As :func:`matrix_table` makes it.
        down: What rows are.
        across: What columns are.
        order: Of rows; default: as they come.
        columns: Order of columns; default: that of rows.
        format: Of the numbers.
        value: What the numbers are.
        diverging: The middle of a scale with two sides.
        mark: Column with signs that are written after numbers.
        shade: Column that colors are made of, where that is not the number.
        step: Height of a row in pixels.
    """
    alt = altair()
    rows = order or list(dict.fromkeys(table["row"].to_pylist()))
    heads = (
        columns
        or [c for c in rows if c in set(table["column"].to_pylist())]
        or list(dict.fromkeys(table["column"].to_pylist()))
    )
    numbers = np.array([v for v in table[shade].to_pylist() if v is not None and np.isfinite(v)])
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    if diverging is None:
        scale = alt.Scale(domain=[low, high if high > low else low + 1], range=list(RAMP))
        pale = f"isValid(datum.{shade}) && datum.{shade} > {low + 0.48 * (high - low)}"
    else:
        far = max(abs(low - diverging), abs(high - diverging), 1e-9)
        scale = alt.Scale(domain=[diverging - far, diverging, diverging + far], scheme="blueorange", reverse=True)
        pale = f"isValid(datum.{shade}) && abs(datum.{shade} - {diverging}) > {0.7 * far}"
    tips = [alt.Tooltip("row:N", title=down), alt.Tooltip("column:N", title=across)]
    tips += [
        alt.Tooltip(f"{name}:Q", format=".4~g", title=value if name == "value" else name)
        for name in table.column_names
        if name not in ("row", "column", mark, None if shade == "value" else shade)
    ]
    base = alt.Chart(data_of(table)).encode(
        x=alt.X("column:N", sort=heads, axis=_heads(across, heads)),
        y=alt.Y("row:N", sort=rows, axis=alt.Axis(title=down, labelLimit=alt.ExprRef(expr="width < 330 ? 90 : 200"))),
        tooltip=tips,
    )
    bar = alt.Legend(orient="bottom", title=value, gradientLength=150) if shade == "value" else None
    cells = base.mark_rect(cornerRadius=1, stroke="white", strokeOpacity=0.25).encode(
        color=alt.Color(f"{shade}:Q", scale=scale, legend=bar)
    )
    plain = f"isValid(datum.value) ? format(datum.value, '{format}') : '–'"
    text = plain if mark is None else f"({plain}) + (isValid(datum.{mark}) ? datum.{mark} : '')"
    # Numbers that do not fit are left out; they are in the tooltips and in the table.
    size = alt.ExprRef(expr=f"width / {max(len(heads), 1)} < 22 ? 0 : width / {max(len(heads), 1)} < 30 ? 9 : 11")
    inks = {f"!isValid(datum.{shade})": None, pale: "white", f"isValid(datum.{shade}) && !({pale})": INK}
    labels = [
        base.transform_calculate(shown=text)
        .transform_filter(where)
        .mark_text(fontSize=size, **({} if ink is None else {"color": ink}))
        .encode(text="shown:N")
        for where, ink in inks.items()
    ]
    return specification(alt.layer(cells, *labels), height=step * len(rows), right=_overhang(heads))


def _fit(heads: list[str]) -> bool:
    """Whether names stand beside each other above the columns of a narrow page."""
    return 260 / max(len(heads), 1) > 7 * max((len(name) for name in heads), default=0) + 8


def _overhang(heads: list[str]) -> float:
    """How far slanted names stand out at the right, in pixels."""
    wide = 450 / max(len(heads), 1)
    reach = [min(6.6 * len(name), 130) * 0.66 - (len(heads) - i - 0.5) * wide for i, name in enumerate(heads)]
    return 0.0 if _fit(heads) else max(reach, default=0.0)


def _heads(title: str, heads: list[str]) -> Any:
    """An axis of names above columns: level where they fit a narrow page, else slanted."""
    alt = altair()
    level = _fit(heads)
    slanted = {"labelAngle": -50, "labelAlign": "left", "labelBaseline": "middle", "labelPadding": 9}
    how: dict[str, Any] = {} if level else slanted
    return alt.Axis(
        title=title,
        orient="top",
        labelAngle=how.pop("labelAngle", 0),
        labelLimit=130,
        labelOverlap=False,
        ticks=False,
        domain=False,
        **how,
    )


@figure(
    "cross-test",
    "Is what one model finds important enough for another?",
    needs="cross-test",
    papers=(f"{CVPR}, Figure 3", f"{PREPRINT}, Table 7"),
    order=40,
)
def cross_test(
    study: Study, *, measurement: str | None = None, method: str | None = None, metric: str | None = None
) -> list[Drawing]:
    """Normalized scores of the maps of every model (rows) on every model (columns)."""
    made = []
    for name, found in cross_tests(study, measurement, method):
        for one in found.metrics if metric is None else [metric]:
            looks = Looks.of_models(dict(zip(found.models, found.families, strict=True)))
            names = list(found.models)
            table = matrix_table(found.normalized(one), names, names, raw=found.scores(one))
            own, other = _own_and_other(found.normalized(one))
            made.append(
                Drawing(
                    name=f"cross-test-{one}",
                    title=f"Cross-test by {one}: maps of one model, shown to another",
                    reading=f"The number is the {one} score of the row's maps on the column's model, from 0 (the "
                    "baseline alone) to 1 (the whole image). The diagonal is each model with its own maps.",
                    alt=f"Cross-test of {len(names)} models by {one}, normalized. Mean with own maps {own:.2f}, with "
                    f"those of others {other:.2f}. Own maps: "
                    + sentence((f"{m} {found.normalized(one)[i, i]:.2f}" for i, m in enumerate(names)), 20)
                    + ".",
                    spec=matrix_chart(
                        table, down="maps of", across="tested on", order=list(looks.names), value=f"{one}, normalized"
                    ),
                    table=table,
                    source=origin(study, [name], NORMALIZED),
                    query=cross_query(study, name, found, one),
                    behind=Behind(name, {"row": ("maps_of", "is"), "column": ("model", "is")}),
                )
            )
    return made


@figure(
    "families",
    "Do models of a family test alike?",
    needs="cross-test",
    papers=(f"{CVPR}, Figure 8",),
    order=41,
)
def families(
    study: Study, *, measurement: str | None = None, method: str | None = None, metric: str | None = None
) -> list[Drawing]:
    """The cross-test, averaged by the family of the map and the family tested."""
    made = []
    for name, found in cross_tests(study, measurement, method):
        if len(set(found.families)) < 2:
            continue
        for one in found.metrics if metric is None else [metric]:
            matrix = found.by_family(one)
            names = [family or "no family" for family in matrix.families]
            table = matrix_table(matrix.means, names, names, low=matrix.low, high=matrix.high, pairs=matrix.pairs)
            made.append(
                Drawing(
                    name=f"families-{one}",
                    title=f"Cross-test by {one}, averaged over families",
                    reading="Mean over pairs of different models. A diagonal that is higher than the rest means that "
                    f"models of a family find the same things important; {_verdict(matrix)}.",
                    alt=f"Mean cross-test scores within and between {len(names)} families by {one}: within less "
                    f"between {matrix.within:.3f}, p = {matrix.p:.2g}. Within: "
                    + sentence(
                        f"{f} {own:.2f}" for f, own in zip(names, np.diag(matrix.means), strict=True) if own == own
                    )
                    + ".",
                    spec=matrix_chart(
                        table, down="maps of", across="tested on", order=names, value=f"{one}, normalized", step=44
                    ),
                    table=table,
                    source=origin(study, [name], f"{NORMALIZED}\nIntervals and test: suffice.compare.family_matrix."),
                    query=cross_query(study, name, found, one, families=True),
                    behind=Behind(name, {"column": ("family", "is")}),
                )
            )
    return made


def _own_and_other(matrix: np.ndarray) -> tuple[float, float]:
    """Mean on the diagonal, and beside it."""
    beside = matrix[~np.eye(len(matrix), dtype=bool)]
    return float(np.nanmean(np.diag(matrix))), float(np.nanmean(beside)) if beside.size else float("nan")


def _within(matrix: FamilyMatrix, names: list[str]) -> str:
    """Means within the families that have two models or more."""
    own = zip(names, np.diag(matrix.means).tolist(), strict=True)
    return sentence(f"{name} {mean:.2f}" for name, mean in own if not np.isnan(mean))


def _verdict(matrix: FamilyMatrix) -> str:
    if np.isnan(matrix.p):
        return "no family here has two models, so that this cannot be tested"
    clear = "which could hardly be chance" if matrix.p < 0.05 else "which could be chance"
    way = "higher" if matrix.within >= 0 else "lower"
    return f"here it is {way} by {abs(matrix.within):.3f} (permutation of families, p = {matrix.p:.2g}), {clear}"
