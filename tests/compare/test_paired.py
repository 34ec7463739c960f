"""Paired comparison of counts."""

import numpy as np
import pytest
from scipy import stats

from suffice.compare import paired_ratio
from suffice.errors import OptionError


def test_a_planted_ratio_is_found():
    rng = np.random.default_rng(0)
    second = np.exp(rng.normal(8, 1.5, 400))
    first = second * np.exp(rng.normal(np.log(0.5), 0.3, 400))
    found = paired_ratio(first, second)
    assert found.low < 0.5 < found.high
    assert abs(found.ratio - 0.5) < 0.05
    assert found.clear
    swapped = paired_ratio(second, first)
    assert swapped.ratio == pytest.approx(1 / found.ratio)
    assert swapped.p == pytest.approx(found.p)


def test_nothing_is_found_where_there_is_nothing():
    rng = np.random.default_rng(1)
    found = [paired_ratio(*np.exp(rng.normal(3, 1, (2, 40)))) for _ in range(1000)]
    assert stats.binomtest(sum(one.clear for one in found), 1000, 0.05).pvalue > 0.001
    assert stats.binomtest(sum(one.low < 1 < one.high for one in found), 1000, 0.95).pvalue > 0.001


@pytest.mark.parametrize(
    ("first", "second"), [([1], [2]), ([1, 2], [1, 2, 3]), ([1, -2], [1, 2]), ([1, np.nan], [1, 2])]
)
def test_mistakes(first, second):
    with pytest.raises(OptionError, match="Expected"):
        paired_ratio(first, second)
