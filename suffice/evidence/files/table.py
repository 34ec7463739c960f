"""Evidence as a table: one row an image, with all that was found in it, and back again.

There is one schema: :meth:`EvidenceSet.to_arrow` shows it, :meth:`EvidenceSet.save` and the command line write it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch

from suffice.draw import from_png, to_png
from suffice.evidence.counting import COUNTINGS, THRESHOLDS, Counting, Counts, count_together
from suffice.evidence.settings import Settings
from suffice.perturb.regions import Grid

if TYPE_CHECKING:
    import pyarrow

    from suffice.evidence.result import MSE, Evidence, EvidenceSet

    Columns = dict[str, tuple[pyarrow.DataType, Callable[[Evidence], Any]]]

OVERLAPS = (0, 1, 2)
BUDGETS = (500, 1000, 2000, 4000)
WORDS, RATIOS = "region_words", "region_ratios"
# Fields of an MSE, and the columns that hold them as lists.
MSE_COLUMNS = {
    "cells": "mse_cells",
    "ratio": "mse_ratios",
    "certified": "mse_certified",
    "margin": "mse_margins",
    "found": "mse_found",
    "asked": "mse_asked",
    "second_ratio": "mse_second_ratios",
    "under": "mse_under",
    "stays": "mse_stays",
}
MAPS = ("under", "stays")  # of these fields, from a small change to what became of the MSE


def count_column(counting: Counting, threshold: float) -> str:
    """The column that holds a count, such as ``distinct_80``."""
    return f"{counting.replace('-', '_')}_{round(100 * threshold)}"


def evidence_table(
    evidence: EvidenceSet | Sequence[Evidence],
    model: str = "",
    family: str = "",
    *,
    pictures: bool = False,
    regions: bool = False,
) -> pyarrow.Table:
    """One row an image.

    Args:
        evidence: What was found.
        model: Name of the model; default: that of the set.
        family: Its family; default: that of the set.
        pictures: Also the small pictures of what the model saw.
        regions: Also all regions evaluated below the MSEs, up to ``max_regions`` an image.

    Returns:
        Columns:

        * which image, and what the model says of it: ``model``, ``family``, ``image``, ``image_id`` (hash of its
          content), ``index``, ``target``, ``label``, ``confidence``, ``baseline_confidence``, ``baseline_ratio``;
        * its MSEs together: ``mses`` (how many), ``sizes`` (of each), ``mean_size``, ``smallest``, ``certified`` (how
          many are), ``certified_share``, ``by_deletion`` (how many were found so), ``coverage``, ``stability``,
          ``diverse_0`` … ``diverse_2`` (largest family by overlap), ``within_500`` … ``within_4000`` (how many so many
          questions found, null where a limit ended the search before), ``exhaustive_mses`` (how many MSEs there are of
          up to ``exhaustive`` cells);
        * each of them: ``mse_cells``, ``mse_ratios``, ``mse_certified``, ``mse_margins``, ``mse_found``,
          ``mse_asked``, ``mse_second_ratios``, ``mse_under``, ``mse_stays``, as in :class:`MSE`;
        * what was asked for besides: ``contrastive``, ``necessary``, ``refined``, as in :class:`Evidence`;
        * what lies below: ``distinct_90`` … ``tree3_50`` (sub-explanations by reading and threshold; those of trees as
          float64, exact to 2**53), ``depth_ratio_sums``, ``depth_counts``, ``regions`` (how many were evaluated);
        * the search: ``questions``, ``spent`` (questions by purpose), ``levels``, ``stopped``, ``why`` (that in a
          sentence), ``truncated``, ``mended``;
        * with ``pictures``, ``picture`` (PNG); with ``regions``, ``region_words`` (int64, the words of all regions in a
          row) and ``region_ratios``.
    """
    import pyarrow as pa

    count_together(evidence)
    of_all = {"model": model or getattr(evidence, "model", ""), "family": family or getattr(evidence, "family", "")}
    values = {name: [text] * len(evidence) for name, text in of_all.items()}
    values |= {name: [value(e) for e in evidence] for name, (_, value) in _columns(pictures, regions).items()}
    schema = table_schema(pictures, regions)
    return pa.table([pa.array(values[column.name], column.type) for column in schema], schema)


def table_schema(pictures: bool = False, regions: bool = False) -> pyarrow.Schema:
    """The columns of :func:`evidence_table` and their types."""
    import pyarrow as pa

    of_all = {"model": pa.string(), "family": pa.string()}
    return pa.schema(of_all | {name: kind for name, (kind, _) in _columns(pictures, regions).items()})


def evidence_of_table(table: pyarrow.Table, settings: Settings) -> list[Evidence]:
    """The evidence that the rows of a table hold.

    Without the columns of regions it has none: its counts are those of the table, and its graphs show MSEs only.
    """
    from suffice.evidence.result import Evidence

    grid, found = Grid(settings.grid), []
    shape = (-1,) if grid.words == 1 else (-1, grid.words)
    large = {name: table[name] for name in (WORDS, RATIOS) if name in table.column_names}
    for number, row in enumerate(table.drop_columns(list(large)).to_pylist()):
        # As arrays, not as lists of numbers: there can be fifty thousand in a row.
        words, ratios = (
            (torch.tensor(column[number].values.to_numpy()) for column in large.values())
            if large
            else (torch.zeros(0, dtype=torch.long), torch.zeros(0))
        )
        mses = zip(*(row[column] for column in MSE_COLUMNS.values()), strict=True)
        stored = {
            "name": row["image"],
            "mses": tuple(_mse(dict(zip(MSE_COLUMNS, values, strict=True))) for values in mses),
            "spent": dict(row["spent"]),
            "contrastive": None if row["contrastive"] is None else tuple(map(_mse, row["contrastive"])),
            "necessary": None if row["necessary"] is None else tuple(map(tuple, row["necessary"])),
            "refined": {side: tuple(map(_mse, parts)) for side, parts in row["refined"]},
            "regions": words.view(shape),
            "ratios": ratios,
            "grid": grid,
            "settings": settings,
            "picture": from_png(row["picture"]) if row.get("picture") else None,
        }
        evidence = Evidence(**{f.name: row[f.name] for f in fields(Evidence) if f.name in row} | stored)
        if not large:
            evidence.__dict__["counts"] = _counts(row)
        found.append(evidence)
    return found


def evidence_record(evidence: Evidence) -> dict[str, Any]:
    """The row of one image as plain values for JSON, with its MSEs one by one under ``mses``."""
    row: dict[str, Any] = evidence_table([evidence]).to_pylist()[0]
    for column in ("model", "family", *MSE_COLUMNS.values()):
        del row[column]
    return row | {
        "mses": [mse_record(mse) for mse in evidence.mses],
        "spent": dict(evidence.spent),
        "contrastive": None if evidence.contrastive is None else [mse_record(mse) for mse in evidence.contrastive],
        "refined": {str(side): [mse_record(mse) for mse in parts] for side, parts in evidence.refined.items()},
        "formula": evidence.formula(),
    }


def mse_record(mse: MSE) -> dict[str, Any]:
    """An MSE as plain values, field by field."""
    plain = {name: getattr(mse, name) for name in MSE_COLUMNS}
    return plain | {"cells": list(mse.cells)} | {name: plain[name] and dict(plain[name]) for name in MAPS}


def _mse(record: Mapping[str, Any]) -> MSE:
    from suffice.evidence.result import MSE

    maps = {name: None if record[name] is None else dict(record[name]) for name in MAPS}
    return MSE(**{**record, "cells": tuple(record["cells"]), **maps})


def _counts(row: Mapping[str, Any]) -> Counts:
    counts = {c: tuple(int(row[count_column(c, t)]) for t in THRESHOLDS) for c in COUNTINGS}
    return Counts(THRESHOLDS, counts, tuple(row["depth_ratio_sums"]), tuple(row["depth_counts"]))


def _columns(pictures: bool, regions: bool) -> Columns:
    """The type of each column that differs between images, and its value for one of them."""
    import pyarrow as pa

    whole, number, text, flag = pa.int64(), pa.float64(), pa.string(), pa.bool_()
    cells = pa.list_(pa.int32())
    kinds = {
        "cells": cells, "ratio": number, "certified": flag, "margin": number, "found": text, "asked": whole,
        "second_ratio": number, "under": pa.map_(text, number), "stays": pa.map_(text, flag),
    }  # fmt: skip
    records = pa.list_(pa.struct(kinds))

    def count(counting: Counting, threshold: float) -> Callable[[Evidence], float]:
        kind = float if counting.startswith("tree") else int  # paths can be more than 64 bits hold
        return lambda e: kind(e.subexplanations(counting)[threshold])

    def diverse(overlap: int) -> Callable[[Evidence], int]:
        return lambda e: len(e.diverse(overlap))

    def within(questions: int) -> Callable[[Evidence], int | None]:
        return lambda e: e.found_within(questions)

    def of_each(field: str) -> Callable[[Evidence], list[Any]]:
        return lambda e: [_stored(mse)[field] for mse in e.mses]

    columns: Columns = {
        "image": (text, attrgetter("name")),
        "image_id": (text, attrgetter("image_id")),
        "index": (whole, attrgetter("index")),
        "target": (whole, attrgetter("target")),
        "label": (text, attrgetter("label")),
        "confidence": (number, attrgetter("confidence")),
        "baseline_confidence": (number, attrgetter("baseline_confidence")),
        "baseline_ratio": (number, lambda e: e.baseline_ratio if isfinite(e.baseline_ratio) else None),
        "mses": (whole, lambda e: len(e.mses)),
        "sizes": (cells, lambda e: [len(m) for m in e.mses]),
        "mean_size": (number, lambda e: sum(map(len, e.mses)) / len(e.mses) if e.mses else None),
        "smallest": (whole, lambda e: min(map(len, e.mses), default=None)),
        "certified": (whole, lambda e: sum(m.certified for m in e.mses)),
        "certified_share": (number, lambda e: sum(m.certified for m in e.mses) / len(e.mses) if e.mses else None),
        "by_deletion": (whole, lambda e: sum(m.found == "deletion" for m in e.mses)),
        "coverage": (number, attrgetter("coverage")),
        "stability": (number, attrgetter("stability")),
        **{f"diverse_{overlap}": (whole, diverse(overlap)) for overlap in OVERLAPS},
        **{f"within_{budget}": (whole, within(budget)) for budget in BUDGETS},
        "exhaustive_mses": (whole, attrgetter("exhaustive_mses")),
        **{column: (pa.list_(kinds[field]), of_each(field)) for field, column in MSE_COLUMNS.items()},
        "contrastive": (records, lambda e: None if e.contrastive is None else [_stored(m) for m in e.contrastive]),
        "necessary": (pa.list_(cells), attrgetter("necessary")),
        "refined": (
            pa.map_(pa.int32(), records),
            lambda e: [(side, [_stored(m) for m in parts]) for side, parts in e.refined.items()],
        ),
        **{
            count_column(c, t): (number if c.startswith("tree") else whole, count(c, t))
            for c in COUNTINGS
            for t in THRESHOLDS
        },
        "depth_ratio_sums": (pa.list_(number), attrgetter("counts.depth_ratio_sums")),
        "depth_counts": (pa.list_(whole), attrgetter("counts.depth_counts")),
        "regions": (whole, lambda e: len(e.ratios)),
        "questions": (whole, attrgetter("questions")),
        "spent": (pa.map_(text, whole), lambda e: list(e.spent.items())),
        "levels": (whole, attrgetter("levels")),
        "stopped": (text, attrgetter("stopped")),
        "why": (text, attrgetter("why")),
        "truncated": (flag, attrgetter("truncated")),
        "mended": (whole, attrgetter("mended")),
    }
    if pictures:
        columns["picture"] = (pa.binary(), lambda e: None if e.picture is None else to_png(e.picture))
    if regions:
        columns[WORDS] = (pa.list_(whole), lambda e: e.regions.flatten().cpu().numpy())
        columns[RATIOS] = (pa.list_(pa.float32()), lambda e: e.ratios.float().cpu().numpy())
    return columns


def _stored(mse: MSE) -> dict[str, Any]:
    """The record of an MSE with maps as Arrow takes them."""
    record = mse_record(mse)
    return record | {name: record[name] and list(record[name].items()) for name in MAPS}
