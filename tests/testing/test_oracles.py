from __future__ import annotations

import copy
import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from suffice.errors import OptionError
from suffice.testing import (
    AnyOf,
    AtLeast,
    ExactlyOdd,
    Formula,
    Oracle,
    Unless,
    WeightedSum,
    random_formula,
)

GRID = 3
CELLS = GRID * GRID
ALL_SETS = [set(cells) for size in range(CELLS + 1) for cells in itertools.combinations(range(CELLS), size)]


def as_visible(sets: list[set[int]], cells: int = CELLS) -> Tensor:
    return torch.tensor([[cell in shown for cell in range(cells)] for shown in sets])


def paint(oracle: Oracle, shown: set[int], height: int, width: int) -> Tensor:
    """White where a cell is shown, black elsewhere, pixel by pixel."""
    image = torch.zeros(3, height, width)
    for i, j in itertools.product(range(height), range(width)):
        cell = (i * oracle.grid // height) * oracle.grid + j * oracle.grid // width
        image[:, i, j] = float(cell in shown)
    return image


ORACLES = {
    "any of": (
        AnyOf([(0, 1), (5,), (2, 4, 8)], GRID),
        lambda s: {0, 1} <= s or 5 in s or {2, 4, 8} <= s,
    ),
    "at least": (AtLeast(2, [0, 3, 7], GRID), lambda s: len(s & {0, 3, 7}) >= 2),
    "hard sum": (
        WeightedSum({0: 0.1, 1: 0.2, 6: -0.5, 8: 1.0}, 0.3, GRID),
        lambda s: round(sum({0: 0.1, 1: 0.2, 6: -0.5, 8: 1.0}.get(c, 0) for c in s), 6) >= 0.3,
    ),
    "odd": (ExactlyOdd([1, 2, 6], GRID), lambda s: len(s & {1, 2, 6}) in (1, 3)),
    "unless": (
        Unless([(0, 1), (2,)], [4, 5], GRID, anyway=[(7, 8)]),
        lambda s: (({0, 1} <= s or 2 in s) and not s & {4, 5}) or {7, 8} <= s,
    ),
    "formula": (
        Formula(lambda visible: visible[:, 0] == visible[:, 8], GRID, cells_used=(0, 8)),
        lambda s: (0 in s) == (8 in s),
    ),
}


@pytest.mark.parametrize("name", ORACLES)
def test_decision_is_the_formula_on_every_set(name: str) -> None:
    oracle, holds = ORACLES[name]
    visible = as_visible(ALL_SETS)
    expected = torch.tensor([holds(shown) for shown in ALL_SETS])
    assert torch.equal(oracle.decide(visible), expected)
    assert 0 < int(expected.sum()) < len(ALL_SETS)
    strength = oracle.strength(visible)
    assert strength.dtype == torch.float64
    assert strength.tolist() == [0.98 if holds(shown) else 0.02 for shown in ALL_SETS]


@pytest.mark.parametrize("name", ORACLES)
def test_unused_cells_never_matter_and_used_cells_do(name: str) -> None:
    oracle, holds = ORACLES[name]
    matters = {cell for cell in range(CELLS) for shown in ALL_SETS if holds(shown | {cell}) != holds(shown - {cell})}
    assert matters == set(oracle.cells_used)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(("height", "width"), [(6, 6), (7, 11), (3, 16)])
def test_images_are_read_cell_by_cell(name: str, height: int, width: int) -> None:
    oracle, _ = ORACLES[name]
    sets = ALL_SETS[::23]
    pixels = torch.stack([paint(oracle, shown, height, width) for shown in sets])
    torch.testing.assert_close(oracle.visibility(pixels), as_visible(sets).float())
    logits = oracle(pixels)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits.softmax(1)[:, 1], oracle.strength(as_visible(sets)).float())


def test_a_cell_counts_as_visible_above_one_half() -> None:
    oracle = AnyOf([(4,)], GRID)
    for brightness, expected in ((0.51, 0.98), (0.49, 0.02), (0.5, 0.02)):
        pixels = torch.full((1, 3, 6, 6), brightness)
        assert oracle(pixels).softmax(1)[0, 1].item() == pytest.approx(expected)


def test_confidences_can_be_chosen_and_reach_zero_and_one() -> None:
    oracle = AnyOf([(0,)], 2, high=1.0, low=0.0)
    confidence = oracle(torch.stack([torch.ones(3, 4, 4), torch.zeros(3, 4, 4)])).softmax(1)[:, 1]
    assert confidence[0].item() == pytest.approx(1.0)
    assert confidence[1] < 1e-11
    assert AnyOf([(0,)], 2, high=0.7, low=0.3).strength(torch.zeros(1, 4).bool()).item() == 0.3


