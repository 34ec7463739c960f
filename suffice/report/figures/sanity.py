"""Sanity checks: how similar maps stay while weights, or labels, are randomized."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from suffice.draw.theme import Looks
from suffice.errors import OptionError
from suffice.metrics.sanity import SanityRow
from suffice.metrics.sanity.report import LIMIT
from suffice.report.figures import queries
from suffice.report.figures.charts import Marked, altair, data_of, names_axis, sentence, specification
from suffice.report.figures.drawing import Behind, Drawing, named
from suffice.report.figures.papers import EEA
from suffice.report.figures.reading import good_rows, origin, tables_of
from suffice.report.figures.registry import FILE, figure
from suffice.study import Study
from suffice.study.parquet import read_parquet

if TYPE_CHECKING:
    import pyarrow

Similarity = Literal["spearman", "absolute", "ssim"]
TITLES = {
    "spearman": "Spearman's rank correlation",
    "absolute": "rank correlation of magnitudes",
    "ssim": "structural similarity (SSIM)",
}
AXIS = {"cascading": "randomized from the output down to", "independent": "only this layer randomized"}


def sanity_table(rows: pyarrow.Table, similarity: Similarity = "spearman") -> pyarrow.Table:
    """Mean similarity and its standard error at each step, of each method.

    Args:
        rows: Of one model, with columns ``method``, ``draw``, ``step``, ``layer``, ``index`` and the similarity.
        similarity: Which.

    Returns:
        Columns ``method``, ``step``, ``layer``, ``mean``, ``low``, ``high`` (one standard error to both sides).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found = []
    for method in pc.unique(rows["method"]).to_pylist():
        own = rows.filter(pc.equal(rows["method"], method)).sort_by(
            [("draw", "ascending"), ("step", "ascending"), ("index", "ascending")]
        )
        draws, steps, images = (len(pc.unique(own[name])) for name in ("draw", "step", "index"))
        if own.num_rows != draws * steps * images:
            raise OptionError(f"{method}: some steps of some images are missing; run the study to its end.")
        values = torch.tensor(own[similarity].to_pylist(), dtype=torch.float64).view(draws, steps, images)
        row = SanityRow(method, {similarity: values}, {}, torch.zeros(steps), torch.zeros(steps, 1, 1))
        layers = own["layer"].to_pylist()[: steps * images : images]
        means, errors = row.means(similarity).tolist(), row.standard_errors(similarity).nan_to_num(0.0).tolist()
        found += [
            {"method": method, "step": step, "layer": layer, "mean": mean, "low": mean - error, "high": mean + error}
            for step, (layer, mean, error) in enumerate(zip(layers, means, errors, strict=True))
        ]
    return pa.Table.from_pylist(found)


def sanity_chart(table: pyarrow.Table, across: str, up: str, height: int = 300) -> dict[str, Any]:
    """A line with a band of one standard error for each method, over the layers; see :func:`sanity_table`."""
    alt = altair()
    marked = Marked("method", Looks.of_series(table["method"].to_pylist()))
    layers = list(dict.fromkeys(table["layer"].to_pylist()))
    x = alt.X("layer:N", sort=layers, axis=alt.Axis(title=across, labelAngle=-50, labelLimit=110, labelOverlap=True))
    y = alt.Y("mean:Q", axis=alt.Axis(title=up, format="~g"))
    base = alt.Chart(data_of(table)).encode(x=x)
    tips = ["method:N", "layer:N", *(alt.Tooltip(f"{name}:Q", format=".3~f") for name in ("mean", "low", "high"))]
    band = base.mark_area(interpolate="linear").encode(
        y="low:Q", y2="high:Q", color=marked.color(), opacity=marked.opacity(0.18)
    )
    lines = marked.lines(base.encode(y=y, color=marked.color(), opacity=marked.opacity()))
    dots = base.mark_point(filled=True, size=48).encode(
        y=y, color=marked.color(), shape=marked.shape(), opacity=marked.opacity(), tooltip=tips
    )
    limit = alt.Chart(data_of([{"limit": LIMIT}])).mark_rule(strokeDash=[4, 4]).encode(y="limit:Q")
    return specification(alt.layer(limit, band, *lines, dots).add_params(marked.chosen), height=height)


