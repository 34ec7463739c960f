"""All that a cross-test says, as tables and figures: matrix, landscape, families with their test, and its variance.

python benchmarks/cross_findings.py runs/cross-testing-zoo --out findings

Writes to the folder what ``suffice compare RUN --out`` writes, the figures ``cross-test``, ``families``, ``landscape``
and ``tree`` of each cross-test of the study as SVG, and findings.md: what its variance is made of (whose maps they are,
who is tested, and whether families show in what is left), and whose maps are good for others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from suffice import Study
from suffice.compare import CrossTest, compare_study, family_matrix
from suffice.compare.tables import tables_of_kind
from suffice.errors import StudyError
from suffice.report.figures import find_figure

FIGURES = ("cross-test", "families", "landscape", "tree")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a study with a cross-test")
    parser.add_argument("--out", type=Path, default=Path("findings"))
    options = parser.parse_args()
    study = Study.open(options.run)
    files = compare_study(study).write(options.out)
    said: list[str] = []
    for table in tables_of_kind(study, "cross-test"):
        try:
            found = CrossTest.from_study(study, table)
        except StudyError:  # nothing of it is done yet
            continue
        for metric in found.metrics:
            said += [f"## {table}, {metric}", *findings(found, metric), ""]
            files += [*drawn(study, table, metric, options.out)]
    files.append(options.out / "findings.md")
    files[-1].write_text("\n".join(said), encoding="utf-8")
    print("\n".join(said))
    print("\n".join(map(str, files)))


def drawn(study: Study, table: str, metric: str, out: Path) -> Iterator[Path]:
    """The figures of a cross-test by a metric, as files."""
    for name in FIGURES:
        for drawing in find_figure(name).drawings(study, measurement=table, metric=metric):
            file = out / f"{table}-{metric}-{name}.svg"
            drawing.save(file)
            yield file


def findings(found: CrossTest, metric: str) -> Iterator[str]:
    """What the variance of a normalized cross-test [M, M] is made of, as lines."""
    scores, count = found.normalized(metric), len(found.models)
    low = found.lower_is_better(metric)
    others = ~np.eye(count, dtype=bool)
    maker, tested = (one[others] for one in np.indices(scores.shape))
    y = scores[others]
    by_maker, by_tested = np.eye(count)[maker], np.eye(count)[tested]
    both = np.hstack([by_maker, by_tested])
    for name, columns in (("maps", by_maker), ("tested", by_tested), ("both", both)):
        yield f"- {name}: {explained(columns, y).var() / y.var():.2f} of the variance of {len(y)} pairs"
    left = np.zeros_like(scores)
    left[others] = y - explained(both, y)
    whole = found.by_family(metric)
    rest = family_matrix(left, found.families, higher_is_better=not low)
    if not np.isnan(whole.within):  # there are pairs within families and between them
        yield f"- within families less between them: {whole.within:+.4f}, p = {whole.p:.2g}"
        yield f"- the same of what both leave: {rest.within:+.4f}, p = {rest.p:.2g}"
    best = (np.argmin if low else np.argmax)(scores, axis=0)
    won = int((best == np.arange(count)).sum())
    yield f"- own maps: {np.diag(scores).mean():.2f}, others': {y.mean():.2f}; the best for {won} of {count}"
    means = (by_maker.T @ y / (count - 1)).tolist()
    ranked = sorted(zip(found.models, means, strict=True), key=lambda row: row[1] if low else -row[1])
    yield "- maps on others: " + ", ".join(f"{name} {mean:.2f}" for name, mean in ranked)


def explained(columns: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least squares of y [P] by columns [P, C] and a constant, [P]."""
    given = np.hstack([np.ones((len(y), 1)), columns])
    return np.asarray(given @ np.linalg.lstsq(given, y, rcond=None)[0])


if __name__ == "__main__":
    main()
