"""Where models lie by their cross-test: positions with ellipses, and a tree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from suffice.compare.landscapes import Landscape
from suffice.draw.theme import Looks
from suffice.draw.words import text_width
from suffice.errors import OptionError
from suffice.report.figures.charts import Marked, altair, data_of, specification, zoom
from suffice.report.figures.drawing import Behind, Drawing
from suffice.report.figures.matrices import cross_query, cross_tests
from suffice.report.figures.papers import CVPR, PREPRINT
from suffice.report.figures.reading import origin
from suffice.report.figures.registry import figure
from suffice.study import Study

if TYPE_CHECKING:
    import pyarrow

REACH = 2.447746830680816  # of an ellipse that holds 95 % of a normal distribution in the plane
CORNERS = 48
PLACES = ((9, -7), (9, 8), (-9, -7), (-9, 8))  # of a name beside its point: pixels across and down
USUAL = 560  # pixels across


def landscape_table(found: Landscape, families: Sequence[str]) -> pyarrow.Table:
    """Positions of models: ``model``, ``family``, ``x``, ``y``, and the covariance under the bootstrap."""
    import pyarrow as pa

    rows = []
    for number, (model, family) in enumerate(zip(found.models, families, strict=True)):
        x, y = found.positions[number]
        spread = np.full((2, 2), np.nan) if found.spread is None else found.spread[number]
        rows.append(
            {"model": model, "family": family, "x": float(x), "y": float(y), "variance_x": float(spread[0, 0]),
             "variance_y": float(spread[1, 1]), "covariance": float(spread[0, 1])}
        )  # fmt: skip
    return pa.Table.from_pylist(rows)


def ellipses(table: pyarrow.Table) -> list[dict[str, Any]]:
    """Corners of the ellipses that hold 95 % of the bootstrap, model by model, as rows of a chart's data."""
    angles = np.linspace(0, 2 * np.pi, CORNERS + 1)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    rows = []
    for row in table.to_pylist():
        spread = np.array([[row["variance_x"], row["covariance"]], [row["covariance"], row["variance_y"]]])
        if not np.isfinite(spread).all():
            continue
        values, vectors = np.linalg.eigh(spread)
        points = vectors @ (np.sqrt(np.clip(values, 0, None))[:, None] * REACH * circle)
        rows += [
            {"model": row["model"], "corner": i, "x": row["x"] + float(px), "y": row["y"] + float(py)}
            for i, (px, py) in enumerate(points.T)
        ]
    return rows


def label_places(table: pyarrow.Table, scales_of: Sequence[Sequence[float]], height: int) -> list[dict[str, Any]]:
    """Rows with ``place``: on which side of its point a name stands, so that as few as possible lie over another.

    One name after the other takes the side where it covers the least of names and points, on a page of usual width.
    """
    (left, right), (low, high) = scales_of
    rows = table.to_pylist()
    points = [((r["x"] - left) / (right - left) * USUAL, (high - r["y"]) / (high - low) * height) for r in rows]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    for row, (x, y) in zip(rows, points, strict=True):
        wide = text_width(row["model"], 11)
        boxes = [
            (x + dx - (wide if dx < 0 else 0), y + dy - 6, x + dx + (wide if dx > 0 else 0), y + dy + 6)
            for dx, dy in PLACES
        ]
        cost = [
            sum(_common(box, other) for other in taken) + 40 * max(box[2] - USUAL, 0) + 40 * max(-box[0], 0)
            for box in boxes
        ]
        row["place"] = int(np.argmin(cost))
        taken.append(boxes[row["place"]])
    return rows


def _common(one: Sequence[float], other: Sequence[float]) -> float:
    """The area that two boxes share."""
    wide, high = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)


