"""Whether a few channels decide: curves of the strongest activation of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.compare import Activations
from suffice.draw.theme import Looks
from suffice.report.figures import queries
from suffice.report.figures.charts import Marked, altair, data_of, sentence, specification
from suffice.report.figures.drawing import Behind, Drawing
from suffice.report.figures.papers import CVPR
from suffice.report.figures.reading import families_of, good_rows, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.study import Study

if TYPE_CHECKING:
    import pyarrow

POINTS = 80  # of a curve; more cannot be told apart


def activation_table(found: Mapping[str, Activations], families: Mapping[str, str]) -> pyarrow.Table:
    """Mean of the maximum of each channel, largest first; of many channels some.

    Returns:
        Columns ``model``, ``family``, ``layer``, ``channel`` (its rank), ``share`` (rank / channels), ``mean``,
        ``relative`` (to the largest), ``dominance`` (the Gini index of all).
    """
    import pyarrow as pa

    rows = []
    for model, one in found.items():
        means = one.sorted_means
        some = np.unique(np.linspace(0, len(means) - 1, min(POINTS, len(means))).round().astype(int))
        top = float(means[0]) or 1.0
        same = {"model": model, "family": families.get(model, ""), "layer": one.layer, "dominance": one.dominance}
        rows += [
            {**same, "channel": int(i) + 1, "share": (int(i) + 1) / len(means), "mean": float(means[i]),
             "relative": float(means[i]) / top}
            for i in some
        ]  # fmt: skip
    return pa.Table.from_pylist(rows)


def activation_chart(table: pyarrow.Table, height: int = 300) -> dict[str, Any]:
    """A falling curve for each model; see :func:`activation_table`."""
    alt = altair()
    looks = Looks.of_models(dict(zip(table["model"].to_pylist(), table["family"].to_pylist(), strict=True)))
    marked = Marked("model", looks)
    base = alt.Chart(data_of(table)).encode(
        x=alt.X("share:Q", axis=alt.Axis(title="channels, strongest first", format=".0%", grid=False)),
        y=alt.Y("relative:Q", axis=alt.Axis(title="activation, of the strongest channel's", format=".0%")),
        color=marked.color(lines=True),
        strokeDash=marked.dash(),
        opacity=marked.opacity(),
        tooltip=[
            "model:N", "family:N", "layer:N", "channel:Q", alt.Tooltip("mean:Q", format=".3~g"),
            alt.Tooltip("relative:Q", format=".0%"), alt.Tooltip("dominance:Q", format=".3f"),
        ],
    )  # fmt: skip
    return specification(base.mark_line().add_params(marked.chosen), height=height)


@figure(
    "activations",
    "Do a few channels decide?",
    needs="activations",
    papers=(f"{CVPR}, Figure 5",),
    order=45,
)
def activations(study: Study, *, measurement: str | None = None) -> list[Drawing]:
    """Sorted means of the maximal activation of each channel."""
    made = []
    for name in tables_of(study, "activations", measurement):
        found = Activations.from_table(good_rows(study, name, ("image", "index", "layer", "maxima"), errors=True))
        table = activation_table(found, families_of(study, list(found)))
        words = (f"{model} {one.dominance:.2f}" for model, one in found.items())
        made.append(
            Drawing(
                name="activations",
                title="Channels by their strongest activation",
                reading="A curve that falls steeply means that a few channels are much stronger than the rest. "
                "Channels of each model are sorted by the mean, over images, of their strongest activation.",
                alt=f"Unevenness of channels (Gini index of their mean maxima): {sentence(words, 20)}.",
                spec=activation_chart(table),
                table=table,
                source=origin(study, [name], "Unevenness: suffice.compare.Activations.dominance."),
                query=queries.channels(study, name),
                behind=Behind(name, {"model": ("model", "is")}),
            )
        )
    return made
