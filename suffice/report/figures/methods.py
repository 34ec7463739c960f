"""Methods by metrics, with what is clearly better, and how long maps take."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from suffice.draw.theme import Looks
from suffice.metrics import ScoreTable
from suffice.metrics.scores import higher_is_better, with_arrow
from suffice.report.figures import queries
from suffice.report.figures.charts import Marked, altair, data_of, names_axis, sentence, specification
from suffice.report.figures.drawing import Behind, Drawing, named
from suffice.report.figures.matrices import matrix_chart
from suffice.report.figures.papers import TIS, VIT_CX
from suffice.report.figures.reading import families_of, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.study import Study
from suffice.study.reading import finished_shards
from suffice.study.score_tables import spent

if TYPE_CHECKING:
    import pyarrow

CLEAR, UNCLEAR = " *", " °"
FEW = 2  # models, of which each has a chart of its own


def method_table(scores: ScoreTable) -> pyarrow.Table:
    """One row for each model, method and metric, with what is best.

    Returns:
        Columns ``model``, ``method``, ``metric``, ``mean``, ``standard_error``, ``images``, ``goodness`` (0 for the
        worst of the model's methods, 1 for the best), ``mark`` (* for the best where it is clearly better than the
        second, ° where it is not), ``p`` (of the test between these two).
    """
    import pyarrow as pa

    rows = []
    for metric in scores.metrics:
        for model in dict.fromkeys(row.model for row in scores.rows):
            own = [row for row in scores.rows if row.model == model]
            means = [row[metric].mean for row in own]
            best, second, p = scores.standing(model, metric)
            top = {f"{row[metric].mean:.3f}" for row in own if row.method == best}
            clear = second is not None and p < 0.05
            for row, mean in zip(own, means, strict=True):
                leads = row.method == best if clear else f"{mean:.3f}" in top  # what reads the same is marked alike
                mark = (CLEAR if clear else UNCLEAR) if leads and second is not None else ""
                rows.append(
                    {"model": model, "method": row.method, "metric": metric, "mean": mean,
                     "standard_error": row[metric].standard_error, "images": int(row[metric].judged.sum()),
                     "goodness": _goodness(mean, means, metric), "p": p if row.method == best else None, "mark": mark}
                )  # fmt: skip
    return pa.Table.from_pylist(rows)


def _goodness(mean: float, means: list[float], metric: str) -> float:
    """Where a mean lies between the worst, 0, and the best, 1; a half where neither way is better."""
    known = [value for value in means if not math.isnan(value)]
    better = higher_is_better(metric)
    if better is None or math.isnan(mean) or max(known) == min(known):
        return float("nan") if math.isnan(mean) else 0.5
    share = (mean - min(known)) / (max(known) - min(known))
    return share if better else 1 - share


@figure(
    "methods",
    "Which method is truest to a model",
    needs="metrics",
    papers=(f"{VIT_CX}, Tables 1 and 2", f"{TIS}, Tables 1–5 and 8"),
    order=50,
)
def methods(study: Study, *, measurement: str | None = None, metric: str | None = None) -> list[Drawing]:
    """Methods × metrics of a model; or, with several models that have methods to compare, × models of a metric."""
    made = []
    wanted = tables_of(study, "metrics", measurement)
    compared = {
        name: scores
        for name, scores in study.score_tables().items()
        if name in wanted and len({row.method for row in scores.rows}) > 1
    }
    for name, scores in compared.items():
        start = f"methods-{name}" if len(compared) > 1 else "methods"
        table = method_table(scores)
        pairs = {(row.model, row.method) for row in scores.rows}
        models = [one for one in dict.fromkeys(table["model"].to_pylist()) if sum(one == m for m, _ in pairs) > 1]
        metrics = [one for one in scores.metrics if metric in (None, one)]
        views = (
            [(f"{start}-{model}", model, "metric", [r for r in table.to_pylist() if r["model"] == model])
             for model in models]
            if 0 < len(models) <= FEW
            else [(f"{start}-{one}", with_arrow(one), "model", [r for r in table.to_pylist() if r["metric"] == one])
                  for one in metrics]
        )  # fmt: skip
        for title, about, across, rows in views:
            drawing = _methods_drawing(study, name, scores, title, about, across, rows)
            made.append(replace(drawing, title=f"{drawing.title} ({name})") if len(compared) > 1 else drawing)
    return made


def _methods_drawing(
    study: Study, name: str, scores: ScoreTable, title: str, about: str, across: str, rows: list[dict[str, Any]]
) -> Drawing:
    import pyarrow as pa

    kept = ("standard_error", "goodness", "mark", "p")
    heads = [with_arrow(r["metric"]) if across == "metric" else r["model"] for r in rows]
    shown = [
        {"row": r["method"], "column": head, "value": r["mean"], **{name: r[name] for name in kept}}
        for r, head in zip(rows, heads, strict=True)
    ]
    table = pa.Table.from_pylist(shown)
    best = [f"{r['column']}: {r['row']} {r['value']:.3g}{r['mark']}" for r in shown if r["mark"]]
    means = [f"{r['row']} on {r['column']} {r['value']:.3g}" for r in shown]
    said = f"Best: {sentence(best, 20)}" if best else f"Means: {sentence(means, 20)}"
    order = sorted(
        dict.fromkeys(table["row"].to_pylist()),
        key=lambda m: -sum(r["goodness"] for r in shown if r["row"] == m and not math.isnan(r["goodness"])),
    )
    spec = matrix_chart(
        table,
        down="method",
        across=across,
        order=order,
        columns=list(dict.fromkeys(table["column"].to_pylist())),
        format=".3f" if across == "metric" or len(order) < 12 else ".2f",
        mark="mark",
        shade="goodness",
        value="mean",
    )
    averages = ", ".join(f"{queries.judged(one)} AS {queries.name(one)}" for one in scores.metrics)
    return Drawing(
        name=named(title),
        title=f"Methods by {'metrics' if across == 'metric' else 'models'}: {about}",
        reading="Means over images; dark is better within a column. * is the best, clearly better than the second "
        "(Wilcoxon's test, p < 0.05); ° is the best, but the second could be as good.",
        alt=f"{about}, protocol {scores.protocol}, {scores.images} images. {said}.",
        spec=spec,
        table=table,
        source=origin(study, [name], "Marks: suffice.metrics.ScoreTable.standing."),
        query=queries.select(
            study, name, f"model, method, {averages}", "GROUP BY model, method\nORDER BY model, method"
        ),
        behind=Behind(name, {"row": ("method", "is"), "column": ("model", "is")})
        if across == "model"
        else Behind(name, {"row": ("method", "is")}, {"model": about}),
    )


def time_chart(table: pyarrow.Table) -> dict[str, Any]:
    """Seconds that a map of a method takes, a point a model; columns ``model``, ``family``, ``method``, ``seconds``."""
    alt = altair()
    looks = Looks.of_models(dict(zip(table["model"].to_pylist(), table["family"].to_pylist(), strict=True)))
    marked = Marked("model", looks)
    rows = table.to_pylist()
    slowest = {r["method"]: max(x["seconds"] for x in rows if x["method"] == r["method"]) for r in rows}
    order = sorted(slowest, key=lambda method: slowest[method])
    axis = alt.Axis(title="seconds an image", format="~g", tickCount=6)
    numbers = [alt.Tooltip("seconds:Q", format=".3~g"), alt.Tooltip("forwards:Q", format=",.0f")]
    tips = ["method:N", "model:N", *numbers]
    base = alt.Chart(data_of(table)).encode(
        y=alt.Y("method:N", sort=order, axis=names_axis(grid=True)),
        x=alt.X("seconds:Q", scale=alt.Scale(type="log"), axis=axis),
        color=marked.color(),
        shape=marked.shape(),
        opacity=marked.opacity(),
        tooltip=tips,
    )
    return specification(base.mark_point(filled=True, size=85).add_params(marked.chosen), height=24 * len(order))


@figure(
    "time",
    "How long a map takes",
    needs="attribution",
    papers=(f"{TIS}, Tables 6 and 7", f"{VIT_CX}, Table 2"),
    order=52,
)
def time(study: Study, *, measurement: str | None = None) -> list[Drawing]:
    """Seconds for a map, by method and model, as the study measured them."""
    import pyarrow as pa

    assert study.store is not None
    plan, families = study.plan, families_of(study)
    tables = tables_of(study, "attribution", measurement)
    rows: list[dict[str, Any]] = []
    for name in [one for table in tables for one in plan.asked.named(table)]:
        for model in families:
            seconds, forwards = spent(study.store, finished_shards(plan, study.store, name, model))
            if seconds > 0:
                who = {"model": model, "family": families[model], "method": plan.measurements[name].facts["method"]}
                rows.append({**who, "measurement": name, "seconds": seconds, "forwards": forwards})
    if not rows:
        return []
    table = pa.Table.from_pylist(rows)
    words = (f"{r['method']} on {r['model']} {r['seconds']:.2g} s" for r in rows)
    return [
        Drawing(
            name="time",
            title="How long a map takes",
            reading="Seconds an image, on a logarithmic scale, with the device, precision and batches of the study; "
            "they say nothing about other machines.",
            alt=f"Seconds for a map: {sentence(words, 16)}.",
            spec=time_chart(table),
            table=table,
            source=origin(study, tables, "Seconds and images of each shard are in the metadata of its file."),
            query=queries.seconds(study, tables),
        )
    ]
