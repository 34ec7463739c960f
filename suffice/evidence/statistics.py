"""Evidence over a data set: one row an image, and what the rows say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.evidence.counting import COUNTINGS, THRESHOLDS, Counting, count_together

if TYPE_CHECKING:
    import pyarrow

    from suffice.evidence.result import Evidence, EvidenceSet

OVERLAPS = (0, 1, 2)


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

    count_together(evidence)
    of_all = {"model": model or getattr(evidence, "model", ""), "family": family or getattr(evidence, "family", "")}
    rows = [of_all | {name: value(e) for name, (_, value) in _columns().items()} for e in evidence]
    return pa.Table.from_pylist(rows, schema=table_schema())


def table_schema() -> pyarrow.Schema:
    """The columns of :func:`evidence_table` and their types."""
    import pyarrow as pa

    of_all = {"model": pa.string(), "family": pa.string()}
    return pa.schema(of_all | {name: kind for name, (kind, _) in _columns().items()})


def _columns() -> dict[str, tuple[pyarrow.DataType, Callable[[Evidence], Any]]]:
    """The type of each column that differs between images, and its value for one of them."""
    import pyarrow as pa

    whole, number, text, flag = pa.int64(), pa.float64(), pa.string(), pa.bool_()

    def count(counting: Counting, threshold: float) -> Callable[[Evidence], float]:
        kind = float if counting.startswith("tree") else int  # paths can be more than 64 bits hold
        return lambda e: kind(e.subexplanations(counting)[threshold])

    def diverse(overlap: int) -> Callable[[Evidence], int]:
        return lambda e: len(e.diverse(overlap))

    return {
        "image": (text, attrgetter("name")),
        "index": (whole, attrgetter("index")),
        "target": (whole, attrgetter("target")),
        "label": (text, attrgetter("label")),
        "confidence": (number, attrgetter("confidence")),
        "baseline_confidence": (number, attrgetter("baseline_confidence")),
        "mses": (whole, lambda e: len(e.mses)),
        "sizes": (pa.list_(pa.int32()), lambda e: [len(m) for m in e.mses]),
        "mean_size": (number, lambda e: sum(map(len, e.mses)) / len(e.mses) if e.mses else None),
        "smallest": (whole, lambda e: min(map(len, e.mses), default=None)),
        "certified": (flag, lambda e: all(m.certified for m in e.mses)),
        **{f"diverse_{overlap}": (whole, diverse(overlap)) for overlap in OVERLAPS},
        **{
            count_column(c, t): (number if c.startswith("tree") else whole, count(c, t))
            for c in COUNTINGS
            for t in THRESHOLDS
        },
        "depth_ratio_sums": (pa.list_(number), attrgetter("counts.depth_ratio_sums")),
        "depth_counts": (pa.list_(whole), attrgetter("counts.depth_counts")),
        "regions": (whole, lambda e: len(e.ratios)),
        "questions": (whole, attrgetter("questions")),
        "levels": (whole, attrgetter("levels")),
        "stopped": (text, attrgetter("stopped")),
        "truncated": (flag, attrgetter("truncated")),
    }


@dataclass(frozen=True)
class Statistic:
    """A quantity over the images that have it: its mean, sample standard deviation, median, error of the mean."""

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
    """Summarize a table of evidence, from :func:`evidence_table` or read from its Parquet file."""
    import pyarrow as pa

    quantities = [f.name for f in table_schema() if f.type in (pa.int64(), pa.float64())]
    quantities = [name for name in quantities if name not in ("index", "target")]
    columns = {name: table[name].to_pylist() for name in ("sizes", "smallest", "stopped", "truncated")}
    sizes = Counter(size for row in columns["sizes"] for size in row)
    smallest = [size for size in columns["smallest"] if size is not None]
    sums, counts = table["depth_ratio_sums"].to_pylist(), table["depth_counts"].to_pylist()
    profiles = [[s / n for s, n in zip(*both, strict=True)] for both in zip(sums, counts, strict=True)]
    by_depth = [[p[d] for p in profiles if len(p) > d] for d in range(max(map(len, profiles), default=0))]
    return Summary(
        images=table.num_rows,
        statistics={name: _statistic(table[name].to_numpy()) for name in quantities},
        sizes=dict(sorted(sizes.items())),
        explained_with=[
            sum(s <= n for s in smallest) / max(table.num_rows, 1) for n in range(max(sizes, default=0) + 1)
        ],
        compositionality=[(float(np.mean(values)), len(values)) for values in by_depth],
        stopped=dict(sorted(Counter(columns["stopped"]).items())),
        truncated=sum(columns["truncated"]),
    )


def _statistic(values: np.ndarray) -> Statistic:
    values = values[~np.isnan(values.astype(float))].astype(float)
    if not len(values):
        return Statistic(float("nan"), float("nan"), float("nan"), float("nan"), 0)
    std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Statistic(float(values.mean()), std, float(np.median(values)), std / len(values) ** 0.5, len(values))
