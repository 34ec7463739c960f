"""Hitting sets, against every set that there is."""

import itertools

import numpy as np
import pytest

from suffice.errors import OptionError
from suffice.evidence.beyond.hitting_sets import minimal_hitting_sets, smallest_hitting_sets


def by_brute_force(sets, elements):
    """Minimal hitting sets, smallest first, by trying all."""
    found = []
    for size in range(len(elements) + 1):
        for some in itertools.combinations(elements, size):
            hits = all(set(some) & set(s) for s in sets)
            if hits and not any(set(other) <= set(some) for other in found):
                found.append(some)
    return found


def random_family(seed, elements=8):
    draw = np.random.default_rng(seed)
    return [
        tuple(draw.choice(elements, int(draw.integers(1, 5)), replace=False).tolist())
        for _ in range(int(draw.integers(1, 9)))
    ]


@pytest.mark.parametrize("seed", range(40))
def test_all_of_them_and_nothing_else(seed):
    sets = random_family(seed)
    truth = by_brute_force(sets, range(8))
    assert minimal_hitting_sets(sets) == truth
    assert smallest_hitting_sets(sets) == [s for s in truth if len(s) == len(truth[0])]
    for size in range(5):
        assert minimal_hitting_sets(sets, size=size) == [s for s in truth if len(s) <= size]


def test_hitting_twice_gives_back_the_minimal_sets():
    sets = random_family(3)
    antichain = [s for s in sets if not any(set(other) < set(s) for other in sets)]
    again = minimal_hitting_sets(minimal_hitting_sets(sets))
    assert again == sorted({tuple(sorted(s)) for s in antichain}, key=lambda s: (len(s), s))


def test_elements_may_be_any_whole_numbers_and_sets_may_repeat():
    assert minimal_hitting_sets([(700, 3), (3, 700), (3, 99)]) == [(3,), (99, 700)]


def test_nothing_hits_an_empty_set_and_anything_hits_none():
    assert minimal_hitting_sets([]) == [()]
    assert smallest_hitting_sets([]) == [()]
    assert minimal_hitting_sets([(1,), ()]) == []
    assert smallest_hitting_sets([(1,), ()]) == []


def test_a_limit_ends_the_search_among_millions():
    sets = [tuple(range(5 * i, 5 * i + 5)) for i in range(10)]  # 5**10 minimal hitting sets
    found = smallest_hitting_sets(sets, limit=7)
    assert len(set(found)) == 7
    assert all(len(s) == 10 and all(set(s) & set(one) for one in sets) for s in found)


@pytest.mark.parametrize("wrong", [{"size": -1}, {"limit": 0}])
def test_limits_that_cannot_be(wrong):
    with pytest.raises(OptionError, match="size can be 0 or more"):
        minimal_hitting_sets([(1,)], **wrong)
