"""The search against brute force and against literal twins, on oracles whose decisions are known."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.bench.one_at_a_time import search_one_at_a_time
from suffice.errors import OptionError
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
    found = search_bank(oracles, beam_width=WIDE, minimal="subset", certify=None)
    assert [found_sets(e) for e in found] == [minimal_sufficient_sets(o, minimal="subset") for o in oracles]
    assert all(m.certified for e in found for m in e.mses)


@settings(max_examples=4, deadline=None)
@given(
    SEEDS,
    st.sampled_from([1, 2, 5, WIDE]),
    st.sampled_from(["all", "beam"]),
    st.sampled_from([None, 0, 2]),
    st.sampled_from(["single", "subset"]),
)
def test_any_formula_equals_the_literal_twin(seeds, width, passing, max_mses, minimal):
    oracles = [formula(seed) for seed in seeds]
    chosen = {"beam_width": width, "passing": passing, "max_mses": max_mses, "minimal": minimal}
    found = search_bank(oracles, **chosen, certify=0, deletion_orders=0)
    for oracle, evidence in zip(oracles, found, strict=True):
        twin = search_one_at_a_time(strength_of(oracle), Settings(grid=3, **chosen))
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


@pytest.mark.parametrize("chosen", [{}, {"strict": True}, {"keeps": "top-1"}, {"keeps": "both"}])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_returns_nan_ends_at_once(value, chosen):
    evidence = find_evidence(constant(value), torch.rand(2, 3, 14, 14), **chosen)
    assert [e.stopped for e in evidence] == ["not a number"] * 2
    assert "NaN" in evidence[0].why
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


@pytest.mark.parametrize("chosen", [{}, {"strict": True}, {"keeps": "top-1"}, {"keeps": "both"}])
def test_zero_confidence_cannot_be_divided_by(chosen):
    class Sure(torch.nn.Module):
        def forward(self, x):
            return torch.tensor([[0.0, 1e5]]).expand(len(x), 2)

    net = Classifier(Sure(), size=14, mean=(0,) * 3, std=(1,) * 3)
    evidence = find_evidence(net, torch.rand(1, 3, 14, 14), targets=0, **chosen)[0]
    assert evidence.stopped == "no confidence"
    assert math.isnan(evidence.baseline_ratio)


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
    assert search_oracle(oracle, beam_width=100, max_size=1, deletion_orders=0).mses == ()
    assert search_oracle(oracle, beam_width=100).stopped == "beam empty"
    limited = search_oracle(oracle, beam_width=5, max_questions=30)
    assert limited.stopped == "max_questions"
    assert limited.questions <= 30


def test_a_limit_of_questions_holds_from_the_first_level_on():
    oracle = AnyOf([(0, 1), (2, 3)], grid=3)
    tight, wide = (search_oracle(oracle, max_questions=number) for number in (9, 10))
    assert (tight.stopped, tight.mses, tight.questions) == (
        "max_questions",
        (),
        1,
    )  # the baseline alone was asked about
    assert wide.questions == 10
    assert wide.why == "0 found, stopped before a level that could take more than max_questions=10."
    assert search_oracle(AnyOf([()], grid=3), max_questions=1).stopped == "nothing needed"
    with pytest.raises(OptionError, match="max_questions=0"):
        search_oracle(oracle, max_questions=0)


@pytest.mark.parametrize("questions", [None, 20, 60])
def test_of_several_limits_at_once_one_ends_the_search(questions):
    """An image without explanations is searched from the top, unless it was the number of questions that ended it."""
    evidence = search_oracle(AnyOf([range(8)], grid=3), max_size=1, max_questions=questions)
    assert (evidence.stopped, found_sets(evidence)) == ("max_size", [tuple(range(8))])


def test_strictness():
    oracle = WeightedSum({0: 9.0, 1: 1.0}, 0.0, 2, link="hard")
    assert search_oracle(oracle, threshold=1.0).mses  # ratio is exactly 1
    assert not search_oracle(oracle, threshold=1.0, strict=True).mses


def test_what_is_certified_and_what_is_not():
    oracle = AnyOf([tuple(range(8)), (0, 8)], grid=3)
    small, large = sorted(search_oracle(oracle, beam_width=WIDE).mses, key=len)
    assert (small.certified, large.certified) == (True, False)
    assert (small.minimality, large.minimality) == ("no proper subset suffices", "no single cell can go")
    assert all(m.certified for m in search_oracle(oracle, beam_width=WIDE, certify=None).mses)
    short = search_oracle(oracle, beam_width=WIDE, certify=None, subset_budget=50)
    assert [m.certified for m in sorted(short.mses, key=len)] == [True, False]
    assert not any(m.certified for m in search_oracle(oracle, beam_width=WIDE, certify=0).mses)
    assert not any(m.certified for m in search_oracle(oracle, beam_width=WIDE, minimal="single").mses)


@settings(max_examples=4, deadline=None)
@given(SEEDS, st.sampled_from([1, 5]), st.sampled_from([3, 6, None]))
def test_explanations_form_an_antichain_and_certificates_are_true(seeds, width, certify):
    oracles = [formula(seed) for seed in seeds]
    for oracle, evidence in zip(oracles, search_bank(oracles, beam_width=width, certify=certify), strict=True):
        sets = [set(m.cells) for m in evidence.mses]
        assert not any(a < b for a in sets for b in sets)
        truth = minimal_sufficient_sets(oracle)
        single = minimal_sufficient_sets(oracle, minimal="single")
        assert all(m.cells in (truth if m.certified else single) for m in evidence.mses)
        small = [m for m in evidence.mses if certify is None or len(m) <= certify]
        assert all(m.certified for m in small)


@settings(max_examples=4, deadline=None)
@given(SEEDS, st.sampled_from([1, 2, 3, 4]), st.sampled_from(["paper", "sag"]))
def test_an_exhaustive_search_finds_every_small_explanation(seeds, size, search):
    oracles = [formula(seed) for seed in seeds]
    options = {"beam_width": 1, "max_mses": 0, "candidates": 1} if search == "paper" else {"beam_width": 2}
    found = search_bank(oracles, exhaustive=size, **options)
    for oracle, evidence in zip(oracles, found, strict=True):
        small = [cells for cells in minimal_sufficient_sets(oracle) if len(cells) <= size]
        assert [cells for cells in found_sets(evidence) if len(cells) <= size] == small


def test_too_many_sets_for_an_exhaustive_search_are_said():
    assert Settings(exhaustive=4).exhaustive == 4
    with pytest.raises(OptionError, match=r"exhaustive=5 means 2,138,\d+ questions an image on a 7×7 grid"):
        Settings(exhaustive=5)
    with pytest.raises(OptionError, match="more than max_size=2"):
        Settings(exhaustive=3, max_size=2)


@settings(max_examples=4, deadline=None)
@given(SEEDS)
def test_where_the_beam_ends_empty_deletion_finds_an_explanation(seeds):
    oracles = [formula(seed) for seed in seeds]
    for oracle, evidence in zip(oracles, search_bank(oracles, max_size=1, beam_width=1), strict=True):
        assert evidence.mses
        ways = {m.found for m in evidence.mses}
        assert ways == ({"beam"} if min(map(len, minimal_sufficient_sets(oracle))) <= 1 else {"deletion"})
        assert set(found_sets(evidence)) <= set(minimal_sufficient_sets(oracle, minimal="single"))
    some = next(e for e in search_bank(oracles, max_size=1) if e.mses[0].found == "deletion")
    assert "by deletion from the whole image" in some.why
    assert some.spent["deletion"] > 0


def test_deletion_leaps_over_what_is_not_needed():
    oracle = AnyOf([(3, 10, 17, 24, 31, 38, 45, 46, 47, 48)], grid=7)
    evidence = search_oracle(oracle, max_size=2, expanded_mses=0, certify=0)
    assert found_sets(evidence) == [(3, 10, 17, 24, 31, 38, 45, 46, 47, 48)]
    one_cell_at_a_time = 49 * 4
    assert evidence.spent["deletion"] < 2 * one_cell_at_a_time
    assert evidence.spent["deletion"] < 49 * 48 / 2  # plain greedy deletion, once


class ThreeClasses(torch.nn.Module):
    """On a 2×2 grid: class 1 by cell 0, and a little by cell 1; class 2 by cell 3."""

    def forward(self, x):
        cells = x.mean(dim=1).view(len(x), 2, 7, 2, 7).mean(dim=(2, 4)).flatten(1)
        return torch.stack([torch.zeros(len(x)), 2.6 * cells[:, 0] + 0.4 * cells[:, 1], 2.5 * cells[:, 3]], dim=1)


@pytest.mark.parametrize(
    ("target", "keeps", "sets"),
    [
        (1, "ratio", [(0,)]),
        (1, "top-1", [(0,), (1,)]),  # cell 1 alone wins, with 0.71 of the confidence
        (1, "both", [(0,)]),
        (2, "top-1", None),  # the whole image is of class 1
    ],
)
def test_what_a_set_must_keep(target, keeps, sets):
    net = Classifier(ThreeClasses(), size=14, mean=(0,) * 3, std=(1,) * 3)
    options = {"grid": 2, "baseline": "black", "max_mses": None, "keeps": keeps}
    evidence = find_evidence(net, torch.ones(1, 3, 14, 14), targets=target, **options)[0]
    assert found_sets(evidence) == (sets or [])
    assert evidence.stopped == ("whole fails" if sets is None else "beam empty")
    if sets is None:
        assert evidence.why == "No evidence: the whole image itself does not keep 2 as the top class."


def test_ratios_above_the_baseline():
    # The whole image has 0.731, three of its cells 0.622, the baseline 0.269: ratios of 0.851, or 0.765 above it.
    oracle = WeightedSum({0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}, 2.0, 2, link="smooth", sharpness=0.5)
    plain, above = (search_oracle(oracle, threshold=0.8, above_baseline=choice) for choice in (False, True))
    assert [m.cells for m in plain.mses] == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    assert [m.cells for m in above.mses] == [(0, 1, 2, 3)]
    assert plain.baseline_ratio == pytest.approx(0.2689 / 0.7311, abs=1e-3)
    assert plain.mses[0].ratio == pytest.approx(0.8514, abs=1e-3)
    assert plain.mses[0].margin == pytest.approx(0.0514, abs=1e-3)
    lower = search_oracle(oracle, threshold=0.75, above_baseline=True)
    assert lower.mses[0].ratio == pytest.approx(0.7650, abs=1e-3)
    # A class that the baseline says as well as the image needs nothing above it.
    assert find_evidence(oracle.classifier(4), oracle.image(4), targets=0, grid=2, baseline="black", above_baseline=True)[0].stopped == "nothing needed"  # fmt: skip  # noqa: E501


class Overcast(torch.nn.Module):
    """Class 1 wins where cell 0 is seen; black alone says it more than the image does, and class 2 still more."""

    def forward(self, x):
        seen = x[:, 0, :1, 0] > 0.25
        return torch.where(seen, torch.tensor([0.3, 0.4, 0.3]), torch.tensor([0.09, 0.45, 0.46])).log()


@pytest.mark.parametrize(("keeps", "sets"), [("ratio", [()]), ("top-1", [(0,)]), ("both", [(0,)])])
def test_a_baseline_that_says_more_than_the_image_has_to_keep_the_class_too(keeps, sets):
    net = Classifier(Overcast(), size=14, mean=(0,) * 3, std=(1,) * 3)
    options = {"grid": 2, "baseline": "black", "above_baseline": True, "keeps": keeps}
    assert found_sets(find_evidence(net, torch.ones(1, 3, 14, 14), targets=1, **options)[0]) == sets


@pytest.mark.parametrize("keeps", ["ratio", "top-1", "both"])
def test_a_class_with_next_to_no_confidence_has_no_evidence(keeps):
    oracle = AnyOf([(3,)], grid=2)
    options = {"targets": 0, "grid": 2, "baseline": "black"}  # class 0 has a confidence of 0.02
    assert find_evidence(oracle.classifier(4), oracle.image(4), **options)[0].stopped == "nothing needed"
    none = find_evidence(oracle.classifier(4), oracle.image(4), **options, keeps=keeps, min_confidence=0.1)[0]
    assert none.stopped == "no confidence"
    assert none.mses == ()
    assert math.isnan(none.baseline_ratio)
    assert none.why.startswith("No evidence: the model's confidence in no is 0.02, and ratios to less than")


def test_questions_are_counted_by_what_asked_them():
    oracle = AnyOf([(0, 1), (2, 3), (4, 5), (6, 7)], grid=3)
    evidence = search_oracle(oracle, beam_width=100)
    baseline_alone = 1
    assert sum(evidence.spent.values()) + baseline_alone == evidence.questions
    asked = [m.asked for m in evidence.mses]
    assert all(0 < number <= evidence.questions for number in asked)
    assert evidence.found_within(max(asked)) == 4
    assert evidence.found_within(min(asked) - 1) == 0
    assert evidence.found_within(10 * evidence.questions) == 4  # the search came to its end
    assert evidence.coverage == pytest.approx(8 / 9)


def test_a_budget_beyond_where_a_limit_ended_the_search_says_nothing():
    oracle = AnyOf([(0, 1), (2, 3), (4, 5), (6, 7)], grid=3)
    stopped = search_oracle(oracle, beam_width=100, max_mses=0, exhaustive=2)
    searched = stopped.questions - stopped.spent.get("below", 0) - stopped.spent.get("certifying", 0)
    assert stopped.stopped == "max_mses"
    assert (stopped.found_within(searched), stopped.found_within(searched + 1)) == (4, None)
    limited = search_oracle(oracle, beam_width=100, max_questions=40)
    assert limited.stopped == "max_questions"
    assert limited.found_within(40) == len(limited.mses)
    assert limited.found_within(41) is None
    mute = find_evidence(oracle.classifier(6), oracle.image(6), targets=0, grid=3, baseline="black", min_confidence=0.5)
    assert mute[0].found_within(1) is None


def test_how_many_small_explanations_there_are():
    oracle = AnyOf([(0, 1), (2, 3), (4, 5, 6)], grid=3)
    assert search_oracle(oracle, exhaustive=2).exhaustive_mses == 2
    assert search_oracle(oracle, exhaustive=3, max_mses=0).exhaustive_mses == 3
    assert search_oracle(oracle).exhaustive_mses is None
    assert search_oracle(oracle, exhaustive=3, max_questions=12).exhaustive_mses is None  # ended before


def test_deletion_counts_the_single_cells_that_a_seed_map_left_out():
    oracle = WeightedSum(dict.fromkeys((3, 5, 7, 9), 1.0), 3.5, 4, link="smooth")
    evidence = search_oracle(oracle, search="sag", candidates=2, max_size=2, expanded_mses=0)
    assert evidence.mses[0].found == "deletion"
    assert sum(evidence.spent.values()) + 1 == evidence.questions  # and the baseline alone


def graded_oracles():
    random = torch.Generator().manual_seed(0)
    weights = [dict(enumerate((3 * torch.rand(49, generator=random)).tolist())) for _ in range(6)]
    return [WeightedSum(some, 5.0, 7, link="smooth", sharpness=0.8) for some in weights]


def test_other_seeds_of_a_noisy_beam_find_other_explanations():
    oracle, options = graded_oracles()[0], {"beam_width": 2, "max_mses": 5, "expanded_mses": 0}
    found = [
        {m.cells for m in search_oracle(oracle, **options, beam_noise=noise, seed=seed).mses}
        for noise, seed in ((0.3, 0), (0.3, 0), (0.3, 1), (0.0, 0), (0.0, 1))
    ]
    assert found[0] == found[1] != found[2]
    assert found[3] == found[4]


def test_disjoint_explanations_can_be_preferred():
    def disjoint(preferred):
        options = {"beam_width": 3, "prefer_disjoint": preferred, "max_mses": 10, "expanded_mses": 0, "certify": 0}
        return [len(search_oracle(oracle, **options).diverse(0)) for oracle in graded_oracles()]

    assert sum(disjoint(True)) > sum(disjoint(False))
