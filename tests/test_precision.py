"""The script that compares evidence between precisions."""

import json

import pytest

from benchmarks import precision
from suffice import find_evidence
from suffice.evidence import EvidenceSet
from suffice.testing import AnyOf


@pytest.fixture(scope="module")
def two():
    """Evidence in two images, of which the second is decided by one more set."""
    sets = [(1, 2), (5,), (3, 6)]
    pairs = [AnyOf(sets[:2], grid=3), AnyOf(sets, grid=3)]
    return [find_evidence(o.classifier(24), o.image(24), targets=1, grid=3, baseline="black")[0] for o in pairs]


def test_evidence_agrees_with_itself(two):
    row = precision.agreement(EvidenceSet(two, "oracle", "other"), EvidenceSet(two, "oracle", "other"))
    assert (row["images"], row["same target"], row["same MSEs"]) == (2, 2, 2)
    assert row["MSEs in common"] == pytest.approx(1)
    assert [row[name]["change"] for name in ("mses", "mean_size")] == pytest.approx([0, 0])


def test_what_differs_is_counted(two):
    small, large = two
    row = precision.agreement(
        EvidenceSet([small, large], "oracle", "other"), EvidenceSet([large, large], "oracle", "other")
    )
    assert row["same MSEs"] == 1
    assert row["MSEs in common"] == pytest.approx(5 / 6)
    # From 2 and 3 MSEs to 3 and 3: half a set more on a mean of 2.5, and changes of 1 and 0 have the error 0.5.
    assert row["mses"] == pytest.approx({"mean": 3, "change": 0.2, "error": 0.2})


def test_rows_can_be_written_and_drawn_up(two):
    same = EvidenceSet(two, "oracle", "other")
    kinds = [(precision.EXACT, "none", 0.0), ("fp16", "none", 0.0), ("fp16", "doubtful", 0.1)]
    rows = [
        {"model": "oracle", "precision": p, "confirmed": c, "seconds": 2.0, "confirming": s}
        | precision.agreement(same, same)
        for p, c, s in kinds
    ]
    lines = precision.table(json.loads(json.dumps(rows))).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].split(" | ")[1] == "fp32"
    assert [line.split(" | ")[-1].strip(" |") for line in lines[2:]] == ["0.0%", "0.0%", "5.0%"]
