"""Evidence over a data set: one row an image, and what the rows say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.evidence.counting import COUNTINGS, Counting
from suffice.evidence.result import THRESHOLDS, Evidence, EvidenceSet, count_together

if TYPE_CHECKING:
    import pyarrow

OVERLAPS = (0, 1, 2)
# Columns that are attributes of the evidence.
FACTS = (
    "index", "target", "label", "confidence", "baseline_confidence", "questions", "levels", "stopped", "truncated",
)  # fmt: skip


def count_column(counting: Counting, threshold: float) -> str:
    """The column that holds a count, such as ``distinct_80``."""
    return f"{counting.replace('-', '_')}_{round(100 * threshold)}"


def evidence_table(evidence: EvidenceSet | Sequence[Evidence], model: str = "", family: str = "") -> pyarrow.Table:
    """One row an image.

    Args:
        evidence: What was found.
        model: Name of the model; default: that of the set.
        family: Its family; default: that of the set.

    Returns:
        Columns: ``model``, ``family``, ``image``, ``index``, ``target``, ``label``, ``confidence``,
        ``baseline_confidence``; ``mses`` (how many), ``sizes`` (of each), ``mean_size``, ``smallest``, ``certified``;
        ``diverse_0`` … ``diverse_2`` (largest family by overlap); ``distinct_90`` … ``tree3_50`` (sub-explanations by
        reading and threshold; float64, exact to 2**53); ``depth_ratio_sums``, ``depth_counts``; ``regions``,
        ``questions``, ``levels``, ``stopped``, ``truncated``.
    """
    import pyarrow as pa

    model, family = model or getattr(evidence, "model", ""), family or getattr(evidence, "family", "")
    count_together(evidence)
    rows = [_row(e, model, family) for e in evidence]
    return pa.Table.from_pylist(rows, schema=table_schema())


def table_schema() -> pyarrow.Schema:
    """The columns of :func:`evidence_table` and their types."""
    import pyarrow as pa

    whole, number, text = pa.int64(), pa.float64(), pa.string()
    columns = {
        **dict.fromkeys(("model", "family", "image"), text),
        "index": whole,
        "target": whole,
        "label": text,
        "confidence": number,
        "baseline_confidence": number,
        "mses": whole,
        "sizes": pa.list_(pa.int32()),
        "mean_size": number,
        "smallest": whole,
        "certified": pa.bool_(),
        **{f"diverse_{k}": whole for k in OVERLAPS},
        **{count_column(c, t): number if c.startswith("tree") else whole for c in COUNTINGS for t in THRESHOLDS},
        "depth_ratio_sums": pa.list_(number),
        "depth_counts": pa.list_(whole),
        "regions": whole,
        "questions": whole,
        "levels": whole,
        "stopped": text,
        "truncated": pa.bool_(),
    }
    return pa.schema(list(columns.items()))


@dataclass(frozen=True)
class Statistic:
    """A quantity over images.

    Attributes:
        mean: Mean.
        std: Standard deviation (of the sample).
        median: Median.
        standard_error: Of the mean.
        images: How many images have it.
    """

    mean: float
    std: float
    median: float
    standard_error: float
    images: int


@dataclass(frozen=True)
class Summary:
    """Evidence over a data set.

    Attributes:
        images: Number of images.
        statistics: By quantity: ``mses``, ``mean_size``, ``diverse_0``, ``distinct_80``, ``questions`` …
        sizes: MSE size → number of MSEs of that size, over all images.
        explained_with: For n = 0, 1, 2, …: share of the images that have an MSE of at most n cells.
        compositionality: Mean ratio after 0, 1, 2, … cells were taken out of an MSE, first averaged within each image,
            and from how many images.
        stopped: What ended the searches → number of images.
        truncated: Images whose counts are lower bounds.
    """

    images: int
    statistics: dict[str, Statistic]
    sizes: dict[int, int]
    explained_with: list[float]
    compositionality: list[tuple[float, int]]
    stopped: dict[str, int]
    truncated: int


def summarize(table: pyarrow.Table) -> Summary:
    """Summarize a table of evidence.

    Args:
        table: From :func:`evidence_table`, or read from its Parquet file.

    Returns:
        The summary.
    """
    plain = {"index", "target", "model", "family", "image", "label", "sizes", "stopped", "truncated", "certified"}
    numeric = [n for n in table_schema().names if n not in plain and not n.startswith("depth")]
    statistics = {name: _statistic(table.column(name).to_numpy()) for name in numeric}
    sizes = [s for row in table.column("sizes").to_pylist() for s in row]
    smallest = [s for s in table.column("smallest").to_pylist() if s is not None]
    most = max(sizes, default=0)
    profiles = [
        [s / n for s, n in zip(sums, counts, strict=True)]
        for sums, counts in zip(table["depth_ratio_sums"].to_pylist(), table["depth_counts"].to_pylist(), strict=True)
    ]
    deepest = max(map(len, profiles), default=0)
    by_depth = [[p[d] for p in profiles if len(p) > d] for d in range(deepest)]
    stopped = table.column("stopped").to_pylist()
    return Summary(
        images=table.num_rows,
        statistics=statistics,
        sizes={s: sizes.count(s) for s in sorted(set(sizes))},
        explained_with=[sum(s <= n for s in smallest) / max(table.num_rows, 1) for n in range(most + 1)],
        compositionality=[(float(np.mean(values)), len(values)) for values in by_depth],
        stopped={reason: stopped.count(reason) for reason in sorted(set(stopped))},
        truncated=sum(table.column("truncated").to_pylist()),
    )


def _statistic(values: np.ndarray) -> Statistic:
    values = values[~np.isnan(values.astype(float))].astype(float)
    if not len(values):
        return Statistic(float("nan"), float("nan"), float("nan"), float("nan"), 0)
    std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Statistic(float(values.mean()), std, float(np.median(values)), std / len(values) ** 0.5, len(values))


def _row(e: Evidence, model: str, family: str) -> dict[str, Any]:
    sizes = [len(m) for m in e.mses]
    row: dict[str, Any] = {
        "model": model,
        "family": family,
        "image": e.name,
        "mses": len(sizes),
        "sizes": sizes,
        "mean_size": sum(sizes) / len(sizes) if sizes else None,
        "smallest": min(sizes, default=None),
        "certified": all(m.certified for m in e.mses),
        "depth_ratio_sums": list(e.counts.depth_ratio_sums),
        "depth_counts": list(e.counts.depth_counts),
        "regions": len(e.ratios),
    }
    row |= {name: getattr(e, name) for name in FACTS}
    row |= {f"diverse_{k}": len(e.diverse(k)) for k in OVERLAPS}
    for counting in COUNTINGS:
        for threshold, count in e.subexplanations(counting).items():
            row[count_column(counting, threshold)] = float(count) if counting.startswith("tree") else count
    return row