@figure(
    "sanity",
    "Do maps depend on what a model has learned?",
    needs="sanity",
    papers=(f"{EEA}, Figures 2 and 4",),
    order=55,
)
def sanity(study: Study, *, measurement: str | None = None, similarity: Similarity = "spearman") -> list[Drawing]:
    """Similarity to the maps of the trained model, while layers or labels are randomized; a chart a model and check."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = ("index", "image", "method", "draw", "step", "layer", similarity)
    gathered: dict[tuple[str, str], list[tuple[str, pyarrow.Table]]] = {}
    for name in tables_of(study, "sanity", measurement):
        check = study.plan.asked.measure[study.plan.asked.named(name)[0]].get("check", "cascading")
        rows = good_rows(study, name, columns)
        for model in pc.unique(rows["model"]).to_pylist():
            gathered.setdefault((model, check), []).append((name, rows.filter(pc.equal(rows["model"], model))))
    made = []
    for (model, check), parts in gathered.items():
        names, rows = [name for name, _ in parts], pa.concat_tables([rows for _, rows in parts])
        draw = _beside_permuted if check == "data" else partial(_curves, check=check)
        made.append(draw(study, model, names, rows, similarity=similarity))
    return made


def _curves(
    study: Study, model: str, names: list[str], rows: pyarrow.Table, *, check: str, similarity: Similarity
) -> Drawing:
    table = sanity_table(rows, similarity)
    last = {row["method"]: row for row in table.to_pylist()}
    words = (f"{m} {r['mean']:.2f}" for m, r in last.items())
    what = f"method, step, any_value(layer) AS layer, avg({similarity}) AS mean"
    rest = "GROUP BY method, step\nORDER BY method, step"
    return Drawing(
        name=named(f"sanity-{check}-{model}"),
        title=f"{'Cascading' if check == 'cascading' else 'Independent'} randomization of {model}",
        reading="A method that shows what the model has learned falls as weights become random. One that "
        f"stays above the dashed line ({LIMIT}) shows the image or the architecture. Bands: a standard error.",
        alt=f"{TITLES[similarity]} with the maps of the trained {model}, {check} randomization; at the last "
        f"step: {sentence(words, 12)}.",
        spec=sanity_chart(table, AXIS[check], TITLES[similarity]),
        table=table,
        source=origin(study, names),
        query=queries.select(study, names, what, rest, f"model = {queries.text(model)}"),
        behind=Behind(names[0], {"method": ("method", "is"), "step": ("step", "is")}, {"model": model}),
    )


def _beside_permuted(
    study: Study, model: str, names: list[str], rows: pyarrow.Table, *, similarity: Similarity
) -> Drawing:
    what, where = f"method, image, {similarity} AS similarity", f"model = {queries.text(model)} AND step = 1"
    return _boxes(
        rows,
        similarity,
        name=named(f"sanity-data-{model}"),
        title=f"Maps of {model} beside those of the same network trained on permuted labels",
        source=origin(study, names),
        query=queries.select(study, names, what, "ORDER BY method, image", where),
        behind=Behind(names[0], {"method": ("method", "is")}, {"model": model}),
    )


def _boxes(rows: pyarrow.Table, similarity: Similarity, **about: Any) -> Drawing:
    """How similar two maps of each image are at the last step."""
    import pyarrow.compute as pc

    last = rows.filter(pc.equal(rows["step"], pc.max(rows["step"])))
    table = last.select(["method", "image", similarity]).rename_columns(["method", "image", "similarity"])
    table = table.replace_schema_metadata()
    words = []
    for method in pc.unique(table["method"]).to_pylist():
        own = table.filter(pc.equal(table["method"], method))["similarity"]
        words.append(f"{method} {pc.quantile(own, 0.5)[0].as_py():.2f}")
    return Drawing(
        reading="Each point is an image; the box holds the middle half. Near 1, a method's maps are the same whatever "
        f"the model was taught. The dashed line ({LIMIT}) is the limit of the verdicts.",
        alt=f"{TITLES[similarity]} of both maps, median over {len(set(table['image'].to_pylist()))} images: "
        f"{sentence(words, 12)}.",
        spec=box_chart(table, TITLES[similarity]),
        table=table,
        **about,
    )


def box_chart(table: pyarrow.Table, up: str) -> dict[str, Any]:
    """A box a method of the similarity of each image's two maps; columns ``method``, ``similarity``, ``image``."""
    alt = altair()
    looks = Looks.of_series(table["method"].to_pylist())
    marked = Marked("method", looks)
    base = alt.Chart(data_of(table)).encode(y=alt.Y("method:N", sort=list(looks.names), axis=names_axis()))
    x = alt.X("similarity:Q", title=up)
    boxes = base.mark_boxplot(size=20, opacity=0.55, outliers=False).encode(x=x, color=marked.color(legend=False))
    dots = base.mark_point(filled=True, size=22, opacity=0.7).encode(
        x=x,
        color=marked.color(legend=False),
        tooltip=["method:N", "image:N", alt.Tooltip("similarity:Q", format=".3f")],
    )
    limit = alt.Chart(data_of([{"limit": LIMIT}])).mark_rule(strokeDash=[4, 4]).encode(x="limit:Q")
    return specification(alt.layer(limit, boxes, dots), height=40 * len(looks.names))


@figure(
    "data-randomization",
    "Do maps depend on the labels that a model was trained with?",
    needs=FILE,
    papers=(f"{EEA}, Figure 6",),
    order=56,
)
def data_randomization(folder: Path, *, similarity: Similarity = "spearman") -> Drawing:
    """A box plot of the similarity to the maps of a model with permuted labels: of ``suffice sanity --check data``."""
    file = folder / "sanity.parquet" if folder.is_dir() else folder
    if not file.is_file():
        raise OptionError(f"There is no {file}; suffice sanity … --check data --permuted-model … --out writes it.")
    return _boxes(
        read_parquet(file),
        similarity,
        name="data-randomization",
        title="Maps of a model beside those of one trained on permuted labels",
        source=f"{file.name} of suffice sanity --check data, its last step.",
        query=f"SELECT method, image, {similarity} AS similarity\nFROM read_parquet({queries.text(file.name)})\n"
        f"WHERE step = (SELECT max(step) FROM read_parquet({queries.text(file.name)}));",
    )
