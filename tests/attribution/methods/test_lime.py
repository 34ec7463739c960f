"""LIME against scikit-learn's ridge regression and against Captum, with the same coalitions and with its own."""

import captum.attr as captum
import pytest
import torch
from captum._utils.models.linear_model import SkLearnRidge
from captum.attr._core.lime import get_exp_kernel_similarity_function
from sklearn.linear_model import Ridge

from suffice.attribution import attribute
from suffice.attribution.methods.lime import RidgeFit
from suffice.perturb.masks import fill_cells
from suffice.testing import WeightedSum
from tests.attribution.nets import pictures, small_cnn

CELLS = fill_cells(torch.arange(9).view(1, 3, 3), (32, 32))[:, None]


def score(net):
    return lambda inputs: net.scores(net.logits(inputs))


@pytest.mark.parametrize(("kernel_width", "alpha"), [(0.25, 1.0), (0.1, 0.3), (2.0, 10.0)])
def test_equal_to_ridge_regression(kernel_width, alpha):
    fit = RidgeFit(7, samples=60, kernel_width=kernel_width, alpha=alpha, seed=3)
    answers, whole = torch.rand(4, 59, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    found = fit.values(answers, whole)
    for own, said, all_of_it in zip(found, answers, whole, strict=True):
        theirs = Ridge(alpha=alpha).fit(
            torch.cat([torch.ones(1, 7), fit.coalitions]).double().numpy(),
            torch.cat([all_of_it[None], said]).numpy(),
            sample_weight=fit.weights.numpy(),
        )
        torch.testing.assert_close(own, torch.from_numpy(theirs.coef_), rtol=1e-5, atol=1e-7)


def test_a_linear_model_is_found_without_penalty():
    oracle = WeightedSum({0: 1.0, 3: -0.5, 8: 0.25}, threshold=1.0, grid=3, link="smooth", sharpness=2.0)
    options = {"grid": 3, "baseline": "black", "alpha": 0, "output": "logit", "samples": 40}
    found = attribute(oracle.classifier(24), oracle.image(24), "lime", 1, **options).maps[0]
    torch.testing.assert_close(found.flatten(), (oracle.weights * 2).float(), rtol=1e-4, atol=1e-5)


def test_equal_to_captum_with_the_same_coalitions():
    net, images, targets = small_cnn(), pictures(), [1, 4, 2]
    kernel = get_exp_kernel_similarity_function("cosine", 0.4)
    ours = attribute(net, images, "lime", targets, samples=50, grid=3, kernel_width=0.4, alpha=0.7, seed=5).maps
    fit = RidgeFit(9, samples=50, kernel_width=0.4, alpha=0.7, seed=5)
    inputs = net.normalize(images)
    for i, own in enumerate(ours):
        rows = iter(fit.shown.split(1))
        peer = captum.LimeBase(
            score(net),
            SkLearnRidge(alpha=0.7),
            lambda original, perturbed, row, **_: kernel(torch.ones_like(row), row, row),
            lambda original, **_: next(rows),  # noqa: B023
            True,
            lambda row, original, **_: original * row[0][CELLS].float(),
            None,
        )
        theirs = peer.attribute(inputs[i : i + 1], target=targets[i], n_samples=50)
        torch.testing.assert_close(own.flatten(), theirs[0].float(), rtol=1e-3, atol=1e-6)


def test_near_to_captum_with_its_own_coalitions():
    net, image = small_cnn(), pictures(1)
    ours = attribute(net, image, "lime", 4, samples=2000, grid=3).maps[0]
    torch.manual_seed(0)
    peer = captum.Lime(score(net), SkLearnRidge(alpha=1.0), get_exp_kernel_similarity_function("cosine", 0.25))
    theirs = peer.attribute(
        net.normalize(image), target=4, feature_mask=CELLS, n_samples=2000, perturbations_per_eval=50
    )[0, 0, 5::11, 5::11][:3, :3]
    assert (ours - theirs).abs().max() < 0.1 * theirs.abs().max()


def test_superpixels():
    pytest.importorskip("skimage")
    found = attribute(small_cnn(), pictures(), "lime", samples=30, grid=4, segments="superpixels").maps
    assert found.shape == (3, 32, 32)
    assert all(2 <= len(image.unique()) <= 16 for image in found)
