"""Searches in another precision, confirmed in fp32, on oracles that err in half precision by a known amount."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.evidence import find_evidence
from suffice.evidence.search.confirmation import BANDS
from suffice.perturb import Runner
from suffice.testing import WeightedSum
from suffice.vision import Classifier

GRID = 3
SETS = torch.arange(1 << 9)[:, None] >> torch.arange(9) & 1


class Errs(torch.nn.Module):
    """Confidence by a table over the cells shown; in half precision with an error of its own for each set."""

    def __init__(self, strengths, error, seed):
        super().__init__()
        noise = torch.rand(512, generator=torch.Generator().manual_seed(seed)) * 2 - 1
        self.register_buffer("exact", strengths.double())
        self.register_buffer("wrong", (strengths * (1 + error * noise)).clamp(1e-4, 0.9999).double())
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def _apply(self, fn, recurse=True):  # tables stay in float64, whatever the precision of the model
        self.weight.data = fn(self.weight.data)
        return self

    def forward(self, x):
        cells = x.float().mean(dim=1).view(len(x), 3, 2, 3, 2).mean(dim=(2, 4)).flatten(1)
        code = ((cells > 0.5).long() << torch.arange(9)).sum(dim=1)
        table = self.exact if x.dtype == torch.float32 else self.wrong
        odds = torch.logit(table[code]).float()
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def strengths_of(seed):
    random = torch.Generator().manual_seed(seed)
    weights = torch.rand(9, generator=random) * 3
    oracle = WeightedSum(dict(enumerate(weights.tolist())), 4.0, GRID, link="smooth", sharpness=0.7)
    return oracle.strength(SETS.bool()).float()


def minimal_in(strengths):
    """By brute force: the sets that suffice, those from which no single cell can go, those without any such subset."""
    enough = {code for code in range(512) if round(float(strengths[code] / strengths[-1]), 6) >= 0.9}
    single = {c for c in enough if not any(c >> cell & 1 and c ^ 1 << cell in enough for cell in range(9))}
    subset = {c for c in enough if not any(other & ~c == 0 and other != c for other in enough)}
    return enough, single, subset


def search(module, **options):
    net = Classifier(module, size=6, mean=(0,) * 3, std=(1,) * 3)
    chosen = {"grid": GRID, "baseline": "black", "max_mses": None, "precision": "bf16", **options}
    return find_evidence(net, torch.ones(1, 3, 6, 6), targets=1, **chosen)[0]


def codes(evidence):
    return {sum(1 << cell for cell in m.cells) for m in evidence.mses}


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["doubtful", "all"]), st.sampled_from([3, 6, None]))
def test_what_is_reported_holds_in_fp32(seed, confirm, certify):
    strengths = strengths_of(seed)
    evidence = search(Errs(strengths, 0.9 * BANDS["bf16"] / 2, seed), confirm=confirm, certify=certify)
    _, single, subset = minimal_in(strengths)
    assert evidence.mses
    assert codes(evidence) <= single
    assert {code for code, m in zip(codes_in_order(evidence), evidence.mses, strict=True) if m.certified} <= subset
    for mse, code in zip(evidence.mses, codes_in_order(evidence), strict=True):
        assert mse.ratio == pytest.approx(float(strengths[code] / strengths[-1]), abs=1e-5)
    assert evidence.confidence == pytest.approx(float(strengths[-1]), abs=1e-5)
    assert evidence.spent["confirming"] > 0


@pytest.mark.parametrize("seed", range(6))
def test_what_is_reported_suffices_however_wrong_the_search_is(seed):
    strengths = strengths_of(seed)
    evidence = search(Errs(strengths, 4 * BANDS["bf16"], seed), certify=None)
    enough, _, _ = minimal_in(strengths)
    assert evidence.mses
    assert codes(evidence) <= enough


def codes_in_order(evidence):
    return [sum(1 << cell for cell in m.cells) for m in evidence.mses]


def test_without_confirmation_wrong_sets_are_reported():
    wrong = mended = 0
    for seed in range(6):
        strengths = strengths_of(seed)
        module = Errs(strengths, 0.05, seed)
        wrong += len(codes(search(module, confirm="none")) - minimal_in(strengths)[1])
        mended += search(module).mended
    assert wrong > 0
    assert mended > 0


def test_the_target_is_what_the_exact_model_predicts():
    strengths = torch.full((512,), 0.4)
    strengths[-1] = 0.51
    module = Errs(strengths, 0.0, 0)
    module.wrong[-1] = 0.49
    net = Classifier(module, size=6, mean=(0,) * 3, std=(1,) * 3)
    options = {"grid": GRID, "baseline": "black", "precision": "bf16"}
    assert find_evidence(net, torch.ones(1, 3, 6, 6), **options)[0].target == 1
    assert find_evidence(net, torch.ones(1, 3, 6, 6), **options, confirm="none")[0].target == 0


def test_an_exact_search_is_not_confirmed():
    strengths = strengths_of(1)
    evidence = search(Errs(strengths, 0.05, 1), precision="fp32")
    assert "confirming" not in evidence.spent
    assert codes(evidence) <= minimal_in(strengths)[1]


def test_counts_near_a_threshold_are_confirmed():
    """Errors smaller than the band of the counts change none of them."""
    same = 0
    for seed in range(6):
        strengths = strengths_of(seed)
        exact, fast = (search(Errs(strengths, 0.004, seed), precision=p) for p in ("fp32", "bf16"))
        if codes(exact) == codes(fast):
            assert fast.subexplanations("distinct") == exact.subexplanations("distinct")
            assert fast.subexplanations("tree") == exact.subexplanations("tree")
            same += 1
    assert same > 2


def test_which_runners_are_exact():
    net = Classifier(Errs(strengths_of(0), 0.0, 0), size=6, mean=(0,) * 3, std=(1,) * 3)
    assert [Runner(net, precision=p).exact for p in ("fp32", "ieee", "tf32", "bf16")] == [True, True, False, False]
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        assert not Runner(net).exact
        assert Runner(net, precision="ieee").exact
        with Runner(net, precision="ieee").arithmetic():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("confirm", ["doubtful", "all"])
@pytest.mark.parametrize("seed", range(6))
def test_an_exhaustive_search_in_half_precision_misses_nothing(seed, confirm):
    strengths = strengths_of(seed)
    _, _, subset = minimal_in(strengths)
    found = search(Errs(strengths, 0.05, seed), exhaustive=4, max_size=4, confirm=confirm)
    small = {code for code in subset if code.bit_count() <= 4}
    assert {code for code in codes(found) if code.bit_count() <= 4} == small
    assert found.exhaustive_mses == len(small)
