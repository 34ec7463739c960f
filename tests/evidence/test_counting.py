"""Counts against walking the trees node by node."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import OptionError
from suffice.evidence.counting import COUNTINGS, count_subexplanations
from suffice.evidence.settings import Settings
from suffice.perturb import Grid
from suffice.testing import AnyOf, WeightedSum
from tests.evidence.made import make_evidence
from tests.evidence.twins import SEEDS, formula, literal_counts, search_bank, search_oracle, strength_of


@settings(max_examples=2, deadline=None)  # of many formulas each
@given(SEEDS)
def test_all_readings_on_random_formulas(seeds):
    oracles = [formula(seed, low=0.6 if seed % 2 else 0.02) for seed in seeds]
    for oracle, evidence in zip(oracles, search_bank(oracles, max_mses=4), strict=True):
        expected = literal_counts([frozenset(m.cells) for m in evidence.mses], strength_of(oracle))
        assert {c: evidence.subexplanations(c) for c in COUNTINGS} == expected


@settings(max_examples=8, deadline=None)
@given(
    st.dictionaries(st.integers(0, 8), st.floats(0.3, 2.0), min_size=3, max_size=7),
    st.floats(0.3, 0.9),
    st.floats(0.5, 4),
)
def test_all_readings_on_graded_sums(weights, share, sharpness):
    oracle = WeightedSum(weights, share * sum(weights.values()), 3, link="smooth", sharpness=sharpness)
    evidence = search_oracle(oracle, max_mses=6)
    ratio = strength_of(oracle)

    def rounded(cells):
        return round(ratio(cells), 5)

    near = [r for m in evidence.mses for n in range(1, len(m)) for c in itertools.combinations(m.cells, n)
            for r in [ratio(frozenset(c))] if any(abs(r - t) < 1e-4 for t in (0.9, 0.8, 0.7, 0.6, 0.5))]  # fmt: skip
    if near:  # float32 and float64 may disagree on a ratio that lies on a threshold
        return
    expected = literal_counts([frozenset(m.cells) for m in evidence.mses], rounded)
    assert {c: evidence.subexplanations(c) for c in COUNTINGS} == expected


# Non-empty proper subsets, ordered deletion tree, tree with three children: published magnitudes.
@pytest.mark.parametrize(
    ("n", "distinct", "tree", "tree3"), [(5, 30, 205, 93), (6, 62, 1236, 282), (8, 254, 69_280, 2550)]
)
def test_full_lattices(n, distinct, tree, tree3):
    counts = full_lattice(n)
    assert counts.of("distinct")[0.5] == distinct
    assert counts.of("tree")[0.5] == tree
    assert counts.of("tree3")[0.5] == tree3


def full_lattice(n, grid=None):
    """Counts when every subset of one set of n cells keeps the full ratio."""
    grid = grid or Grid(7)
    regions = torch.arange(1, 1 << n)
    zeros = torch.zeros(len(regions), dtype=torch.long)
    return count_subexplanations(
        grid, torch.zeros(1, dtype=torch.long), torch.tensor([(1 << n) - 1]), zeros, regions, torch.ones(len(regions))
    )[0]


def test_only_the_layers_that_were_evaluated_are_counted():
    n, grid = 24, Grid(7)
    layers = [[(1 << n) - 1]]
    for _ in range(3):
        layers.append(sorted({s & ~(1 << c) for s in layers[-1] for c in range(n) if s >> c & 1}))
    regions = torch.tensor([s for layer in layers for s in layer])
    zeros = torch.zeros(len(regions), dtype=torch.long)
    counts = count_subexplanations(grid, zeros[:1], regions[:1], zeros, regions, torch.ones(len(regions)))[0]
    assert counts.of("tree")[0.5] == sum(math.perm(n, d) for d in (1, 2, 3))
    assert counts.of("distinct")[0.5] == sum(math.comb(n, d) for d in (1, 2, 3))


def test_counts_beyond_64_bits_are_exact():
    # Cells go in pairs, either of a pair first: a chain of diamonds, each of which doubles the paths.
    grid, pairs = Grid(12), 70
    cells = list(range(2 * pairs + 1))
    table = [cells]
    for pair in range(pairs):
        rest = cells[2 * pair + 2 :]
        table += [[cells[2 * pair], *rest], [cells[2 * pair + 1], *rest], rest]
    regions, zeros = grid.from_cells(table), torch.zeros(len(table), dtype=torch.long)
    counts = count_subexplanations(grid, zeros[:1], regions[:1], zeros, regions, torch.ones(len(table)))[0]
    assert counts.of("tree")[0.9] == 4 * (2**pairs - 1)
    assert counts.of("tree3")[0.9] == 4 * (2**pairs - 1)  # the pair to go is always among the first three
    assert counts.of("distinct")[0.9] == 3 * pairs


def test_several_images_at_once_equal_each_alone():
    oracles = [formula(seed, low=0.55) for seed in range(8)]
    evidence = [search_oracle(o, max_mses=4) for o in oracles]
    grid = evidence[0].grid
    together = count_subexplanations(
        grid,
        torch.cat([torch.full((len(e.mses),), i) for i, e in enumerate(evidence)]),
        torch.cat([grid.from_cells(m.cells for m in e.mses) for e in evidence]),
        torch.cat([torch.full((len(e.ratios),), i) for i, e in enumerate(evidence)]),
        torch.cat([e.regions for e in evidence]),
        torch.cat([e.ratios for e in evidence]),
        count=len(evidence),
    )
    assert together == [e.counts for e in evidence]


def test_the_budget_is_flagged_and_gives_a_lower_bound():
    oracle = AnyOf([tuple(range(8))], grid=3, high=0.98, low=0.6)
    whole, cut = search_oracle(oracle), search_oracle(oracle, max_regions=40)
    assert not whole.truncated
    assert cut.truncated
    assert len(cut.ratios) == 40
    for counting in COUNTINGS:
        for threshold, count in cut.subexplanations(counting).items():
            assert count <= whole.subexplanations(counting)[threshold]
    assert cut.subexplanations()[0.5] == 39
    assert whole.subexplanations()[0.5] == 254


def test_only_some_mses_are_expanded():
    oracle = AnyOf([(0, 1), (2, 3), (4, 5)], grid=3, high=0.98, low=0.6)
    assert search_oracle(oracle, beam_width=50).subexplanations("per-mse")[0.5] == 6
    two = search_oracle(oracle, beam_width=50, expanded_mses=2)
    assert len(two.mses) == 3
    assert two.subexplanations("per-mse")[0.5] == 4
    none = search_oracle(oracle, beam_width=50, expanded_mses=0)
    assert none.subexplanations("per-mse")[0.5] == 0
    assert all(m.ratio == 1 for m in none.mses)


def test_an_mse_that_is_not_expanded_is_no_root_where_it_lies_below_another():
    """Without certificates an MSE may contain another, and here the larger one was found first."""
    table = {(0, 1, 2): 0.95, (0, 1): 0.6, (0, 2): 0.6, (1, 2): 0.2, (0,): 0.92, (1,): 0.1, (2,): 0.1}
    settings = Settings(grid=3, minimal="single", expanded_mses=1)
    made = make_evidence(table, [(0, 1, 2), (0,)], 3, settings=settings)
    assert made.counts.depth_counts == (1, 3, 3)


def test_depth_profile():
    oracle = AnyOf([(0, 1, 2)], grid=3, high=0.9, low=0.54)
    profile = search_oracle(oracle).depth_profile()
    assert profile == pytest.approx([1.0, 0.6, 0.6], abs=1e-5)


def test_unknown_reading():
    with pytest.raises(OptionError, match="distinct, per-mse, tree, tree3"):
        search_oracle(AnyOf([(0,)], grid=2)).subexplanations("leaves")
