"""Ratios that lie on a threshold reach it, whatever the threshold is in float32."""

import pytest
import torch

from suffice.evidence.graph.words import about_mse
from suffice.evidence.thresholds import RESOLUTION, least, margin, rounded
from suffice.testing import Formula
from tests.evidence.made import make_evidence
from tests.evidence.twins import search_oracle

THRESHOLDS = [*(n / 1000 for n in range(1, 1001)), 1 / 3, 2 / 3, 0.123456789]


def on(threshold, steps=0.0):
    return rounded(torch.tensor([threshold + steps * RESOLUTION], dtype=torch.float64).float())


def test_what_lies_on_a_threshold_reaches_it_and_does_not_exceed_it():
    for threshold in THRESHOLDS:
        below, same, above = (on(threshold, steps) for steps in (-1.6, 0, 1.6))
        assert [bool(r >= least(threshold)) for r in (below, same, above)] == [False, True, True], threshold
        assert [bool(r >= least(threshold, strict=True)) for r in (below, same, above)] == [False, False, True]
        assert str(margin(same, threshold).item()) == "0.0"


@pytest.mark.parametrize("threshold", [0.72, 2 / 3])
def test_a_search_at_its_threshold(threshold):
    oracle = Formula(lambda visible: visible.any(dim=1), 2, cells_used=(0, 1))
    oracle.strength = lambda visible: 0.9 * torch.tensor([0.1, threshold, 1.0])[visible[:, :2].sum(dim=1)].double()
    plain, strict = (search_oracle(oracle, threshold=threshold, expand_at=threshold, strict=s) for s in (False, True))
    assert [m.cells for m in plain.mses] == [(0,), (1,)]
    assert [m.cells for m in strict.mses] == [(0, 1)]
    assert about_mse(plain.mses[0], 0).startswith("MSE 1: no proper subset suffices, 0.000 above the threshold")


def test_counts_at_a_threshold():
    made = make_evidence({(0, 1, 2): 0.9, (0, 1): float(on(0.8)), (0,): float(on(0.5))}, [(0, 1, 2)], 3)
    assert made.subexplanations() == {0.9: 0, 0.8: 1, 0.7: 1, 0.6: 1, 0.5: 2}
