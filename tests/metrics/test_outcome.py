"""Means, medians and errors of values and curves."""

import math

import pytest
import torch

from suffice.metrics import Curves, Outcome


def test_statistics_leave_out_what_was_not_judged():
    found = Outcome(torch.tensor([1.0, torch.nan, 2.0, 4.0]))
    assert found.mean == pytest.approx(7 / 3)
    assert found.standard_error == pytest.approx(math.sqrt(7 / 3) / math.sqrt(3))


@pytest.mark.parametrize("count", [1, 4, 5])
def test_the_median_curve(count):
    y = torch.rand(count + 1, 7)
    y[0] = torch.nan
    curves = Curves(torch.linspace(0, 1, 7), y, y[:, 0], y[:, 1], torch.ones(7, dtype=torch.float64))
    torch.testing.assert_close(curves.median, y[1:].quantile(0.5, dim=0))
    torch.testing.assert_close(curves.mean, y[1:].mean(dim=0))
