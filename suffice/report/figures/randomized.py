"""Maps themselves while weights become random, and of a model that was trained on permuted labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from suffice.metrics.sanity import data_randomization, sanity_check
from suffice.report.figures.charts import sentence
from suffice.report.figures.drawing import Drawing, named
from suffice.report.figures.papers import EEA
from suffice.report.figures.registry import figure
from suffice.report.figures.sheets import RowOf, grid_sheet, map_tile, photo_tile, short_name
from suffice.vision import Classifier, load, open_images

MOST = 8  # steps that are drawn


@figure(
    "sanity-maps",
    "Maps while weights, or labels, are randomized",
    needs="model",
    papers=(f"{EEA}, Figures 3, 5, 7 and 8",),
    order=67,
)
def sanity_maps(
    nets: Sequence[Classifier],
    images: Any,
    *,
    method: str = "grad-cam",
    check: Literal["cascading", "independent"] = "cascading",
    permuted: str | None = None,
    count: int = 4,
) -> list[Drawing]:
    """One row an image: the map of the trained model, maps with random layers, and of a model with permuted labels.

    ``permuted`` names that model, or a file with weights of the same network (``suffice train --permute-labels``).
    """
    made = []
    for net in nets:
        opened = open_images(images)[:count]
        other = None if permuted is None else _permuted(net, permuted)
        rows: list[RowOf] = []
        last: list[float] = []
        names: list[str] = []
        for number, picture in enumerate(opened):
            found = sanity_check(net, opened[[number]], method, check=check)
            (row,) = found.rows
            steps = _some(found.steps)
            likeness = row.means("spearman")
            tiles = [photo_tile(found.pixels)]
            tiles += [
                map_tile(row.example[step], found.pixels, "" if not step else f"{float(likeness[step]):+.2f}")
                for step in steps
            ]
            if other is not None:
                beside = data_randomization(net, other, opened[[number]], method)
                (second,) = beside.rows
                tiles.append(map_tile(second.example[-1], found.pixels, f"{float(second.means()[-1]):+.2f}"))
            last.append(float(likeness[-1]))
            label = net.labels[int(found.targets[0])] if net.labels else str(int(found.targets[0]))
            rows.append(RowOf(short_name(picture.name), tiles, label))
            names = [found.steps[step] for step in steps]
        columns = ["image", *names, *(["permuted labels"] if other is not None else [])]
        words = sentence((f"{row.name} {value:+.2f}" for row, value in zip(rows, last, strict=True)), 12)
        made.append(
            Drawing(
                name=named(f"sanity-maps-{check}-{net.name}"),
                title=f"Maps of {net.name} by {method} while weights become random ({check})",
                reading="Left the map of the trained model; then with "
                + ("all layers from the output down to the one named" if check == "cascading" else "just this layer")
                + " random. The number is the rank correlation with the trained model's map.",
                alt=f"Rank correlation with the map of the trained model at the last step: {words}.",
                svg=grid_sheet(columns, rows, title=f"Randomization of {net.name}", colors="each map on its own scale"),
                source=f"suffice.metrics.sanity_check({net.name!r}, images, {method!r}, check={check!r})",
            )
        )
    return made


def _permuted(net: Classifier, permuted: str) -> Classifier:
    from pathlib import Path

    return load(net.name, checkpoint=permuted) if Path(permuted).is_file() else load(permuted)


def _some(steps: Sequence[str]) -> list[int]:
    """The first, the last, and some evenly between."""
    count = min(MOST, len(steps))
    return sorted({round(i * (len(steps) - 1) / max(count - 1, 1)) for i in range(count)})
