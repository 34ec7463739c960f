"""Refinement: what is needed of an MSE on finer grids."""

import dataclasses

import pytest

from suffice.errors import OptionError
from suffice.evidence import Settings
from suffice.evidence.beyond.refinement import check_refinement, refine_mses
from suffice.testing import AnyOf, WeightedSum
from tests.evidence.blocks import block_of


def test_exactly_the_finer_cells_that_are_needed():
    # On 8×8 the model looks at one cell in each of three corners; on 2×2 these are whole quadrants.
    block = block_of(AnyOf([(9, 14, 49), (63,)], grid=8), size=16, grid=2)
    assert [m.cells for m in block.evidence[0].mses] == [(3,), (0, 1, 2)]
    refined = refine_mses(block, (4, 8))[0]
    assert [m.cells for m in refined[4]] == [(15,), (0, 3, 12)]
    assert [m.cells for m in refined[8]] == [(63,), (9, 14, 49)]
    for mse in refined[8]:
        assert mse.ratio == pytest.approx(1.0)
        assert mse.margin == pytest.approx(0.1)


def test_the_least_important_go_first():
    weights = {0: 1.0, 1: 4.0, 4: 3.0, 5: 2.0}  # all of them in cell 0 of a 2×2 grid
    block = block_of(WeightedSum(weights, 6.5, 4, link="smooth", sharpness=8.0), size=16, grid=2)
    assert [m.cells for m in refine_mses(block, (4,))[0][4]] == [(1, 4)]


def test_images_side_by_side_with_grids_of_many_words():
    oracle = AnyOf([(0, 40, 143), (100,)], grid=12)
    block = block_of(oracle, [(), (100,), (0,)], size=24, grid=3)
    refined = refine_mses(block, (6, 12))
    assert [{m.cells for m in mine[12]} for mine in refined] == [{(0, 40, 143), (100,)}, {(0, 40, 143)}, {(100,)}]


def test_nothing_is_left_of_nothing():
    block = block_of(AnyOf([(1, 2)], grid=4, high=0.98, low=0.97), size=16, grid=2)
    assert [m.cells for m in refine_mses(block, (4,))[0][4]] == [()]
    bare = dataclasses.replace(block, evidence=[dataclasses.replace(block.evidence[0], mses=())])
    assert refine_mses(bare, (4,)) == [{4: ()}]


@pytest.mark.parametrize("refine", [(10,), (7,), (14, 7), (14, 21), (14, 14)])
def test_cells_must_become_whole_cells(refine):
    with pytest.raises(OptionError, match="multiple of"):
        check_refinement(Settings(refine=refine))


def test_grids_must_fit_and_cells_be_hard():
    check_refinement(Settings(refine=(14, 28)), size=(28, 28))
    check_refinement(Settings())
    with pytest.raises(OptionError, match="28 a side does not fit 27×40 pixels"):
        check_refinement(Settings(refine=(14, 28)), size=(27, 40))
    with pytest.raises(OptionError, match="cells='hard'"):
        check_refinement(Settings(refine=(14,), cells="soft"))
