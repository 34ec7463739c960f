"""The largest family of sets that overlap little: exact, first by index, also on sets like real ones."""

import inspect
import math
import random
import sys
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from suffice.errors import OptionError
from suffice.evidence.diversity import largest_diverse_family


def goes_together(sets, indices, overlap):
    return all(len(set(sets[i]) & set(sets[j])) <= overlap for i, j in combinations(indices, 2))


def by_brute_force(sets, overlap):
    """Every family, largest first and then by index; the first that fits."""
    for size in range(len(sets), 0, -1):
        for indices in combinations(range(len(sets)), size):
            if goes_together(sets, indices, overlap):
                return list(indices)
    return []


def around_an_object(seed, count):
    """Sets of 4 to 12 cells of a 7×7 grid, most of them near one spot, as the explanations of an image are."""
    rng = random.Random(seed)
    row, column = rng.uniform(2, 4), rng.uniform(2, 4)
    weight = [math.exp(-((c // 7 - row) ** 2 + (c % 7 - column) ** 2) / 8) + 0.05 for c in range(49)]
    return [
        sorted(range(49), key=lambda c: -(rng.random() ** (1 / weight[c])))[: rng.randint(4, 12)] for _ in range(count)
    ]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.frozensets(st.integers(0, 9), max_size=6), max_size=10), st.integers(0, 3))
@example([frozenset()] * 3, 0)
@example([frozenset({1}), frozenset({1})], 0)
def test_it_is_the_first_of_the_largest_families(sets, overlap):
    assert largest_diverse_family(sets, overlap) == by_brute_force(sets, overlap)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(11, 15), st.integers(0, 2))
def test_it_is_the_first_of_the_largest_families_of_more_sets(seed, count, overlap):
    rng = random.Random(seed)
    sets = [rng.sample(range(16), rng.randint(3, 6)) for _ in range(count)]
    assert largest_diverse_family(sets, overlap) == by_brute_force(sets, overlap)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_any_pattern_of_overlaps_will_do(share):
    # Each pair that is to overlap gets an element of its own; many families are equally large then.
    for seed in range(60):
        rng = random.Random(seed)
        sets = [set() for _ in range(10)]
        for element, (i, j) in enumerate(combinations(range(10), 2)):
            if rng.random() < share:
                sets[i].add(element)
                sets[j].add(element)
        assert largest_diverse_family(sets, 0) == by_brute_force(sets, 0)


def test_a_recoloring_bound_keeps_the_largest_family():
    # Larger than brute force can list: a planted family of 12 disjoint sets among 60 that cross many of them.
    for seed in range(5):
        rng = random.Random(seed)
        planted = [range(4 * i, 4 * i + 4) for i in range(12)]
        others = [rng.sample(range(48), 10) for _ in range(60)]
        mixed = [*planted, *others]
        rng.shuffle(mixed)
        found = largest_diverse_family(mixed, 0)
        assert [mixed[i] for i in found] == [s for s in mixed if isinstance(s, range)]


def test_elements_may_repeat_and_be_any_numbers():
    assert largest_diverse_family([[5, 5, 5], [5, -7], [10**12, -7]], 0) == [0, 2]


@pytest.mark.parametrize("overlap", [0, 1, 2])
@pytest.mark.parametrize("count", [60, 200])
def test_sets_like_real_ones(overlap, count):
    """Exact search would not end here without good bounds; networkx says how large the family is."""
    sets = around_an_object(0, count)
    found = largest_diverse_family(sets, overlap)
    assert goes_together(sets, found, overlap)
    if count * overlap < 400:  # beyond it takes networkx seconds
        graph = nx.Graph()
        graph.add_nodes_from(range(count))
        pairs = combinations(range(count), 2)
        graph.add_edges_from((i, j) for i, j in pairs if len({*sets[i]} & {*sets[j]}) <= overlap)
        assert len(found) == len(nx.max_weight_clique(graph, weight=None)[0])


def test_a_family_may_be_larger_than_pythons_recursion_limit():
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        assert largest_diverse_family([(i,) for i in range(300)], 0) == list(range(300))
    finally:
        sys.setrecursionlimit(usual)


def test_a_negative_overlap_is_refused():
    with pytest.raises(OptionError, match="overlap=-1"):
        largest_diverse_family([(0,)], -1)
