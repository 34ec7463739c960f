"""Tables and summaries against what can be worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from suffice.evidence import MSE, EvidenceSet
from suffice.evidence.files.statistics import summarize
from suffice.evidence.files.table import evidence_table
from suffice.testing import AnyOf, AtLeast
from tests.evidence.made import make_evidence
from tests.evidence.twins import search_oracle


@pytest.fixture(scope="module")
def evidence():
    oracles = [
        AnyOf([(0, 1), (2, 3, 4)], grid=3, high=0.9, low=0.54),
        AnyOf([(5,)], grid=3),
        AtLeast(2, (0, 4, 8), 3),
        AnyOf([tuple(range(6))], grid=3),
    ]
    found = [search_oracle(o, beam_width=1000, max_size=4, deletion_orders=0) for o in oracles]
    return EvidenceSet(found, "model", "family")


def test_rows(evidence):
    rows = evidence.to_arrow().to_pylist()
    assert [r["mses"] for r in rows] == [2, 1, 3, 0]
    assert [r["sizes"] for r in rows] == [[2, 3], [1], [2, 2, 2], []]
    assert [r["mean_size"] for r in rows] == [pytest.approx(2.5), 1, 2, None]
    assert [r["smallest"] for r in rows] == [2, 1, 2, None]
    assert [r["diverse_0"] for r in rows] == [2, 1, 1, 0]
    assert [r["diverse_1"] for r in rows] == [2, 1, 3, 0]
    assert [r["stopped"] for r in rows] == ["max_size", "max_size", "max_size", "max_size"]
    # Below (0, 1) lie two single cells, below (2, 3, 4) six sets, all at ratio 0.6.
    assert [rows[0][f"distinct_{t}"] for t in (90, 80, 70, 60, 50)] == [0, 0, 0, 8, 8]
    assert rows[0]["tree_60"] == 2 + 3 + 6
    assert all(r["model"] == "model" and r["family"] == "family" for r in rows)


def test_summary(evidence):
    summary = evidence.summary()
    assert summary.images == 4
    mses = summary.statistics["mses"]
    values = np.array([2, 1, 3, 0])
    assert (mses.mean, mses.median, mses.images) == (pytest.approx(1.5), pytest.approx(1.5), 4)
    assert mses.standard_error == pytest.approx(values.std(ddof=1) / 2)
    assert summary.statistics["mean_size"].images == 3
    assert summary.sizes == {1: 1, 2: 4, 3: 1}
    assert summary.explained_with == pytest.approx([0, 0.25, 0.75, 0.75])
    assert summary.stopped == {"max_size": 4}
    assert summary.compositionality[0] == (pytest.approx(1.0), 3)
    assert summary.compositionality[1][0] == pytest.approx(np.mean([0.6, 0.02 / 0.98]), abs=1e-4)


def test_an_explanation_larger_than_the_beam_looks_at_is_found_by_deletion():
    found = search_oracle(AnyOf([tuple(range(6))], grid=3), max_size=4)
    row = EvidenceSet([found], "model", "family").to_arrow().to_pylist()[0]
    assert (row["mse_cells"], row["mse_found"], row["by_deletion"]) == ([[0, 1, 2, 3, 4, 5]], ["deletion"], 1)
    assert (row["stopped"], row["within_4000"]) == ("max_size", None)  # ended before: nobody knows


def test_no_images():
    summary = summarize(evidence_table([]))
    assert summary.images == 0
    assert summary.explained_with == [0]


def test_images_are_separated_by_what_ended_their_search():
    """A mean over searches that ended and searches that were stopped hangs on where they were stopped."""
    sets = {(0,): 0.9, (1, 2): 0.95, (3, 4, 5): 1.0}
    several = [
        make_evidence(sets, list(sets), 3, stopped="max_mses"),
        make_evidence(sets, [(0,)], 3, stopped="beam empty"),
        make_evidence(sets, [(1, 2)], 3, stopped="max_mses"),
        make_evidence({}, [], 3, stopped="no confidence", confidence=1e-7, baseline_confidence=0.05),
    ]
    summary = EvidenceSet(several, "model", "family").summary()
    assert summary.stopped == {"beam empty": 1, "max_mses": 2, "no confidence": 1}
    assert list(summary.by_reason) == list(summary.stopped)
    stopped = summary.by_reason["max_mses"]
    assert (stopped.images, stopped.statistics["mses"].mean) == (2, pytest.approx(2))
    assert stopped.sizes == {1: 1, 2: 2, 3: 1}
    assert summary.by_reason["beam empty"].statistics["mses"].mean == pytest.approx(1)
    assert summary.by_reason["no confidence"].statistics["baseline_ratio"].images == 0
    assert summary.statistics["baseline_ratio"].mean == pytest.approx(0.01 / 0.8)  # of a ratio to nothing no mean


def test_measures_that_models_can_be_compared_by():
    made = make_evidence({(0,): 0.9, (1, 2): 0.95}, [(0,), (1, 2)], 3)
    mses = (
        MSE((0,), 0.9, True, asked=400, stays={"jpeg": True, "shift": False}),
        MSE((1, 2), 0.95, asked=1500, found="deletion", stays={"jpeg": True, "shift": True}),
    )
    bare = make_evidence({(4,): 0.9}, [(4,)], 3)
    summary = EvidenceSet([replace(made, mses=mses), bare], "model", "family").summary()
    means = {name: statistic.mean for name, statistic in summary.statistics.items()}
    assert means["coverage"] == pytest.approx((3 / 9 + 1 / 9) / 2)
    assert means["certified_share"] == pytest.approx((1 / 2 + 0) / 2)
    assert [means[f"within_{n}"] for n in (500, 1000, 2000)] == pytest.approx([1, 1, 1.5])
    assert means["baseline_ratio"] == pytest.approx(0.01 / 0.8)
    assert (means["stability"], summary.statistics["stability"].images) == (pytest.approx(3 / 4), 1)
    assert summary.by_deletion == 1