class TestSmoothSum:
    oracle = WeightedSum({0: 1.0, 4: 2.0, 8: -0.5}, threshold=1.5, grid=GRID, link="smooth", sharpness=3.0)

    def test_strength_is_the_sigmoid_of_the_sum(self) -> None:
        for shown in ({0, 4}, {4, 8}, set(), {0, 8}):
            total = sum({0: 1.0, 4: 2.0, 8: -0.5}[cell] for cell in shown)
            expected = 1 / (1 + math.exp(-3.0 * (total - 1.5)))
            assert self.oracle.strength(as_visible([shown])).item() == pytest.approx(expected, rel=1e-12)
            confidence = self.oracle(paint(self.oracle, shown, 6, 9)[None]).softmax(1)[0, 1].item()
            assert confidence == pytest.approx(expected, rel=1e-5)

    def test_decision_is_strength_above_one_half(self) -> None:
        visible = as_visible(ALL_SETS)
        assert torch.equal(self.oracle.decide(visible), self.oracle.strength(visible) >= 0.5)

    def test_gradient_reaches_the_pixels_of_each_cell_in_proportion_to_its_weight(self) -> None:
        pixels = torch.full((1, 3, 6, 6), 0.4, requires_grad=True)
        (gradient,) = torch.autograd.grad(self.oracle(pixels)[0, 1], pixels)
        # Log-odds are linear: sharpness * weight, shared by 3 channels of 2×2 pixels.
        assert gradient[0, :, :2, :2].flatten().tolist() == pytest.approx([3.0 * 1.0 / 12] * 12)
        assert gradient[0, :, 2:4, 2:4].flatten().tolist() == pytest.approx([3.0 * 2.0 / 12] * 12)
        assert gradient[0, :, 4:, 4:].flatten().tolist() == pytest.approx([3.0 * -0.5 / 12] * 12)
        assert gradient[0, :, :2, 2:].abs().max() == 0


def test_plain_and_shaded_images_show_every_cell() -> None:
    oracle = AtLeast(CELLS, range(CELLS), GRID)
    assert torch.equal(oracle.image(12), torch.ones(3, 12, 12))
    assert oracle.image((5, 7)).shape == (3, 5, 7)
    one, same, other = oracle.image(12, shade=1), oracle.image(12, shade=1), oracle.image(12, shade=2)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert one.min() >= 0.6
    assert one.max() <= 1.0
    assert oracle(torch.stack([oracle.image(12), one[:, :12, :12], other])).argmax(1).tolist() == [1, 1, 1]


def test_reading_an_image_does_not_depend_on_autocast_or_on_the_batch() -> None:
    oracle = WeightedSum({cell: 0.3 + cell / 7 for cell in range(CELLS)}, 2.0, GRID, link="smooth")
    pixels = torch.rand(5, 3, 13, 13, generator=torch.Generator().manual_seed(0))
    expected = oracle(pixels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(oracle(pixels), expected, rtol=1e-6, atol=1e-6)
    alone = torch.cat([oracle(pixel[None]) for pixel in pixels])
    torch.testing.assert_close(alone, expected, rtol=1e-6, atol=1e-6)


def test_oracles_can_be_copied_and_cast() -> None:
    for oracle, _ in ORACLES.values():
        visible = as_visible(ALL_SETS[::7])
        assert torch.equal(copy.deepcopy(oracle).float().decide(visible), oracle.decide(visible))


def test_an_oracle_serves_as_an_ordinary_classifier() -> None:
    oracle = AnyOf([(0, 1), (8,)], GRID)
    net = oracle.classifier(12)
    assert net.size == (12, 12)
    assert net.device.type == "cpu"
    pixels = torch.stack([oracle.image(12), paint(oracle, {0, 1}, 12, 12), paint(oracle, {0}, 12, 12)])
    assert net(pixels)[:, 1].tolist() == pytest.approx([0.98, 0.98, 0.02])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AnyOf([(0, 9)], 3), "cell 9 is not in a 3×3 grid"),
        (lambda: AtLeast(1, [-1], 3), "cell -1"),
        (lambda: AtLeast(1, [], 0), "at least one cell a side"),
        (lambda: AnyOf([(0,)], 3, high=0.2, low=0.3), "low < high"),
        (lambda: WeightedSum({0: 1.0}, 1.0, 2, link="soft"), 'link="smooth"'),
        (lambda: WeightedSum({0: 1.0}, 1.0, 2, sharpness=0.0), "positive"),
        (lambda: AnyOf([(0,)], 4)(torch.ones(1, 3, 3, 8)), "3×8 pixels cannot hold 4×4 cells"),
        (lambda: random_formula(0, grid=2, max_cells=5), "has 4 cells"),
    ],
)
def test_mistakes_are_named(make, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()


def test_the_base_class_has_no_formula() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Oracle(2, [0])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), grid=st.integers(2, 5), monotone=st.booleans())
def test_random_formulas_hold_on_the_whole_image_only(seed: int, grid: int, monotone: bool) -> None:
    oracle = random_formula(seed, grid, max_cells=min(6, grid * grid), monotone=monotone)
    assert 1 <= len(oracle.cells_used) <= 6
    ends = torch.stack([torch.zeros(grid * grid), torch.ones(grid * grid)]).bool()
    assert oracle.decide(ends).tolist() == [False, True]
    empty, whole = oracle.strength(ends).tolist()
    assert empty / whole < 0.9
    again = random_formula(seed, grid, max_cells=min(6, grid * grid), monotone=monotone)
    some = torch.rand(64, grid * grid, generator=torch.Generator().manual_seed(0)) < 0.5
    assert torch.equal(again.strength(some), oracle.strength(some))
    if monotone:
        more = some | (torch.rand(some.shape, generator=torch.Generator().manual_seed(1)) < 0.3)
        assert (oracle.strength(more) >= oracle.strength(some)).all()


def test_random_formulas_come_in_all_kinds() -> None:
    kinds = {type(random_formula(seed)) for seed in range(60)}
    assert kinds == {AnyOf, AtLeast, WeightedSum, ExactlyOdd, Unless}
    assert {type(random_formula(seed, monotone=True)) for seed in range(60)} == {AnyOf, AtLeast, WeightedSum}
