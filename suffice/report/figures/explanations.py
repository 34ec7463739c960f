"""How large minimal sufficient explanations (MSEs) are, and how many images so many cells explain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.compare import explained_by
from suffice.draw.theme import Looks
from suffice.draw.words import counted
from suffice.report.figures import queries
from suffice.report.figures.charts import Marked, altair, data_of, sentence, specification
from suffice.report.figures.choosing import chosen_image
from suffice.report.figures.drawing import Behind, Drawing
from suffice.report.figures.papers import PREPRINT
from suffice.report.figures.reading import by_model, families_of, good_rows, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.study import Study

if TYPE_CHECKING:
    import pyarrow

OVERLAPS = (0, 1, 2)
Sizes = Mapping[str, Sequence[Sequence[int]]]


def sizes_table(sizes: Sizes, families: Mapping[str, str]) -> pyarrow.Table:
    """For each model and size, how many MSEs of that size an image has, and which share of all that is.

    Args:
        sizes: For each model the sizes of the MSEs of each image.
        families: Of each model.

    Example:
        >>> sizes_table({"a": [[2, 3], [2]]}, {"a": "x"}).select(["size", "per_image"]).to_pylist()
        [{'size': 2, 'per_image': 1.0}, {'size': 3, 'per_image': 0.5}]
    """
    import pyarrow as pa

    sizes_seen = [size for images in sizes.values() for own in images for size in own]
    span = range(min(sizes_seen, default=0), max(sizes_seen, default=0) + 1)
    rows = []
    for model, images in sizes.items():
        counts = Counter(size for own in images for size in own)
        whole = max(counts.total(), 1)
        rows += [
            {"model": model, "family": families.get(model, ""), "size": size, "mses": counts[size],
             "per_image": counts[size] / max(len(images), 1), "share": counts[size] / whole}
            for size in span
        ]  # fmt: skip
    return pa.Table.from_pylist(rows)


def explained_table(sizes: Sizes, families: Mapping[str, str]) -> pyarrow.Table:
    """For each model and number of cells, the share of images that an MSE of at most so many explains."""
    import pyarrow as pa

    most = max((size for images in sizes.values() for own in images for size in own), default=0)
    shares = explained_by(sizes, most)
    rows = [
        {"model": model, "family": families.get(model, ""), "cells": cells, "share": share}
        for model, own in shares.items()
        for cells, share in enumerate(own)
    ]
    return pa.Table.from_pylist(rows)


def lines_chart(
    table: pyarrow.Table,
    x: str,
    y: str,
    *,
    across: str,
    up: str,
    height: int = 300,
    step: bool = False,
    percent: bool = False,
    log: bool = False,
    whole: bool = True,
) -> dict[str, Any]:
    """A line with points for each model, with a legend that filters.

    Args:
        table: With columns ``model``, ``family``, and the two that are drawn.
        x: Column drawn across.
        y: Column drawn upward.
        across: Title of the axis.
        up: Likewise.
        height: In pixels.
        step: Draw steps.
        percent: Whether ``y`` is a share.
        log: A logarithmic scale, with 0 at its foot.
        whole: Whether ``x`` has whole numbers only.
    """
    alt = altair()
    looks = Looks.of_models(dict(zip(table["model"].to_pylist(), table["family"].to_pylist(), strict=True)))
    marked = Marked("model", looks)
    places = sorted(set(table[x].to_pylist())) if whole else []
    few = {"values": places} if len(places) <= 16 else {"tickMinStep": 1}
    ticks = {"format": "d", **few} if whole else {}
    scale = alt.Scale(type="symlog", constant=1) if log else alt.Undefined
    numbers = {"format": "~s", "tickCount": 6} if log else {"format": ".0%" if percent else "~g"}
    axis = alt.Axis(title=up, **numbers)
    base = alt.Chart(data_of(table)).encode(
        x=alt.X(f"{x}:Q", axis=alt.Axis(title=across, grid=False, **ticks), scale=alt.Scale(nice=False, padding=8)),
        y=alt.Y(f"{y}:Q", axis=axis, scale=scale),
        color=marked.color(),
        opacity=marked.opacity(),
        tooltip=[
            alt.Tooltip("model:N"), alt.Tooltip("family:N"), alt.Tooltip(f"{x}:Q", title=across),
            alt.Tooltip(f"{y}:Q", format=".1%" if percent else ".4~g", title=up),
        ],
    )  # fmt: skip
    lines = marked.lines(base, interpolate="step-after" if step else "linear", clip=True)
    points = base.mark_point(filled=True, size=42).encode(shape=marked.shape())
    return specification(alt.layer(*lines, points).add_params(marked.chosen), height=height)


@figure(
    "mse-sizes",
    "Sizes of minimal sufficient explanations (MSEs)",
    needs="evidence",
    papers=(f"{PREPRINT}, Figures 3, 7 and 10",),
    order=20,
)
def mse_sizes(study: Study, *, measurement: str | None = None, image: str | int | None = None) -> list[Drawing]:
    """How many MSEs of each size an image has; with ``image``, those of one."""
    made = []
    for name in tables_of(study, "evidence", measurement):
        rows = good_rows(study, name, ("index", "image", "sizes"))
        one = None if image is None else chosen_image(study, image)
        sizes = {model: _sizes(own, one) for model, own in by_model(rows).items()}
        table = sizes_table(sizes, families_of(study, list(sizes)))
        where = "" if one is None else f" in {study.plan.names[one]}"
        made.append(
            Drawing(
                name="mse-sizes" if one is None else f"mse-sizes-{one}",
                title=f"Sizes of minimal sufficient explanations (MSEs){where}",
                reading="The farther left a model's line has its peak, the fewer cells are enough for it; the higher "
                "it is, the more such ways it has.",
                alt=f"MSEs by their size{where}. Most frequent size: {_modes(table)}.",
                spec=lines_chart(table, "size", "per_image", across="cells of an MSE", up="MSEs an image"),
                table=table,
                source=origin(study, [name]),
                query=queries.sizes(study, name, one),
                behind=Behind(name, {"model": ("model", "is"), "size": ("sizes", "has")}),
            )
        )
    return made


@figure(
    "explained-by",
    "Images that few cells explain",
    needs="evidence",
    papers=(f"{PREPRINT}, Figure 8",),
    order=21,
)
def explained(study: Study, *, measurement: str | None = None) -> list[Drawing]:
    """The share of images that an MSE of at most n cells explains."""
    made = []
    for name in tables_of(study, "evidence", measurement):
        rows = good_rows(study, name, ("index", "sizes"))
        sizes = {model: own["sizes"].to_pylist() for model, own in by_model(rows).items()}
        table = explained_table(sizes, families_of(study, list(sizes)))
        spec = lines_chart(
            table, "cells", "share", across="cells shown, at most", up="images explained", step=True, percent=True
        )
        made.append(
            Drawing(
                name="explained-by",
                title="Images that few cells explain",
                reading="At n cells, the height is the share of images in which some n cells or fewer are enough. "
                "Where a line ends below 100 %, the search found nothing in the other images.",
                alt=f"Share of images explained by so many cells. {_halves(table)}.",
                spec=spec,
                table=table,
                source=origin(study, [name]),
                query=queries.explained(study, name, max(table["cells"].to_pylist(), default=0)),
                behind=Behind(name, {"model": ("model", "is"), "cells": ("smallest", "≤")}),
            )
        )
    return made


@figure(
    "diverse",
    "Really different ways to decide",
    needs="evidence",
    papers=(f"{PREPRINT}, Table 5",),
    order=22,
)
def diverse(study: Study, *, measurement: str | None = None) -> list[Drawing]:
    """How many MSEs there are of which any two share at most so many cells."""
    import pyarrow as pa

    made = []
    for name in tables_of(study, "evidence", measurement):
        found = by_model(good_rows(study, name, [f"diverse_{overlap}" for overlap in OVERLAPS]))
        families = families_of(study, list(found))
        table = pa.Table.from_pylist(
            [
                {"model": model, "family": families[model], "overlap": overlap,
                 "mean": float(np.mean(own[f"diverse_{overlap}"].to_pylist())), "images": own.num_rows}
                for model, own in found.items()
                for overlap in OVERLAPS
            ]
        )  # fmt: skip
        apart = (f"{r['model']} {r['mean']:.3g}" for r in table.to_pylist() if r["overlap"] == 0)
        made.append(
            Drawing(
                name="diverse",
                title="Really different ways to decide",
                reading="Many MSEs may be one with a cell exchanged. At 0, the height is the size of the largest "
                "family of MSEs that share no cell at all; farther right, more overlap is allowed.",
                alt=f"Largest family of MSEs without a common cell, mean over images: {sentence(apart, 20)}.",
                spec=lines_chart(table, "overlap", "mean", across="cells that two may share", up="MSEs, at most"),
                table=table,
                source=origin(study, [name]),
                query=queries.mean_of_models(
                    study, name, {f"sharing_{overlap}": f"diverse_{overlap}" for overlap in OVERLAPS}
                ),
            )
        )
    return made


def _sizes(rows: pyarrow.Table, image: int | None) -> list[list[int]]:
    pairs = zip(rows["index"].to_pylist(), rows["sizes"].to_pylist(), strict=True)
    return [sizes for index, sizes in pairs if image is None or index == image]


def _modes(table: pyarrow.Table) -> str:
    best: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        if row["model"] not in best or row["mses"] > best[row["model"]]["mses"]:
            best[row["model"]] = row
    return sentence(
        f"{model} {counted(row['size'], 'cell')}, {row['share']:.0%} of its MSEs" for model, row in best.items()
    )


def _halves(table: pyarrow.Table) -> str:
    """How many cells explain half of the images, for each model."""
    enough: dict[str, int | None] = {}
    for row in table.to_pylist():
        enough.setdefault(row["model"], None)
        if enough[row["model"]] is None and row["share"] >= 0.5:
            enough[row["model"]] = row["cells"]
    words = (f"{m}: {'never' if n is None else 'with ' + counted(n, 'cell')}" for m, n in enough.items())
    return f"Half of the images are explained, by model: {sentence(words)}"
