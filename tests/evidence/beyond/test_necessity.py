"""Necessary sets against every set of cells that there is."""

import dataclasses

import pytest

from suffice.evidence.beyond.hitting_sets import smallest_hitting_sets
from suffice.evidence.beyond.necessity import find_necessary
from suffice.testing import AnyOf, AtLeast, minimal_sufficient_sets, random_formula
from tests.evidence.blocks import Truth, block_of, restricted


def smallest_removals(truth):
    """The smallest sets without which the rest is not enough, by trying all."""
    ends = [cells for cells in truth.sets if not truth.suffices(truth.without(cells))]
    return [cells for cells in ends if len(cells) == len(ends[0])]  # small ones come first


def found_in(block, **limits):
    return find_necessary(block, block.criterion(), **limits)


@pytest.mark.parametrize("seed", range(10))
def test_the_smallest_ones_exactly_where_showing_more_never_hurts(seed):
    oracle = random_formula(seed, grid=3, max_cells=7, monotone=True)
    truth = smallest_removals(Truth(oracle))
    block = block_of(oracle)
    assert list(found_in(block, limit=1000)[0]) == truth
    assert truth == smallest_hitting_sets(minimal_sufficient_sets(oracle))
    # Whatever the search had found: the same sets.
    for mses in (block.evidence[0].mses[:1], ()):
        few = dataclasses.replace(block, evidence=[dataclasses.replace(block.evidence[0], mses=mses)])
        assert list(found_in(few, limit=1000)[0]) == truth


@pytest.mark.parametrize("seed", range(20, 30))
def test_each_ends_sufficiency_and_hits_every_mse_whatever_the_model(seed):
    oracle = random_formula(seed, grid=3, max_cells=7)
    block, truth = block_of(oracle), Truth(oracle)
    found = found_in(block)[0]
    assert found
    for cells in found:
        assert not truth.suffices(truth.without(cells))
        assert all(set(cells) & set(m.cells) for m in block.evidence[0].mses)


def test_images_side_by_side():
    oracle = AnyOf([(1, 2), (2, 3), (5,), (0, 7, 8)], grid=3)
    absent = [(), (5,), (2,), (2, 5, 8)]  # nothing is left of the last one
    block = block_of(oracle, absent)
    meant = [tuple(smallest_removals(Truth(restricted(oracle, cells)))) for cells in absent[:3]]
    assert found_in(block)[:3] == meant


def test_what_is_not_proven_in_time_is_not_listed():
    block = block_of(AtLeast(2, range(9), grid=3))  # only all but one cell are necessary
    one = dataclasses.replace(block, evidence=[dataclasses.replace(block.evidence[0], mses=())])
    assert found_in(one, rounds=2) == [()]
    unproven = dataclasses.replace(one.evidence[0], necessary=())
    assert unproven.why_not_necessary == "No set was proven to be necessary within the rounds that are tried."
    assert dataclasses.replace(unproven, necessary=((1,),)).why_not_necessary is None
    assert one.evidence[0].why_not_necessary is None  # nobody asked
    assert len(found_in(one, limit=4, rounds=40)[0]) == 4
    assert all(len(cells) == 8 for cells in found_in(one, rounds=40)[0])


def test_sets_that_do_not_suffice_are_not_believed():
    block = block_of(AnyOf([(1, 2)], grid=3))
    wrong = dataclasses.replace(block.evidence[0].mses[0], cells=(7,))
    misled = dataclasses.replace(block, evidence=[dataclasses.replace(block.evidence[0], mses=(wrong,))])
    assert found_in(misled) == [((1,), (2,))]


def test_none_where_the_baseline_is_enough():
    block = block_of(AnyOf([(1, 2)], grid=3, high=0.98, low=0.97))
    assert found_in(block) == [()]
    told = dataclasses.replace(block.evidence[0], necessary=())
    assert told.why_not_necessary == "No set is necessary: the baseline alone is enough."
