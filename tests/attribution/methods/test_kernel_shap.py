"""KernelSHAP against Shapley values by brute force, and against Captum."""

import sys
from itertools import combinations
from math import comb, factorial

import captum.attr as captum
import pytest
import torch

from suffice.attribution import attribute, find_method
from suffice.attribution.methods.kernel_shap import kernel_coalitions
from suffice.attribution.segments import superpixels
from suffice.errors import MissingExtra, OptionError
from suffice.perturb import Batch, Runner
from suffice.perturb.masks import fill_cells
from suffice.testing import CHECKS, AnyOf, AtLeast, ExactlyOdd, Unless, WeightedSum
from tests.attribution.nets import pictures, small_cnn

ORACLES = [
    AnyOf([(0, 1), (5,), (3, 4, 8)], grid=3),
    AtLeast(3, [1, 2, 4, 7], grid=3),
    ExactlyOdd([2, 3, 6], grid=3),
    Unless([(0, 4)], blockers=[5], grid=3, anyway=[(7, 8)]),
    WeightedSum({0: 1.0, 4: 2.0, 5: -0.5}, threshold=1.2, grid=3, link="smooth"),
]
LINEAR = WeightedSum({0: 1.0, 3: -0.5, 8: 0.25}, threshold=1.0, grid=3, link="smooth", sharpness=2.0)


def shapley_values(oracle):
    """By their definition: what a cell adds, averaged over all orders in which cells could appear."""
    cells = oracle.grid**2
    subsets = [s for size in range(cells + 1) for s in combinations(range(cells), size)]
    shown = torch.tensor([[cell in subset for cell in range(cells)] for subset in subsets])
    said = dict(zip(subsets, oracle.strength(shown).tolist(), strict=True))
    values = [0.0] * cells
    for subset in subsets:
        for cell in set(range(cells)) - set(subset):
            weight = factorial(len(subset)) * factorial(cells - len(subset) - 1) / factorial(cells)
            values[cell] += weight * (said[tuple(sorted((*subset, cell)))] - said[subset])
    return torch.tensor(values)


