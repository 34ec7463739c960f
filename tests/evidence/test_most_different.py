"""A few that stand for many."""

from suffice.evidence import MSE
from suffice.evidence.most_different import most_different


def test_the_smallest_then_those_that_share_least():
    mses = [MSE((0, 1, 2, 3), 0.99), MSE((0, 1, 2), 0.9), MSE((0, 1, 4), 0.95), MSE((6, 7, 8, 2), 0.9)]
    chosen = most_different(mses, 3)
    assert [m.cells for m in chosen] == [(0, 1, 4), (6, 7, 8, 2), (0, 1, 2, 3)]


def test_as_many_as_there_are():
    mses = [MSE((), 1.0), MSE((3,), 0.9)]
    assert most_different(mses, 5) == mses
    assert most_different([], 3) == []
