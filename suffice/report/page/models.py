"""What was studied, and what evidence says of each model: tables with a row a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from suffice.compare import Decides, Index, how_it_decides
from suffice.draw.theme import family_color
from suffice.errors import OptionError
from suffice.report.figures import queries
from suffice.report.figures.reading import by_model, good_rows
from suffice.report.page.comparing import Comparison
from suffice.report.page.content import Cell, Column, Source, Table, lettered
from suffice.report.page.sources import TEST, source_of
from suffice.report.page.wording import NONE, percent, short

if TYPE_CHECKING:
    from suffice.study import Study

DECIDES = (
    "mses",
    "diverse_0",
    "distinct_50",
    "distinct_80",
    "mean_size",
    "smallest",
    "depth_ratio_sums",
    "depth_counts",
)
LETTERS = "Models that share a letter do not differ significantly."
DRAWS, MANY = 999, 1000  # of the bootstrap; half as many from so many images on


def model_cell(study: Study, label: str) -> Cell:
    """The name of a model, with the color of its family."""
    return Cell(label, color=family_color(study.plan.model(label).family))


def models_table(study: Study, said: str | None, right: Comparison | None) -> Table:
    """The models: family, how often right, how sure, weights."""
    plan = study.plan
    sure: dict[str, tuple[float, int]] = {}
    if said is not None:
        for model, table in by_model(good_rows(study, said, ["index", "confidence"])).items():
            values = table["confidence"].to_numpy()
            sure[model] = (float(values.mean()), len(values))
    rows, keys = [], []
    for one in plan.models:
        label = one.label
        accuracy = right.mean(label) / 100 if right is not None and label in right.names else float("nan")
        confidence, images = sure.get(label, (float("nan"), 0))
        cells = [model_cell(study, label), Cell(one.family or NONE)]
        if right is not None:
            cells.append(Cell(percent(accuracy, 1), _known(accuracy), letters=right.letters.get(label, "")))
        if said is not None:
            cells += [Cell(percent(confidence, 1), _known(confidence)), Cell(f"{images:,}", images)]
        cells.append(Cell(one.weights[:10] or NONE))
        rows.append(cells)
        keys.append({"model": label})
    own = "model = '{model}'"
    columns = [Column("Model"), Column("Family")]
    if right is not None:
        query = queries.select(study, str(said), "avg(correct::INT) AS right", where=own)
        columns.append(Column("Right", "number", "Share of labeled images whose likeliest class is the label", query))
    if said is not None:
        columns += [
            Column("Mean confidence", "number", query=queries.select(study, said, "avg(confidence)", where=own)),
            Column("Images", "number", query=queries.select(study, said, "count(*)", where=own)),
        ]
    columns.append(Column("Weights", hint="Hash of the weights, its beginning"))
    source: Source | None = None
    if said is not None:
        what = "model, any_value(family) AS family, avg(correct::INT) AS right, avg(confidence) AS confidence, count(*)"
        source = source_of(
            study, said, queries.select(study, said, what, "GROUP BY model"), letters=TEST if right else ""
        )
    return Table("models", "The models", columns, rows, keys, _about_letters(rows), source)


def _about_letters(rows: Sequence[Sequence[Cell]]) -> str:
    """What letters in a table mean; nothing where there are none."""
    return LETTERS if lettered(rows) else ""


def measurements_table(study: Study) -> Table:
    """What was measured."""
    rows = []
    for table in study.tables:
        names = study.plan.asked.named(table)
        first = study.plan.measurements[names[0]]
        labels = [dict(one.facts).get("method", "") for one in (study.plan.measurements[name] for name in names)]
        rows.append(
            [
                Cell(table),
                Cell(first.kind),
                Cell(", ".join(dict.fromkeys(label for label in labels if label)) or NONE),
                Cell(source_of(study, table).facts["settings"]),
            ]
        )
    columns = [Column("Measurement"), Column("Kind"), Column("Methods", "wide"), Column("Settings", "wide")]
    return Table("measurements", "What was measured", columns, rows)


class Deciding:
    """How every model of a table of evidence decides: what :func:`suffice.compare.how_it_decides` says of it."""

    def __init__(self, study: Study, table: str) -> None:
        self.study, self.table = study, table
        rows = good_rows(study, table, ["index", "stopped", *DECIDES])
        self.rows = by_model(rows)
        self.cells = study.plan.measurements[study.plan.asked.named(table)[0]].settings.grid ** 2  # type: ignore[attr-defined]
        self.decides: dict[str, Decides | None] = {}
        for model, own in self.rows.items():
            try:
                self.decides[model] = how_it_decides(own, draws=DRAWS if own.num_rows < MANY else DRAWS // 2)
            except OptionError:  # no two images with evidence
                self.decides[model] = None

    def mean(self, model: str, column: str) -> float:
        """Mean of a column over the images of a model that have it."""
        values = self.rows[model][column].to_numpy(zero_copy_only=False).astype(float)
        return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def enough_table(found: Deciding, sizes: Comparison) -> Table:
    """How many cells are enough."""
    study, table = found.study, found.table
    rows, keys = [], []
    for model, decides in found.decides.items():
        size = _index(None if decides is None else decides.size, sizes.letters.get(model, ""))
        share = float("nan") if decides is None else decides.size.value / found.cells
        smallest = found.mean(model, "smallest")
        none = (found.rows[model]["mses"].to_numpy() == 0).sum()
        rows.append(
            [
                model_cell(study, model),
                size,
                Cell(percent(share), _known(share)),
                Cell(short(smallest), _known(smallest)),
                Cell(f"{found.rows[model].num_rows - none:,}", float(found.rows[model].num_rows - none)),
                Cell(f"{none:,}", float(none)),
            ]
        )
        keys.append({"model": model})
    columns = [
        Column("Model"),
        Column("Cells of an MSE", "number", "Mean over images [95 % interval]", _one(found, "avg(mean_size)")),
        Column("Share of the image", "number", query=_one(found, f"avg(mean_size) / {found.cells} AS share")),
        Column("Smallest MSE", "number", "Cells of the smallest MSE of an image, mean", _one(found, "avg(smallest)")),
        Column("Images with", "number", "Images with evidence", _one(found, "count(*) FILTER (mses > 0)")),
        Column("without", "number", "Images without evidence", _one(found, "count(*) FILTER (mses = 0)")),
    ]
    what = (
        f"model, avg(mean_size) AS cells, avg(mean_size) / {found.cells} AS share, avg(smallest) AS smallest,\n       "
        "count(*) FILTER (mses > 0) AS with_evidence, count(*) FILTER (mses = 0) AS without_evidence"
    )
    return Table(
        f"enough-{table}",
        "How many cells are enough",
        columns,
        rows,
        keys,
        f"A minimal sufficient explanation (MSE) is a set of the image’s {found.cells} cells that keeps the answer, "
        f"and of which no part does. {_about_letters(rows)}".rstrip(),
        source_of(
            study, table, queries.select(study, table, what, "GROUP BY model"), intervals=BOOTSTRAP, letters=TEST
        ),
    )


BOOTSTRAP = "95 %, bootstrap over images, bias-corrected and accelerated (suffice.compare.how_it_decides)"


def ways_table(found: Deciding, comparisons: dict[str, Comparison]) -> Table:
    """How many ways, and what lies below them."""
    study, table = found.study, found.table
    rows, keys = [], []
    for model, decides in found.decides.items():
        letters = {key: one.letters.get(model, "") for key, one in comparisons.items()}
        at_80 = comparisons["distinct_80"].mean(model) if model in comparisons["distinct_80"].names else float("nan")
        rows.append(
            [
                model_cell(study, model),
                _index(None if decides is None else decides.disjunctivism, letters["mses"]),
                _index(None if decides is None else decides.independent, letters["diverse_0"]),
                Cell(short(at_80), _known(at_80), letters=letters["distinct_80"]),
                _index(None if decides is None else decides.compositionality, letters["distinct_50"]),
                _index(None if decides is None else decides.gentleness),
            ]
        )
        keys.append({"model": model})
    columns = [
        Column("Model"),
        Column("MSEs", "number", "Geometric mean of 1 + MSEs of an image, less 1", _geometric(found, "mses")),
        Column(
            "sharing no cell", "number", "Largest family of MSEs that share no cell", _some(found, "avg(diverse_0)")
        ),
        Column("sub-expl. ≥ 80 %", "number", "Sub-explanations, geometric mean", _geometric(found, "distinct_80")),
        Column("≥ 50 %", "number", "Sub-explanations, geometric mean", _geometric(found, "distinct_50")),
        Column("left without one cell", "number", "Share of an MSE’s confidence that is left", _gentle(found)),
    ]
    what = ",\n       ".join(
        [
            "model",
            f"{queries.geometric('mses')} AS mses",
            "avg(diverse_0) AS sharing_no_cell",
            f"{queries.geometric('distinct_80')} AS below_80",
            f"{queries.geometric('distinct_50')} AS below_50",
            f"{GENTLE} FILTER (len(depth_counts) > 1) AS left_without_one",
        ]
    )
    query = queries.select(study, table, what, "GROUP BY model", "mses > 0")
    return Table(
        f"ways-{table}",
        "How many ways to decide, and what is left without a part",
        columns,
        rows,
        keys,
        "Many MSEs: the model can decide in many ways. Many sub-explanations, and much left without one cell: its "
        f"confidence falls gently, part by part. {_about_letters(rows)}".rstrip(),
        source_of(study, table, query, intervals=BOOTSTRAP, letters=TEST),
    )


def _one(found: Deciding, what: str) -> str:
    return queries.select(found.study, found.table, what, where="model = '{model}'")


def _some(found: Deciding, what: str) -> str:
    return queries.select(found.study, found.table, what, where="mses > 0 AND model = '{model}'")


def _geometric(found: Deciding, column: str) -> str:
    return _some(found, queries.geometric(column))


GENTLE = "avg((depth_ratio_sums[2] / depth_counts[2]) / (depth_ratio_sums[1] / depth_counts[1]))"


def _gentle(found: Deciding) -> str:
    where = "mses > 0 AND len(depth_counts) > 1 AND model = '{model}'"
    return queries.select(found.study, found.table, GENTLE, where=where)


def _index(index: Index | None, letters: str = "") -> Cell:
    if index is None or not np.isfinite(index.value):
        return Cell(NONE)
    return Cell(short(index.value), index.value, f"[{short(index.low)}, {short(index.high)}]", letters)


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
