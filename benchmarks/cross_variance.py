"""What a cross-test is made of: whose maps they are, who is tested, and whether families show in what is left.

python benchmarks/cross_variance.py runs/cross
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from suffice import Study
from suffice.compare import CrossTest, family_matrix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a study with a cross-test")
    found = CrossTest.from_study(Study.open(parser.parse_args().run))
    scores, count = found.normalized(), len(found.models)
    others = ~np.eye(count, dtype=bool)
    maker, tested = (one[others] for one in np.indices(scores.shape))
    y = scores[others]
    by_maker, by_tested = np.eye(count)[maker], np.eye(count)[tested]
    both = np.hstack([by_maker, by_tested])
    for name, columns in (("maps", by_maker), ("tested", by_tested), ("both", both)):
        print(f"{name}: {explained(columns, y).var() / y.var():.2f} of the variance of {len(y)} pairs")
    left = np.zeros_like(scores)
    left[others] = y - explained(both, y)
    families = family_matrix(left, found.families)
    print(f"families in what is left: {families.within:+.4f}, p = {families.p:.2f}")
    best = sum(int(scores[:, one].argmax() == one) for one in range(count))
    print(f"own maps: {np.diag(scores).mean():.2f}, others': {y.mean():.2f}; the best for {best} of {count}")
    for name, mean in sorted(zip(found.models, by_maker.T @ y / (count - 1), strict=True), key=lambda row: -row[1]):
        print(f"maps of {name} on others: {mean:.2f}")


def explained(columns: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least squares of y [P] by columns [P, C] and a constant, [P]."""
    given = np.hstack([np.ones((len(y), 1)), columns])
    return np.asarray(given @ np.linalg.lstsq(given, y, rcond=None)[0])


if __name__ == "__main__":
    main()