def landscape_chart(table: pyarrow.Table, across: str, up: str, height: int = 420) -> dict[str, Any]:
    """Models as points, with their names and ellipses; see :func:`landscape_table`."""
    alt = altair()
    looks = Looks.of_models(dict(zip(table["model"].to_pylist(), table["family"].to_pylist(), strict=True)))
    marked = Marked("model", looks)
    round_ones = ellipses(table)
    ends = [[row[axis] for row in [*round_ones, *table.to_pylist()]] for axis in ("x", "y")]
    scales = [alt.Scale(domain=_padded(values), nice=False, zero=False) for values in ends]
    axes = [alt.Axis(title=title, labels=False, ticks=False, domain=False) for title in (across, up)]
    x, y = (alt.X("x:Q", scale=scales[0], axis=axes[0]), alt.Y("y:Q", scale=scales[1], axis=axes[1]))
    around = (
        alt.Chart(data_of(round_ones))
        .mark_line(strokeWidth=1.2, clip=True)
        .encode(x=x, y=y, order="corner:Q", detail="model:N", color=marked.color(), opacity=marked.opacity(0.55))
    )
    placed = label_places(table, scales_of=[_padded(values) for values in ends], height=height)
    base = alt.Chart(data_of(placed)).encode(x=x, y=y, opacity=marked.opacity())
    dots = base.mark_point(filled=True, size=110).encode(
        color=marked.color(), shape=marked.shape(), tooltip=[alt.Tooltip("model:N"), alt.Tooltip("family:N")]
    )
    names = [
        base.transform_filter(f"datum.place == {place}")
        .mark_text(align="left" if dx > 0 else "right", dx=dx, dy=dy, fontSize=11)
        .encode(text="model:N")
        for place, (dx, dy) in enumerate(PLACES)
    ]
    layers = [around, dots, *names] if round_ones else [dots, *names]
    return specification(alt.layer(*layers).add_params(marked.chosen, zoom()), height=height)


def tree_table(found: Landscape) -> pyarrow.Table:
    """The tree of a landscape as joints: ``joint``, ``left``, ``right``, ``distance``, ``models`` below it."""
    import pyarrow as pa

    names = list(found.models)
    rows = []
    for number, (left, right, distance, below) in enumerate(found.tree.tolist()):
        names.append(f"joint {number + 1}")
        rows.append(
            {"joint": names[-1], "left": names[int(left)], "right": names[int(right)], "distance": float(distance),
             "models": int(below)}
        )  # fmt: skip
    return pa.Table.from_pylist(rows)


def tree_chart(found: Landscape, families: Sequence[str]) -> dict[str, Any]:
    """Models at the left, joined at the distance where clusters meet."""
    alt = altair()
    looks = Looks.of_models(dict(zip(found.models, families, strict=True)))
    order = _leaves(found)
    place = {number: float(order.index(number)) for number in range(len(found.models))}
    reach = dict.fromkeys(range(len(found.models)), 0.0)
    lines: list[dict[str, Any]] = []
    for number, (left, right, distance, _) in enumerate(found.tree.tolist()):
        own, a, b = len(found.models) + number, int(left), int(right)
        place[own], reach[own] = (place[a] + place[b]) / 2, distance
        corners = [(reach[a], place[a]), (distance, place[a]), (distance, place[b]), (reach[b], place[b])]
        lines += [
            {"joint": number, "corner": i, "x": x, "y": y, "distance": distance} for i, (x, y) in enumerate(corners)
        ]
    leaves = [
        {"model": found.models[number], "family": families[number], "x": 0.0, "y": place[number]} for number in order
    ]
    marked = Marked("model", looks)
    names = [found.models[number] for number in order]
    labels = f"{json.dumps(names)}[datum.value]"
    limit = alt.ExprRef(expr="width < 330 ? 110 : 230")
    axis = alt.Axis(
        values=list(range(len(names))),
        labelExpr=labels,
        title=None,
        grid=False,
        ticks=False,
        domain=False,
        labelPadding=10,
        labelLimit=limit,
    )
    y = alt.Y("y:Q", axis=axis, scale=alt.Scale(domain=[-0.6, len(names) - 0.4], reverse=True, nice=False, zero=False))
    x = alt.X("x:Q", axis=alt.Axis(title="distance where they join"), scale=alt.Scale(nice=True))
    joints = (
        alt.Chart(data_of(lines))
        .mark_line(strokeWidth=1.6, strokeJoin="miter", color="#7b8794")
        .encode(x=x, y=y, order="corner:Q", detail="joint:N", tooltip=[alt.Tooltip("distance:Q", format=".3~g")])
    )
    dots = (
        alt.Chart(data_of(leaves))
        .mark_point(filled=True, size=80)
        .encode(
            x=x,
            y=y,
            color=marked.color(legend=False),
            shape=marked.shape(legend=False),
            tooltip=["model:N", "family:N"],
        )
    )
    return specification(alt.layer(joints, dots), height=max(90, 24 * len(names)))


