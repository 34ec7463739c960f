"""Networks trained several times: how far trainings lie apart, and how many it takes to see a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.compare import compare_trainings
from suffice.draw.theme import Looks
from suffice.errors import OptionError
from suffice.report.figures import queries
from suffice.report.figures.charts import Marked, altair, data_of, names_axis, sentence, specification
from suffice.report.figures.drawing import Drawing
from suffice.report.figures.intervals import QUANTITIES
from suffice.report.figures.matrices import matrix_chart
from suffice.report.figures.papers import PREPRINT
from suffice.report.figures.reading import aligned, good_rows, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.study import Study

if TYPE_CHECKING:
    import pyarrow

NEVER = 10_000  # trainings that nobody makes

Values = Mapping[str, Sequence[Sequence[float]]]  # for each architecture, [trainings, images]


def trained_several_times(
    study: Study, measurement: str, column: str
) -> tuple[dict[str, list[list[float]]], dict[str, str]]:
    """For each architecture with several trainings the numbers of a column, [trainings, images], and its family."""
    values = aligned(good_rows(study, measurement, ("index", column)), column)
    found: dict[str, list[list[float]]] = {}
    families: dict[str, str] = {}
    for model in study.plan.models:
        if model.seed is not None and model.label in values:
            found.setdefault(model.group, []).append(values[model.label])
            families[model.group] = model.family or ""
    several = {group: own for group, own in found.items() if len(own) > 1}
    if not several:
        raise OptionError("No network of the study was trained several times: models = [{ name, seeds }].")
    return several, families


def trainings_table(values: Values, families: Mapping[str, str]) -> pyarrow.Table:
    """The mean of each training over images: ``group``, ``family``, ``training``, ``mean``, ``of_group``."""
    import pyarrow as pa

    rows = []
    for group, own in values.items():
        means = [float(np.nanmean(one)) for one in own]
        rows += [
            {"group": group, "family": families.get(group, ""), "training": number, "mean": mean,
             "of_group": float(np.mean(means))}
            for number, mean in enumerate(means)
        ]  # fmt: skip
    return pa.Table.from_pylist(rows)


def trainings_chart(table: pyarrow.Table, axis: str) -> dict[str, Any]:
    """A dot a training, a line at the mean of each architecture; see :func:`trainings_table`."""
    alt = altair()
    looks = Looks.of_models(dict(zip(table["group"].to_pylist(), table["family"].to_pylist(), strict=True)))
    marked = Marked("group", looks)
    base = alt.Chart(data_of(table)).encode(
        y=alt.Y("group:N", sort=list(looks.names), axis=names_axis(grid=True)), color=marked.color(legend=False)
    )
    tips = ["group:N", "training:Q", alt.Tooltip("mean:Q", format=".4~g"), alt.Tooltip("of_group:Q", format=".4~g")]
    scale = alt.Scale(zero=False)
    dots = base.mark_point(filled=True, size=70, opacity=0.85).encode(
        x=alt.X("mean:Q", title=axis, scale=scale), shape=marked.shape(legend=False), tooltip=tips
    )
    middle = base.mark_tick(thickness=2.5, size=18).encode(x=alt.X("of_group:Q", scale=scale), tooltip=tips)
    return specification(alt.layer(middle, dots), height=26 * len(looks.names))


def seeds_table(values: Values) -> pyarrow.Table:
    """For every two architectures the trainings that it takes to see their difference.

    Returns:
        ``row``, ``column``, ``value`` (trainings of each; none where even 10,000 do not, or there are too few images
        for any number), ``difference``, ``p``, ``seed_share`` (of the variance that is due to there being few
        trainings).
    """
    import pyarrow as pa

    rows = []
    for first, second in combinations(values, 2):
        found = compare_trainings(values[first], values[second])
        needed = found.seeds_needed()
        same = {
            "value": None if needed is None or needed > NEVER else float(needed), "p": found.p,
            "seed_share": found.seed_share,
        }  # fmt: skip
        rows.append({"row": first, "column": second, **same, "difference": found.difference})
        rows.append({"row": second, "column": first, **same, "difference": -found.difference})
    if not rows:
        raise OptionError("Two networks or more must be trained several times.")
    return pa.Table.from_pylist(rows)


@figure(
    "trainings",
    "Would other trainings say the same?",
    needs="evidence",
    papers=(f"{PREPRINT}, Table 2",),
    order=12,
)
def trainings(study: Study, *, measurement: str | None = None, column: str = "distinct_50") -> list[Drawing]:
    """The mean of each training of each network, and how many trainings a difference needs."""
    made = []
    for name in tables_of(study, "evidence", measurement):
        values, families = trained_several_times(study, name, column)
        _, title, axis = QUANTITIES.get(column, (column, column, column))
        query = queries.mean_of_trainings(study, name, column)
        table = trainings_table(values, families)
        groups = {row["group"]: row["of_group"] for row in table.to_pylist()}
        count = sum(map(len, values.values()))
        made.append(
            Drawing(
                name=f"trainings-{column}",
                title=f"{title}, training by training",
                reading="Each dot is the same network trained again from another random start; the tick is their mean. "
                "Two networks differ where their dots do, not where one dot does.",
                alt=f"{count} trainings of {len(values)} networks, means: "
                + sentence((f"{group} {mean:.3g}" for group, mean in groups.items()), 20)
                + ".",
                spec=trainings_chart(table, axis),
                table=table,
                source=origin(study, [name]),
                query=query,
            )
        )
        if len(values) < 2:
            continue
        needed = seeds_table(values)
        known = [row for row in needed.to_pylist() if row["value"] is not None and row["row"] < row["column"]]
        made.append(
            Drawing(
                name=f"seeds-needed-{column}",
                title=f"How many trainings it takes to see a difference: {title.lower()}",
                reading="Trainings of each of the two networks, for a power of 80 % at the 5 % level, if the "
                "difference is the one seen and there are as many images. – where even 10,000 would not do.",
                alt="Trainings needed: "
                + sentence((f"{r['row']} and {r['column']} {r['value']:.0f}" for r in known), 12)
                + ".",
                spec=matrix_chart(needed, down="network", across="and", format=",.0f", value="trainings of each"),
                table=needed,
                source=origin(study, [name], "Trainings: suffice.compare.compare_trainings(…).seeds_needed()."),
                query=query,
            )
        )
    return made
