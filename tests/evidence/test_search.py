"""The search against brute force and against literal twins, on oracles whose decisions are known."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.bench.one_at_a_time import search_one_at_a_time
from suffice.evidence import Settings, find_evidence
from suffice.testing import AnyOf, AtLeast, ExactlyOdd, Formula, Unless, WeightedSum, minimal_sufficient_sets
from suffice.vision import Classifier
from tests.evidence.twins import SEEDS, formula, search_bank, search_oracle, strength_of

WIDE = 1 << 20


def found_sets(evidence):
    return sorted(m.cells for m in evidence.mses)


@settings(max_examples=4, deadline=None)
@given(SEEDS)
def test_monotone_formulas_have_their_prime_implicants(seeds):
    oracles = [formula(seed, monotone=True) for seed in seeds]
    truth = [minimal_sufficient_sets(oracle) for oracle in oracles]
    assert [found_sets(e) for e in search_bank(oracles, beam_width=WIDE)] == truth
    assert [found_sets(e) for e in search_bank(oracles, beam_width=WIDE, minimal="subset")] == truth


@settings(max_examples=4, deadline=None)
@given(SEEDS)
def test_any_formula_subset_minimal(seeds):
    oracles = [formula(seed) for seed in seeds]
    found = search_bank(oracles, beam_width=WIDE, minimal="subset")
    assert [found_sets(e) for e in found] == [minimal_sufficient_sets(o, minimal="subset") for o in oracles]
    assert all(m.certified for e in found for m in e.mses)


@settings(max_examples=4, deadline=None)
@given(SEEDS, st.sampled_from([1, 2, 5, WIDE]), st.sampled_from(["all", "beam"]), st.sampled_from([None, 0, 2]))
def test_any_formula_equals_the_literal_twin(seeds, width, passing, max_mses):
    oracles = [formula(seed) for seed in seeds]
    found = search_bank(oracles, beam_width=width, passing=passing, max_mses=max_mses)
    for oracle, evidence in zip(oracles, found, strict=True):
        literally = Settings(grid=3, beam_width=width, passing=passing, max_mses=max_mses)
        twin = search_one_at_a_time(strength_of(oracle), literally)
        assert [frozenset(m.cells) for m in evidence.mses] == twin
        single = minimal_sufficient_sets(oracle, minimal="single")
        assert set(found_sets(evidence)) <= set(single)
        if width == WIDE and passing == "all" and max_mses is None:
            assert set(minimal_sufficient_sets(oracle, minimal="subset")) <= set(found_sets(evidence))


def test_single_and_subset_differ_where_the_formula_is_not_monotone():
    # {0, 1, 2} suffices and no single cell can go, though {0} alone suffices too.
    sets = [{0}, {0, 1, 2}, {0, 1, 2, 3}]
    oracle = Formula(lambda v: torch.stack([(v[:, :4] == torch.tensor([c in s for c in range(4)])).all(1) for s in sets]).any(0) | v.all(1), grid=2)  # fmt: skip  # noqa: E501
    both = minimal_sufficient_sets(oracle, minimal="single")
    assert (0,) in both
    assert (0, 1, 2) in both
    assert found_sets(search_oracle(oracle, beam_width=WIDE, minimal="subset")) == [(0,)]


@pytest.mark.parametrize(
    ("oracle", "expected"),
    [
        (AtLeast(2, (0, 4, 8), 3), [(0, 4), (0, 8), (4, 8)]),
        (ExactlyOdd((1, 5, 7), 3), [(1,), (5,), (7,)]),
        (AnyOf([(0, 1, 2, 3), (8,)], grid=3), [(0, 1, 2, 3), (8,)]),
        (WeightedSum({0: 3.0, 1: 2.0, 2: 2.0, 3: 1.0}, 4.0, 3), [(0, 1), (0, 2), (0, 3), (1, 2)]),
        (Unless([(0, 1)], [2], 3, anyway=[(4, 5)]), [(0, 1), (4, 5)]),
    ],
)
def test_known_formulas(oracle, expected):
    assert found_sets(search_oracle(oracle, beam_width=WIDE)) == expected


def test_order_of_discovery_is_by_size_then_ratio():
    oracle = WeightedSum({0: 9.0, 1: 6.0, 2: 5.0, 3: 5.0}, 8.0, 3, link="smooth", sharpness=4.0)
    evidence = search_oracle(oracle, beam_width=WIDE)
    assert [m.cells for m in evidence.mses][:2] == [(0,), (1, 2)]
    assert [len(m) for m in evidence.mses] == sorted(len(m) for m in evidence.mses)
    assert evidence.mses[0].ratio == pytest.approx(float(oracle.strength(bits((0,)))) / float(oracle.strength(bits(range(9)))), abs=1e-5)  # fmt: skip  # noqa: E501


def bits(cells):
    visible = torch.zeros(1, 9, dtype=torch.bool)
    visible[0, list(cells)] = True
    return visible


def constant(value):
    class Constant(torch.nn.Module):
        def forward(self, x):
            return torch.full((len(x), 3), value, device=x.device)

    return Classifier(Constant(), size=14, mean=(0,) * 3, std=(1,) * 3)


def test_a_constant_model_needs_nothing():
    evidence = find_evidence(constant(1.0), torch.rand(2, 3, 14, 14))[0]
    assert evidence.stopped == "nothing needed"
    assert [m.cells for m in evidence.mses] == [()]
    assert evidence.mses[0].ratio == pytest.approx(1)
    assert evidence.formula() == "⊤"
    assert evidence.subexplanations() == {0.9: 0, 0.8: 0, 0.7: 0, 0.6: 0, 0.5: 0}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_returns_nan_ends_at_once(value):
    evidence = find_evidence(constant(value), torch.rand(2, 3, 14, 14))
    assert [e.stopped for e in evidence] == ["no confidence"] * 2
    assert evidence[0].mses == ()
    assert evidence[0].formula() == "⊥"


def test_nan_on_some_masks_counts_as_not_enough():
    class Moody(torch.nn.Module):
        def forward(self, x):
            bright = x.mean(dim=(1, 2, 3))
            odd = torch.where(bright < 0.3, torch.nan, bright)
            return torch.stack([odd * 20, torch.zeros_like(odd)], dim=1)

    net = Classifier(Moody(), size=14, mean=(0,) * 3, std=(1,) * 3)
    evidence = find_evidence(net, torch.ones(1, 3, 14, 14), baseline="black", grid=2)[0]
    assert found_sets(evidence) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_zero_confidence_cannot_be_divided_by():
    class Sure(torch.nn.Module):
        def forward(self, x):
            return torch.tensor([[0.0, 1e5]]).expand(len(x), 2)

    net = Classifier(Sure(), size=14, mean=(0,) * 3, std=(1,) * 3)
    assert find_evidence(net, torch.rand(1, 3, 14, 14), targets=0)[0].stopped == "no confidence"


def test_a_grid_of_one_cell():
    oracle = AnyOf([(0,)], grid=1)
    evidence = search_oracle(oracle)
    assert [m.cells for m in evidence.mses] == [(0,)]
    assert evidence.stopped == "beam empty"


def test_a_grid_of_more_than_64_cells():
    oracle = AnyOf([(70, 3), (80,)], grid=9)
    evidence = find_evidence(
        oracle.classifier(18), oracle.image(18), targets=1, grid=9, baseline="black", beam_width=100, max_size=2
    )[0]
    assert found_sets(evidence) == [(3, 70), (80,)]


def test_what_stopped_the_search_is_recorded():
    oracle = AnyOf([(0, 1), (2, 3), (4, 5), (6, 7)], grid=3)
    assert search_oracle(oracle, beam_width=100, max_mses=1).stopped == "max_mses"
    assert search_oracle(oracle, beam_width=100, max_size=1).stopped == "max_size"
    assert search_oracle(oracle, beam_width=100, max_size=1).mses == ()
    assert search_oracle(oracle, beam_width=100).stopped == "beam empty"
    limited = search_oracle(oracle, beam_width=5, max_questions=30)
    assert limited.stopped == "max_questions"
    assert limited.questions <= 30


def test_strictness():
    oracle = WeightedSum({0: 9.0, 1: 1.0}, 0.0, 2, link="hard")
    assert search_oracle(oracle, threshold=1.0).mses  # ratio is exactly 1
    assert not search_oracle(oracle, threshold=1.0, strict=True).mses


def test_the_budget_of_certifying_is_flagged():
    oracle = AnyOf([tuple(range(8))], grid=3)
    assert all(m.certified for m in search_oracle(oracle, minimal="subset").mses)
    short = search_oracle(oracle, minimal="subset", subset_budget=50)
    assert [m.cells for m in short.mses] == [tuple(range(8))]
    assert not short.mses[0].certified