@figure(
    "landscape",
    "Where models lie by what they find important",
    needs="cross-test",
    papers=(f"{CVPR}, Figure 6", f"{PREPRINT}, Figure 5"),
    order=42,
)
def landscape(
    study: Study,
    *,
    measurement: str | None = None,
    method: str | None = None,
    metric: str | None = None,
    projection: Literal["kernel-pca", "mds"] = "kernel-pca",
) -> list[Drawing]:
    """Models in the plane, near each other where what one finds important is enough for the other."""
    made = []
    for name, found in cross_tests(study, measurement, method):
        placed = found.landscape(metric, projection=projection)
        table = landscape_table(placed, found.families)
        one = metric or found.metrics[0]
        how, words = _quality(placed)
        axes = ("first direction", "second direction")
        if projection == "kernel-pca":
            axes = (f"{axes[0]} ({placed.explained[0]:.0%})", f"{axes[1]} ({placed.explained[1]:.0%})")
        near, far = _ends(placed)
        made.append(
            Drawing(
                name="landscape" if projection == "kernel-pca" else f"landscape-{projection}",
                title=f"Where models lie, by {how} of the cross-test ({one})",
                reading="Models are near each other where the maps of one are enough for the other. Ellipses hold 95 % "
                f"of positions when images are drawn again. {words}",
                alt=f"{len(placed.models)} models in the plane. Nearest: {near}; farthest: {far}. {words}",
                spec=landscape_chart(table, *axes),
                table=table,
                source=origin(
                    study,
                    [name],
                    "Positions, from the matrix that the query gives: "
                    f"suffice.compare.CrossTest.landscape(metric={one!r}, projection={projection!r}).",
                ),
                query=cross_query(study, name, found, one),
                behind=Behind(name, {"model": ("model", "is")}),
            )
        )
    return made


@figure(
    "tree",
    "Which models are nearest",
    needs="cross-test",
    papers=(f"{CVPR}, Figure 6 (as a tree)",),
    order=43,
)
def tree(
    study: Study, *, measurement: str | None = None, method: str | None = None, metric: str | None = None
) -> list[Drawing]:
    """The same distances as a tree: average-linkage clustering, which no projection distorts."""
    made = []
    for name, found in cross_tests(study, measurement, method):
        placed = found.landscape(metric, draws=2)
        table = tree_table(placed)
        one = metric or found.metrics[0]
        first, last = table.to_pylist()[0], table.to_pylist()[-1]
        made.append(
            Drawing(
                name="tree",
                title=f"Which models are nearest, by the cross-test ({one})",
                reading="Two branches join at the mean distance between their models: the farther right, the less they "
                "share. Distances are those before any projection.",
                alt=f"Tree of {len(placed.models)} models. First to join: {first['left']} and {first['right']} at "
                f"{first['distance']:.3g}; the last branches join at {last['distance']:.3g}.",
                spec=tree_chart(placed, found.families),
                table=table,
                source=origin(
                    study,
                    [name],
                    "Distances, from the matrix that the query gives: "
                    f"suffice.compare.CrossTest.landscape(metric={one!r}).tree, average linkage.",
                ),
                query=cross_query(study, name, found, one),
                behind=Behind(name, {"model": ("model", "is")}),
            )
        )
    return made


def _quality(placed: Landscape) -> tuple[str, str]:
    """The name of a projection, and how much of the distances it shows."""
    if placed.projection == "mds":
        return "multidimensional scaling", f"Stress {placed.stress:.2f}: 0 would show all distances truly."
    shown = sum(placed.explained)
    return (
        "Kernel PCA",
        f"The plane shows {shown:.0%} of what positions can show; {placed.negative:.0%} of all is beyond them.",
    )


def _ends(placed: Landscape) -> tuple[str, str]:
    """The nearest and the farthest two models."""
    apart = np.linalg.norm(placed.positions[:, None] - placed.positions[None], axis=2)
    upper = np.triu_indices(len(apart), 1)
    if not len(upper[0]):
        raise OptionError("A landscape needs three models or more.")
    pairs = [f"{placed.models[i]} and {placed.models[j]} ({apart[i, j]:.3g})" for i, j in zip(*upper, strict=True)]
    order = np.argsort(apart[upper])
    return pairs[order[0]], pairs[order[-1]]


def _leaves(placed: Landscape) -> list[int]:
    """Models in the order in which branches do not cross."""
    from scipy.cluster.hierarchy import leaves_list

    return [int(number) for number in leaves_list(placed.tree)]


def _padded(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 1.0
    return [low - room, high + room]
