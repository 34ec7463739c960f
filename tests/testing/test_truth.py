from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import OptionError
from suffice.testing import (
    AnyOf,
    AtLeast,
    ExactlyOdd,
    Formula,
    Oracle,
    Unless,
    WeightedSum,
    minimal_sufficient_sets,
    random_formula,
    ratios,
    sufficient_sets,
)


def subsets(cells: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [chosen for size in range(len(cells) + 1) for chosen in itertools.combinations(cells, size)]


def ratio_of(oracle: Oracle, shown: tuple[int, ...]) -> float:
    """One set at a time, through an image, as a search would ask."""
    size = 2 * oracle.grid
    image = torch.zeros(3, size, size)
    for cell in shown:
        row, column = divmod(cell, oracle.grid)
        image[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = 1.0
    confidences = oracle(torch.stack([image, oracle.image(size)])).double().softmax(1)[:, 1]
    return float(confidences[0] / confidences[1])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), threshold=st.sampled_from([0.5, 0.9]))
def test_lists_agree_with_the_definitions_written_out(seed: int, threshold: float) -> None:
    oracle = random_formula(seed, grid=3, max_cells=6)
    enough = {s for s in subsets(oracle.cells_used) if ratio_of(oracle, s) >= threshold - 1e-6}
    assert sufficient_sets(oracle, threshold) == sorted(enough)
    by_subset = [s for s in enough if not any(set(other) < set(s) for other in enough)]
    assert minimal_sufficient_sets(oracle, threshold) == sorted(by_subset)
    by_single = [s for s in enough if not any(tuple(c for c in s if c != gone) in enough for gone in s)]
    assert minimal_sufficient_sets(oracle, threshold, minimal="single") == sorted(by_single)


def test_terms_of_an_or_of_ands_are_its_minimal_sets_once_absorbed() -> None:
    oracle = AnyOf([(7, 2), (2,), (40, 8, 9), (8, 9, 40, 41)], grid=7)
    assert minimal_sufficient_sets(oracle) == [(2,), (8, 9, 40)]


def test_at_least_k_has_all_choices_of_k() -> None:
    oracle = AtLeast(3, [0, 2, 4, 6, 8], grid=3)
    assert minimal_sufficient_sets(oracle) == list(itertools.combinations([0, 2, 4, 6, 8], 3))
    assert len(sufficient_sets(oracle)) == 10 + 5 + 1


def test_showing_more_can_undo_a_decision() -> None:
    oracle = Unless([(0,)], [1], grid=2, anyway=[(2, 3)])
    assert sufficient_sets(oracle) == [(0,), (0, 1, 2, 3), (0, 2), (0, 2, 3), (0, 3), (1, 2, 3), (2, 3)]
    assert minimal_sufficient_sets(oracle) == [(0,), (2, 3)]


def test_minimal_by_subset_and_by_single_cell_differ_across_a_dip() -> None:
    # One cell or all three are enough, two are not: nothing single can go from three, yet one alone suffices.
    odd = ExactlyOdd([1, 3, 5], grid=3)
    assert minimal_sufficient_sets(odd) == [(1,), (3,), (5,)]
    assert minimal_sufficient_sets(odd, minimal="single") == [(1,), (1, 3, 5), (3,), (5,)]


def test_ratios_follow_the_threshold_of_a_smooth_sum() -> None:
    oracle = WeightedSum({0: 1.0, 1: 2.0, 2: 4.0}, threshold=3.5, grid=2, link="smooth", sharpness=1.0)
    totals = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7]).double()
    expected = torch.sigmoid(totals - 3.5) / torch.sigmoid(torch.tensor(3.5).double())
    torch.testing.assert_close(ratios(oracle), expected)
    assert minimal_sufficient_sets(oracle, threshold=0.5) == [(2,)]
    assert minimal_sufficient_sets(oracle, threshold=0.8) == [(0, 2), (1, 2)]
    assert minimal_sufficient_sets(oracle, threshold=0.9) == [(1, 2)]


def test_nothing_at_all_may_be_enough() -> None:
    oracle = Formula(lambda visible: torch.ones(len(visible), dtype=torch.bool), grid=3, cells_used=(0, 1))
    assert minimal_sufficient_sets(oracle) == [()]
    assert len(sufficient_sets(oracle)) == 4


def test_a_set_may_beat_the_whole_image() -> None:
    oracle = Unless([(0,)], [1], grid=2)
    assert ratios(oracle).max().item() == pytest.approx(49.0)


def test_sixteen_cells_are_the_limit() -> None:
    assert len(minimal_sufficient_sets(AtLeast(1, range(16), grid=5))) == 16
    with pytest.raises(OptionError, match="uses 17 cells"):
        sufficient_sets(AtLeast(1, range(17), grid=5))


def test_mistakes_are_named() -> None:
    with pytest.raises(OptionError, match="name every cell"):
        ratios(Formula(lambda visible: visible[:, 0] & visible[:, 1], grid=2, cells_used=(0,)))
    with pytest.raises(OptionError, match="strength 0"):
        ratios(AnyOf([], grid=2, low=0.0))
    with pytest.raises(OptionError, match='minimal="single"'):
        minimal_sufficient_sets(AnyOf([(0,)], grid=2), minimal="cell")
