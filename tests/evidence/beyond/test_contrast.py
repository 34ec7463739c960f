"""Contrastive sets against every set of cells that there is."""

import dataclasses

import pytest

from suffice.evidence.beyond.contrast import find_contrastive
from suffice.testing import AnyOf, Unless, random_formula
from tests.evidence.blocks import Truth, block_of, restricted


@pytest.mark.parametrize("seed", range(8))
def test_minimal_where_showing_more_never_hurts(seed):
    oracle = random_formula(seed, grid=3, max_cells=6, monotone=True)
    block = block_of(oracle)
    found = [m.cells for m in find_contrastive(block, block.criterion())[0]]
    truth = Truth(oracle)
    assert found
    assert set(found) <= set(truth.minimal(truth.contrastive))


@pytest.mark.parametrize("seed", range(20, 32))
def test_both_sides_hold_and_no_cell_can_go_whatever_the_model(seed):
    oracle = random_formula(seed, grid=3, max_cells=7)
    block = block_of(oracle)
    found = find_contrastive(block, block.criterion())[0]
    truth = Truth(oracle)
    assert found
    for mse in found:
        assert truth.contrastive(mse.cells)
        assert not any(truth.contrastive(set(mse.cells) - {cell}) for cell in mse.cells)
        assert mse.margin == pytest.approx(mse.ratio - 0.9)
        assert mse.found == "deletion"
        assert not any(set(other.cells) < set(mse.cells) for other in found)


def test_images_side_by_side_are_as_if_alone():
    oracle = AnyOf([(1, 2), (2, 3), (5,), (0, 7, 8)], grid=3)
    absent = [(), (5,), (2,), (1, 5, 8)]
    together = block_of(oracle, absent)
    found = find_contrastive(together, together.criterion())
    for mine, cells in zip(found, absent, strict=True):
        alone = block_of(oracle, [cells])
        assert [m.cells for m in mine] == [m.cells for m in find_contrastive(alone, alone.criterion())[0]]
        truth = Truth(restricted(oracle, cells))
        assert all(m.cells in truth.minimal(truth.contrastive) for m in mine)


def test_the_strict_criterion_and_the_top_class_are_heeded():
    oracle = AnyOf([(1, 2)], grid=3, high=0.98, low=0.97)  # nothing lowers the ratio by much, or the top class at all
    for keeps in ("ratio", "top-1", "both"):
        block = block_of(oracle, keeps=keeps)
        assert find_contrastive(block, block.criterion()) == [()]
    block = block_of(oracle, threshold=1.0, keeps="both")
    assert [m.cells for m in find_contrastive(block, block.criterion())[0]] == [(1, 2)]


def test_no_mses_are_needed_to_begin_and_meaningless_images_have_none():
    block = block_of(Unless([(0,)], [1], 3, anyway=[(2, 3)]))
    bare = dataclasses.replace(block, evidence=[dataclasses.replace(e, mses=()) for e in block.evidence])
    assert [m.cells for m in find_contrastive(bare, bare.criterion())[0]]
    mute = dataclasses.replace(
        block, evidence=[dataclasses.replace(e, stopped="no confidence") for e in block.evidence]
    )
    assert find_contrastive(mute, mute.criterion()) == [()]