def explain(oracle, samples, **options):
    net, image = oracle.classifier(24), oracle.image(24)
    found = attribute(net, image, "kernel-shap", 1, samples=samples, grid=3, baseline="black", **options)
    return found.maps[0].flatten()


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: type(oracle).__name__)
def test_all_coalitions_give_the_shapley_values(oracle):
    exact = shapley_values(oracle)
    torch.testing.assert_close(explain(oracle, 2**9 - 2), exact, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(explain(oracle, 5000), exact, rtol=1e-4, atol=1e-5)  # there are no more to ask
    few, many = ((explain(oracle, samples, seed=3) - exact).norm() for samples in (18, 400))
    assert many < min(few, 0.3 * exact.norm())


@pytest.mark.parametrize("samples", [18, 19, 40, 200])
def test_a_linear_game_is_solved_by_any_coalitions_that_tell_its_players_apart(samples):
    found = explain(LINEAR, samples, output="logit", seed=samples)
    torch.testing.assert_close(found, (LINEAR.weights * 2).float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("samples", [18, 101, 400])
def test_values_add_up(samples):
    net, images = small_cnn(), pictures()
    found = attribute(net, images, "kernel-shap", [1, 4, 2], samples=samples, grid=3)
    nothing = net(torch.tensor(net.mean)[None, :, None, None].expand_as(images))
    lost = found.confidences - nothing.gather(1, found.targets[:, None])[:, 0]
    torch.testing.assert_close(found.maps.sum(dim=(1, 2)), lost, rtol=1e-4, atol=1e-6)


def score(net):
    return lambda inputs: net.scores(net.logits(inputs))


def test_equal_to_the_exact_values_of_captum():
    net, images, targets = small_cnn(), pictures(), [1, 4, 2]
    ours = attribute(net, images, "kernel-shap", targets, samples=14, grid=2).maps
    cells = fill_cells(torch.arange(4).view(1, 2, 2), (32, 32))[:, None]
    inputs = net.normalize(images)
    # All 24 orders, each asked in turn.
    theirs = captum.ShapleyValues(score(net)).attribute(inputs, torch.zeros_like(inputs), targets, feature_mask=cells)
    torch.testing.assert_close(ours, theirs[:, 0, ::16, ::16], rtol=1e-3, atol=1e-6)


def test_as_near_to_kernel_shap_of_captum_as_that_is_to_the_truth():
    net, image = small_cnn(), pictures(1)
    exact = attribute(net, image, "kernel-shap", 4, samples=510, grid=3).maps[0]
    cells = fill_cells(torch.arange(9).view(1, 3, 3), (32, 32))[:, None]
    torch.manual_seed(0)
    explainer = captum.KernelShap(score(net))
    theirs = explainer.attribute(
        net.normalize(image), target=4, feature_mask=cells, n_samples=2000, perturbations_per_eval=50
    )
    middle = theirs[0, 0, 5::11, 5::11][:3, :3]
    assert (middle - exact).abs().max() < 0.1 * exact.abs().max()
    sampled = attribute(net, image, "kernel-shap", 4, samples=100, grid=3).maps[0]
    assert (sampled - exact).abs().max() < 0.1 * exact.abs().max()


@pytest.mark.parametrize("segments", [1, 2, 3, 4, 7, 8])
def test_enough_samples_list_every_coalition_once(segments):
    listed, weights = kernel_coalitions(segments, max(1, 2**segments - 2), 0)
    assert len(listed) == len(listed.unique(dim=0)) == 2**segments - 2
    for coalition, weight in zip(listed, weights, strict=True):
        size = int(coalition.sum())
        kernel = (segments - 1) / (comb(segments, size) * size * (segments - size))
        assert float(weight) == pytest.approx(kernel)


@pytest.mark.parametrize("samples", [98, 150, 2048, 20000])
def test_what_is_listed_and_what_is_drawn(samples):
    listed, weights = kernel_coalitions(49, samples, seed=5)
    assert samples - 1 <= len(listed) <= samples
    assert len(listed) == len(listed.unique(dim=0))
    assert {tuple(row) for row in listed.tolist()} == {tuple(row) for row in (~listed).tolist()}
    sizes = listed.sum(dim=1)
    assert (sizes == 1).sum() == (sizes == 48).sum() == 49
    assert ((sizes > 0) & (sizes < 49)).all()
    if samples == 20000:
        assert (sizes == 2).sum() == (sizes == 47).sum() == comb(49, 2)
    if samples > 98:
        everything = sum(48 / (size * (49 - size)) for size in range(1, 49))
        assert float(weights.sum()) == pytest.approx(everything)
        other = kernel_coalitions(49, samples, seed=6)[0]
        assert listed.shape != other.shape or not torch.equal(listed, other)


def test_sizes_are_drawn_by_their_weight():
    listed, weights = kernel_coalitions(12, 1500, seed=1)
    for size in range(1, 12):
        share = float(weights[listed.sum(dim=1) == size].sum())
        assert share == pytest.approx(11 / (size * (12 - size)), rel=0.2)


def test_superpixels():
    pytest.importorskip("skimage")
    net, images, targets = small_cnn(), pictures(), [1, 4, 2]
    labels = superpixels(images, 4)
    counts = labels.flatten(1).amax(dim=1) + 1
    assert len(counts.unique()) > 1  # images with different numbers of segments share a batch
    assert [labels[i].unique().tolist() for i in range(3)] == [list(range(n)) for n in counts.tolist()]
    ours = attribute(net, images, "kernel-shap", targets, samples=2**8, grid=2, segments="superpixels").maps
    assert ours.shape == (3, 32, 32)
    inputs = net.normalize(images)
    for i in range(3):
        assert counts[i] < 6
        theirs = captum.ShapleyValues(score(net)).attribute(
            inputs[i : i + 1], torch.zeros_like(inputs[:1]), targets[i], feature_mask=labels[i][None, None]
        )
        torch.testing.assert_close(ours[i], theirs[0, 0], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("check", ["batch_invariance", "order", "memory"])
def test_superpixels_keep_the_promises_of_methods(check):
    pytest.importorskip("skimage")
    options = {"samples": 40, "grid": 4, "segments": "superpixels"}
    CHECKS[check](
        lambda net, images: attribute(net, images, "kernel-shap", **options).maps, small_cnn(), pictures(), 1e-4
    )


@pytest.mark.parametrize("method", ["kernel-shap", "lime"])
def test_superpixels_without_scikit_image_say_what_to_install(method, monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    with pytest.raises(MissingExtra, match=r"pip install 'suffice\[superpixels\]'; or write segments='grid'"):
        attribute(small_cnn(), pictures(1), method, samples=40, grid=2, segments="superpixels")


def test_one_cell_has_it_all_and_too_few_samples_are_refused():
    net, images = small_cnn(), pictures(2)
    alone = attribute(net, images, "kernel-shap", grid=1).maps
    parts = attribute(net, images, "kernel-shap", grid=2).maps
    torch.testing.assert_close(alone.sum(dim=(1, 2)), parts.sum(dim=(1, 2)), rtol=1e-4, atol=1e-6)
    batch = Batch(net, images, torch.tensor([0, 1]), ["a", "b"], 0, Runner(net))
    assert find_method("kernel-shap").function(batch, grid=2).dtype == torch.float32  # as all devices have it
    with pytest.raises(OptionError, match=r"samples=31 .* write samples=32"):
        attribute(net, images, "kernel-shap", grid=4, samples=31)
    with pytest.raises(OptionError, match="does not fit"):
        attribute(net, images, "kernel-shap", grid=33, samples=5000)
