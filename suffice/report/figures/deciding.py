"""How models decide: how compositional, how disjunctive, and how gently confidence falls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.compare import how_it_decides
from suffice.draw.theme import Looks
from suffice.errors import OptionError
from suffice.report.figures import queries
from suffice.report.figures.charts import Marked, altair, data_of, sentence, specification, zoom
from suffice.report.figures.drawing import Behind, Drawing
from suffice.report.figures.explanations import lines_chart
from suffice.report.figures.intervals import TICKS
from suffice.report.figures.papers import CVPR, PREPRINT
from suffice.report.figures.reading import by_model, families_of, good_rows, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.study import Study

if TYPE_CHECKING:
    import pyarrow

LEVELS = (80, 70, 60, 50)
INDEX_COLUMNS = ("mses", "distinct_50", "diverse_0", "mean_size", "depth_ratio_sums", "depth_counts")
DRAWS = 499


def levels_table(rows: pyarrow.Table, families: Mapping[str, str]) -> pyarrow.Table:
    """Mean number of sub-explanations of each model at each level of confidence.

    Args:
        rows: Evidence, with ``model`` and the columns ``distinct_80`` to ``distinct_50``.
        families: Of each model.

    Returns:
        Columns ``model``, ``family``, ``level``, ``mean``, ``median``, ``standard_error``, ``images``.
    """
    import pyarrow as pa

    found = []
    for model, own in by_model(rows).items():
        for level in LEVELS:
            values = own[f"distinct_{level}"].to_numpy().astype(float)
            error = float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")
            found.append(
                {"model": model, "family": families.get(model, ""), "level": level, "mean": float(values.mean()),
                 "median": float(np.median(values)), "standard_error": error, "images": len(values)}
            )  # fmt: skip
    return pa.Table.from_pylist(found)


def depth_table(rows: pyarrow.Table, families: Mapping[str, str]) -> pyarrow.Table:
    """Mean share of the confidence that is left after so many cells of an MSE are taken away, of each model.

    The mean is first within each image, then over those that have MSEs of so many cells.
    """
    import pyarrow as pa

    found = []
    for model, own in by_model(rows).items():
        by_depth: dict[int, list[float]] = {}
        pairs = zip(own["depth_ratio_sums"].to_pylist(), own["depth_counts"].to_pylist(), strict=True)
        for sums, counts in pairs:
            for depth, (total, count) in enumerate(zip(sums or (), counts or (), strict=True)):
                if count:
                    by_depth.setdefault(depth, []).append(total / count)
        for depth, values in sorted(by_depth.items()):
            ratio = float(np.mean(values))
            found.append(
                {"model": model, "family": families.get(model, ""), "taken": depth, "ratio": ratio,
                 "images": len(values)}
            )  # fmt: skip
    return pa.Table.from_pylist(found)


def plane_table(rows: pyarrow.Table, families: Mapping[str, str]) -> pyarrow.Table:
    """The indices of :func:`suffice.compare.how_it_decides` of each model, with their intervals."""
    import pyarrow as pa

    found = []
    for model, own in by_model(rows).items():
        try:
            decides = how_it_decides(own, draws=DRAWS)
        except OptionError:  # nearly no image has evidence
            continue
        row: dict[str, Any] = {"model": model, "family": families.get(model, ""), "images": decides.images}
        for name in ("disjunctivism", "compositionality", "gentleness", "independent"):
            index = getattr(decides, name)
            row |= {name: index.value, f"{name}_low": index.low, f"{name}_high": index.high}
        found.append(row)
    if not found:
        raise OptionError("No model has evidence in two images or more.")
    return pa.Table.from_pylist(found)


def plane_chart(table: pyarrow.Table, height: int = 380) -> dict[str, Any]:
    """Each model at its number of MSEs and of sub-explanations, with intervals as a cross; see :func:`plane_table`."""
    alt = altair()
    looks = Looks.of_models(dict(zip(table["model"].to_pylist(), table["family"].to_pylist(), strict=True)))
    marked = Marked("model", looks)
    log = alt.Scale(type="symlog", constant=1, zero=False, nice=False, padding=12, domain=_span(table))
    across = alt.X(
        "disjunctivism:Q",
        scale=alt.Scale(zero=False, padding=12),
        axis=alt.Axis(title="ways to decide: MSEs an image", tickCount=TICKS),
    )
    up = alt.Y(
        "compositionality:Q",
        title="parts at once: sub-explanations ≥ 50 %",
        scale=log,
        axis=alt.Axis(format="~s", tickCount=6),
    )
    tips = [
        alt.Tooltip("model:N"), alt.Tooltip("family:N"), alt.Tooltip("images:Q"),
        *(alt.Tooltip(f"{name}{end}:Q", format=".3~g", title=f"{name}{words}")
          for name in ("disjunctivism", "compositionality")
          for end, words in (("", ""), ("_low", ", from"), ("_high", ", to"))),
    ]  # fmt: skip
    base = alt.Chart(data_of(table)).encode(color=marked.color(), opacity=marked.opacity(), tooltip=tips)
    wide = base.mark_rule(strokeWidth=1.4).encode(x="disjunctivism_low:Q", x2="disjunctivism_high:Q", y=up)
    high = base.mark_rule(strokeWidth=1.4).encode(x=across, y="compositionality_low:Q", y2="compositionality_high:Q")
    dots = base.mark_point(filled=True, size=110).encode(x=across, y=up, shape=marked.shape())
    return specification(alt.layer(wide, high, dots).add_params(marked.chosen, zoom()), height=height)


@figure(
    "compositionality",
    "Sub-explanations by how much confidence they keep",
    needs="evidence",
    papers=(f"{CVPR}, Tables 1 and 2", f"{PREPRINT}, Table 1"),
    order=30,
)
def compositionality(study: Study, *, measurement: str | None = None) -> list[Drawing]:
    """Mean number of sub-explanations that keep at least so much of the confidence, and what is left step by step."""
    made = []
    for name in tables_of(study, "evidence", measurement):
        columns = [f"distinct_{level}" for level in LEVELS]
        rows = good_rows(study, name, ("index", *columns, "depth_ratio_sums", "depth_counts"))
        families = families_of(study, list(by_model(rows)))
        table, depth = levels_table(rows, families), depth_table(rows, families)
        last = [row for row in table.to_pylist() if row["level"] == LEVELS[-1]]
        made.append(
            Drawing(
                name="compositionality",
                title="Sub-explanations by how much confidence they keep",
                reading="A model that loses confidence little by little has many sub-explanations: its line is high. "
                "The scale is logarithmic above 1.",
                alt="Mean number of sub-explanations that keep at least 50 % of the confidence: "
                + sentence((f"{r['model']} {r['mean']:.3g} ± {r['standard_error']:.2g}" for r in last), 20)
                + ".",
                spec=_levels_chart(table),
                table=table,
                source=origin(study, [name]),
                query=queries.mean_of_models(study, name, {f"at_{level}": f"distinct_{level}" for level in LEVELS}),
                behind=Behind(name, {"model": ("model", "is")}),
            )
        )
        first = [row for row in depth.to_pylist() if row["taken"] == 1]
        made.append(
            Drawing(
                name="confidence-left",
                title="Confidence that is left when cells of an explanation go",
                reading="A strict AND falls at once; a gentle slope means that parts can be missing. Points far right "
                "are of the few images with large explanations.",
                alt="Share of the confidence that is left when one cell of an MSE goes: "
                + sentence((f"{r['model']} {r['ratio']:.0%}" for r in first), 20)
                + ".",
                spec=lines_chart(
                    depth, "taken", "ratio", across="cells taken away from an MSE", up="confidence left", percent=True
                ),
                table=depth,
                source=origin(study, [name]),
                query=queries.left(study, name),
                behind=Behind(name, {"model": ("model", "is")}),
            )
        )
    return made


@figure(
    "plane",
    "Compositional or disjunctive",
    needs="evidence",
    papers=(f"{CVPR}, Figure 1 (as numbers)", f"{PREPRINT}, Figure 1 (as numbers)"),
    order=31,
)
def plane(study: Study, *, measurement: str | None = None) -> list[Drawing]:
    """Where models lie by the number of their MSEs and of what lies below them."""
    made = []
    for name in tables_of(study, "evidence", measurement):
        rows = good_rows(study, name, INDEX_COLUMNS)
        table = plane_table(rows, families_of(study, list(by_model(rows))))
        words = (f"{r['model']} {r['disjunctivism']:.3g} and {r['compositionality']:.3g}" for r in table.to_pylist())
        made.append(
            Drawing(
                name="plane",
                title="Compositional or disjunctive",
                reading="To the right: many alternative ways to decide (disjunctive). Up: many parts at once, lost one "
                "by one (compositional). Geometric means over images, with 95 % bootstrap intervals as crosses.",
                alt=f"MSEs and sub-explanations (≥ 50 %) an image, geometric means: {sentence(words, 20)}.",
                spec=plane_chart(table),
                table=table,
                source=origin(study, [name], "Intervals: suffice.compare.how_it_decides."),
                query=queries.select(
                    study,
                    name,
                    f"model, {queries.geometric('mses')} AS disjunctivism,\n"
                    f"       {queries.geometric('distinct_50')} AS compositionality",
                    "GROUP BY model\nORDER BY model",
                    "mses > 0",
                ),
                behind=Behind(name, {"model": ("model", "is")}),
            )
        )
    return made


def _span(table: pyarrow.Table) -> list[float]:
    """From the lowest to the highest end of the intervals of compositionality."""
    ends = [v for side in ("low", "high") for v in table[f"compositionality_{side}"].to_pylist() if np.isfinite(v)]
    return [min(ends), max(ends)] if ends and min(ends) < max(ends) else [0.0, 1.0]


def _levels_chart(table: pyarrow.Table) -> dict[str, Any]:
    spec = lines_chart(
        table, "level", "mean", across="confidence kept, at least (%)", up="sub-explanations an image", log=True
    )
    for layer in spec["layer"]:
        layer["encoding"]["x"]["scale"] = {"reverse": True, "nice": False, "zero": False, "padding": 8}
        layer["encoding"]["x"]["axis"]["values"] = list(LEVELS)
    return spec
