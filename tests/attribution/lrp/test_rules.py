"""What one layer does with relevance: against loops, and what is conserved."""

import pytest
import torch

from suffice.attribution.lrp.rules import EPSILON, add, linear, per_unit, product


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_per_unit_is_defined_everywhere():
    total = torch.tensor([0.0, -EPSILON, EPSILON, 2.0, -2.0], dtype=torch.float64)
    found = per_unit(torch.ones(5, dtype=torch.float64), total)
    assert found.isfinite().all()
    assert found[0] == 0
    torch.testing.assert_close(found[2:], 1 / (total[2:] + EPSILON))


@pytest.mark.parametrize("shared", [True, False])
def test_linear_by_loops(shared):
    x, weight, relevance = normal(2, 3, 6), normal(5, 6, seed=1), normal(2, 3, 5, seed=2)
    by_hand = torch.zeros_like(x)
    for b in range(2):
        for t in range(3):
            for o in range(5):
                parts = x[b, t] * weight[o]
                kinds = [(x[b, t] > 0) & (parts > 0), (x[b, t] < 0) & (parts > 0)]
                if shared:
                    kinds = [kinds[0] | kinds[1]]
                for kind in kinds:
                    if kind.any():
                        by_hand[b, t, kind] += relevance[b, t, o] * parts[kind] / parts[kind].sum()
    torch.testing.assert_close(linear(x, weight, relevance, shared), by_hand, rtol=1e-6, atol=1e-7)


def test_linear_conserves_with_a_shared_denominator_and_doubles_with_separate_ones():
    x, weight, relevance = normal(4, 3, 32), normal(20, 32, seed=1), normal(4, 3, 20, seed=2)
    totals = relevance.sum(dim=2)
    torch.testing.assert_close(linear(x, weight, relevance).sum(dim=2), totals, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(linear(x, weight, relevance, False).sum(dim=2), 2 * totals, rtol=1e-6, atol=1e-7)


def test_an_output_without_positive_contributions_loses_its_relevance():
    x = torch.tensor([[1.0, 2.0]])
    weight = torch.tensor([[-1.0, -1.0], [1.0, 0.0]])
    for shared in (True, False):
        found = linear(x, weight, torch.tensor([[5.0, 1.0]]), shared)
        torch.testing.assert_close(found, torch.tensor([[1.0, 0.0]]))


def test_product_by_its_derivative_and_conserves():
    left, right = normal(2, 3, 4, 5).requires_grad_(), normal(2, 3, 5, 6, seed=1).requires_grad_()
    relevance = normal(2, 3, 4, 6, seed=2)
    out = left @ right
    slopes = torch.autograd.grad(out, (left, right), per_unit(relevance, out).detach())
    found = product(left.detach(), right.detach(), relevance)
    for part, factor, slope in zip(found, (left, right), slopes, strict=True):
        torch.testing.assert_close(part, factor.detach() * slope / 2)
        torch.testing.assert_close(part.sum(dim=(2, 3)), relevance.sum(dim=(2, 3)) / 2, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rescaled", [True, False])
def test_add_conserves_in_every_image(rescaled):
    a, b, relevance = normal(6, 4, 8), normal(6, 4, 8, seed=1), normal(6, 4, 8, seed=2)
    found = add(a, b, relevance, rescaled)
    totals = (found[0] + found[1]).sum(dim=(1, 2))
    torch.testing.assert_close(totals, relevance.sum(dim=(1, 2)), rtol=1e-5, atol=1e-6)


def test_rescaled_terms_have_their_share_by_magnitude():
    a, b, relevance = normal(6, 4, 8), normal(6, 4, 8, seed=1), normal(6, 4, 8, seed=2).abs()
    plain = [part.sum(dim=(1, 2)) for part in add(a, b, relevance, rescaled=False)]
    found = [part.sum(dim=(1, 2)) for part in add(a, b, relevance)]
    everything = relevance.sum(dim=(1, 2))
    assert min(p.min() for p in plain) < 0, "otherwise rescaling would change nothing"
    for one, before in zip(found, plain, strict=True):
        share = before.abs() / (plain[0].abs() + plain[1].abs())
        torch.testing.assert_close(one, share * everything, rtol=1e-5, atol=1e-6)


def test_rescaling_does_not_mix_images():
    a, b, relevance = normal(3, 4, 8), normal(3, 4, 8, seed=1), normal(3, 4, 8, seed=2)
    together = add(a, b, relevance)
    for n in range(3):
        alone = add(a[n : n + 1], b[n : n + 1], relevance[n : n + 1])
        for one, all_of_them in zip(alone, together, strict=True):
            torch.testing.assert_close(one[0], all_of_them[n])


def test_terms_that_cancel_or_vanish_stay_finite():
    a = torch.tensor([[1.0, 0.0], [1.0, 2.0]])
    b = torch.tensor([[-1.0, 0.0], [0.0, 0.0]])
    for rescaled in (True, False):
        first, second = add(a, b, torch.ones(2, 2), rescaled)
        torch.testing.assert_close(first, torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
        assert not second.any()
