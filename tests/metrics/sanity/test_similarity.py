"""Similarities agree with peers and with a literal reading."""

import math

import pytest
import torch
from scipy.stats import spearmanr

from suffice.metrics.sanity import absolute_spearman, spearman, ssim
from suffice.metrics.sanity.similarity import constant


def maps(count, height, width, seed):
    return torch.randn(count, height, width, generator=torch.Generator().manual_seed(seed))


def literal_ssim(first, second, window, sigma):
    """One pair of maps, position by position, as Wang et al. define it."""
    a, b = ((m - m.min()) / (m.max() - m.min()) for m in (first.double(), second.double()))
    center = (window - 1) / 2
    weights = [
        [math.exp(-((i - center) ** 2 + (j - center) ** 2) / (2 * sigma**2)) for j in range(window)]
        for i in range(window)
    ]
    whole = sum(map(sum, weights))
    found = []
    for top in range(a.shape[0] - window + 1):
        for left in range(a.shape[1] - window + 1):
            pairs = [
                (weights[i][j] / whole, float(a[top + i, left + j]), float(b[top + i, left + j]))
                for i in range(window)
                for j in range(window)
            ]
            mean_a, mean_b = sum(w * x for w, x, _ in pairs), sum(w * y for w, _, y in pairs)
            var_a = sum(w * (x - mean_a) ** 2 for w, x, _ in pairs)
            var_b = sum(w * (y - mean_b) ** 2 for w, _, y in pairs)
            cov = sum(w * (x - mean_a) * (y - mean_b) for w, x, y in pairs)
            found.append(
                (2 * mean_a * mean_b + 1e-4) * (2 * cov + 9e-4)
                / ((mean_a**2 + mean_b**2 + 1e-4) * (var_a + var_b + 9e-4))
            )  # fmt: skip
    return sum(found) / len(found)


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_agrees_with_scipy(ties):
    first, second = maps(6, 9, 7, 1), 0.5 * maps(6, 9, 7, 1) + maps(6, 9, 7, 2)
    if ties:
        first, second = first.relu(), second.round()
    found = spearman(first, second)
    for value, a, b in zip(found, first, second, strict=True):
        assert float(value) == pytest.approx(spearmanr(a.flatten(), b.flatten()).statistic, abs=1e-12)


def test_magnitudes_ignore_signs():
    first = maps(3, 6, 6, 3)
    assert spearman(first, -first).tolist() == pytest.approx([-1] * 3)
    assert absolute_spearman(first, -first).tolist() == pytest.approx([1] * 3)


def test_maps_without_order_have_defined_similarities():
    flat, ramp = torch.full((1, 2, 3), 4.0), torch.arange(6.0).view(1, 2, 3)
    assert constant(torch.cat([flat, ramp])).tolist() == [True, False]
    assert spearman(flat, flat + 1).tolist() == [1]
    assert spearman(flat, ramp).tolist() == [0]
    assert spearman(ramp, flat).tolist() == [0]
    pair = torch.tensor([[[1.0, 2.0]]])
    assert spearman(pair, pair.flip(2)).tolist() == pytest.approx([-1], abs=1e-12)
    assert ssim(flat, flat).tolist() == pytest.approx([1])
    assert ssim(flat, ramp).isfinite().all()


def test_ssim_agrees_with_torchmetrics():
    from torchmetrics.functional.image import structural_similarity_index_measure

    first = maps(4, 24, 20, 4)
    second = first + maps(4, 24, 20, 5)
    scaled = [(m - m.amin((1, 2), True)) / (m.amax((1, 2), True) - m.amin((1, 2), True)) for m in (first, second)]
    _, everywhere = structural_similarity_index_measure(
        scaled[0][:, None], scaled[1][:, None], data_range=1.0, sigma=1.5, reduction="none", return_full_image=True
    )
    peer = everywhere[:, 0, 5:-5, 5:-5].mean(dim=(1, 2))  # where its window does not see the padding
    torch.testing.assert_close(ssim(first, second).float(), peer, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("height", "width", "window"), [(14, 14, 11), (7, 7, 7), (6, 9, 5), (1, 4, 1)])
def test_ssim_agrees_with_a_literal_reading_at_every_size(height, width, window):
    first = maps(2, height, width, 6)
    second = 0.7 * first + maps(2, height, width, 7)
    expected = [literal_ssim(a, b, window, 1.5 * window / 11) for a, b in zip(first, second, strict=True)]
    assert ssim(first, second).tolist() == pytest.approx(expected, abs=1e-9)


def test_each_image_alone_has_the_same_similarity():
    first, second = maps(5, 8, 8, 8), maps(5, 8, 8, 9)
    for similarity in (spearman, absolute_spearman, ssim):
        alone = torch.cat([similarity(first[i : i + 1], second[i : i + 1]) for i in range(5)])
        torch.testing.assert_close(similarity(first, second), alone)
