"""Evidence over a data set: what the rows of a table say together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.evidence.files.table import table_schema

if TYPE_CHECKING:
    import pyarrow


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
        statistics: By quantity: ``mses``, ``mean_size``, ``coverage``, ``certified_share``, ``within_1000``,
            ``baseline_ratio``, ``stability``, ``diverse_0``, ``distinct_80``, ``questions`` and every other column of
            numbers in :func:`suffice.evidence.files.table.evidence_table`.
        sizes: MSE size → number of MSEs of that size, over all images.
        explained_with: For n = 0, 1, 2, …: share of the images that have an MSE of at most n cells.
        compositionality: Mean ratio after 0, 1, 2, … cells were taken out of an MSE, first averaged within each image,
            and from how many images.
        stopped: What ended the searches → number of images.
        truncated: Images whose counts of sub-explanations are lower bounds.
        by_deletion: Images that have their MSEs by deletion from the whole image.
        by_reason: What ended the searches → the summary of just these images. A search that ran to its end counted
            something else than one that stopped at a limit: means over both depend on the limit.
    """

    images: int
    statistics: dict[str, Statistic]
    sizes: dict[int, int]
    explained_with: list[float]
    compositionality: list[tuple[float, int]]
    stopped: dict[str, int]
    truncated: int
    by_deletion: int
    by_reason: dict[str, Summary] = field(default_factory=dict, repr=False)


def summarize(table: pyarrow.Table) -> Summary:
    """Summarize a table of evidence, made by :func:`~suffice.evidence.files.table.evidence_table` or read from a file.

    Example:
        >>> from suffice import find_evidence
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(0, 1), (3,)], grid=2)
        >>> found = find_evidence(oracle.classifier(8), oracle.image(8), targets=1, grid=2, baseline="black")
        >>> summary = found.summary()
        >>> summary.statistics["mses"].mean, summary.sizes, summary.explained_with
        (2.0, {1: 1, 2: 1}, [0.0, 1.0, 1.0])
    """
    import pyarrow.compute as pc

    whole = _summary(table)
    of_each = {reason: _summary(table.filter(pc.equal(table["stopped"], reason))) for reason in whole.stopped}
    return replace(whole, by_reason=of_each)


def _summary(table: pyarrow.Table) -> Summary:
    import pyarrow as pa

    quantities = [f.name for f in table_schema() if f.type in (pa.int64(), pa.float64())]
    quantities = [name for name in quantities if name not in ("index", "target")]
    columns = {name: table[name].to_pylist() for name in ("sizes", "smallest", "stopped", "truncated", "by_deletion")}
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
        by_deletion=sum(n > 0 for n in columns["by_deletion"]),
    )


def _statistic(values: np.ndarray) -> Statistic:
    values = values[~np.isnan(values.astype(float))].astype(float)
    if not len(values):
        return Statistic(float("nan"), float("nan"), float("nan"), float("nan"), 0)
    std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Statistic(float(values.mean()), std, float(np.median(values)), std / len(values) ** 0.5, len(values))
