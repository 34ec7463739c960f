"""Which MSEs tell most: small, strong, different from each other."""

import itertools
import random

import pytest

from suffice.errors import OptionError
from suffice.evidence import MSE
from suffice.evidence.telling import most_telling


def random_mses(seed):
    chance = random.Random(seed)
    sets = {tuple(sorted(chance.sample(range(16), chance.randint(2, 5)))) for _ in range(14)}
    return [MSE(cells, round(0.9 + 0.1 * chance.random(), 2)) for cells in sorted(sets, key=lambda _: chance.random())]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("overlap", [0, 1, 2])
def test_each_is_the_best_of_those_that_go_with_the_ones_before(seed, overlap):
    mses = random_mses(seed)
    taken = most_telling(mses, overlap)
    for a, b in itertools.combinations(taken, 2):
        assert len(set(a.cells) & set(b.cells)) <= overlap
    for place, mse in enumerate(taken):
        before = taken[:place]
        seen = {cell for other in before for cell in other.cells}
        rivals = [
            m for m in mses if m not in before and all(len(set(m.cells) & set(b.cells)) <= overlap for b in before)
        ]
        scores = {(len(m), len(seen & set(m.cells)), -m.ratio) for m in rivals}
        assert (len(mse), len(seen & set(mse.cells)), -mse.ratio) == min(scores)
    left = [m for m in mses if m not in taken]
    assert all(any(len(set(m.cells) & set(t.cells)) > overlap for t in taken) for m in left)


@pytest.mark.parametrize("seed", range(5))
def test_without_a_limit_all_come_the_smallest_first(seed):
    mses = random_mses(seed)
    taken = most_telling(mses)
    assert sorted(m.cells for m in taken) == sorted(m.cells for m in mses)
    assert [len(m) for m in taken] == sorted(map(len, mses))
    smallest = min(map(len, mses))
    assert taken[0].ratio == max(m.ratio for m in mses if len(m) == smallest)


def test_equal_ones_keep_their_order_and_nothing_gives_nothing():
    mses = [MSE((2, 3), 0.9), MSE((0, 1), 0.9), MSE((4, 5), 0.9)]
    assert most_telling(mses, 0) == mses
    assert most_telling([], 1) == []
    assert most_telling([MSE((), 0.95)], 1) == [MSE((), 0.95)]


def test_an_overlap_that_cannot_be():
    with pytest.raises(OptionError, match="overlap=-1"):
        most_telling([], -1)
