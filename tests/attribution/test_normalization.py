"""Amounts of noise and penalties are the same whatever the normalization of a model's weights."""

import pytest
import torch

from suffice.attribution import attribute
from suffice.metrics import measure
from suffice.vision.units import IMAGENET_MEAN, IMAGENET_STD
from tests.attribution.igos.twin import sure_cnn
from tests.attribution.nets import pictures, renormalized
from tests.attribution.trained import scenes, trained

CAFFE_MEAN, CAFFE_STD = (0.485, 0.458, 0.408), (1 / 255,) * 3
UNEVEN_MEAN, UNEVEN_STD = (0.3, 0.5, 0.7), (0.5, 0.1, 0.9)
IGOS = {"size": 6, "steps": 3, "iterations": 3, "l1": 0.05, "l2": 2.0}


@pytest.fixture
def net():
    """In float64, so that line searches choose alike."""
    return sure_cnn(torch.float64).replace(mean=IMAGENET_MEAN, std=IMAGENET_STD)


def assert_same(found, expected):
    assert expected.flatten(1).std(dim=1).min() > 0
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=float(expected.abs().max()) * 1e-4)


@pytest.mark.parametrize(("mean", "std"), [(CAFFE_MEAN, CAFFE_STD), (UNEVEN_MEAN, UNEVEN_STD)])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("i-gos", {}),
        ("igos+", {}),
        ("igos++", {"noise": 0.0}),  # the weights of edges alone
        ("igos++", {"noise": 0.0, "btv": "channels"}),
        ("igos++", {"noise": (0.4, 0.0, 0.1), "btv": "asymmetric"}),
    ],
)
def test_masks_are_optimized_alike(net, name, options, mean, std):
    images = 0.45 + 0.1 * pictures(2)  # of so little contrast that neighbors are no edge to all readings
    expected, found = (
        attribute(one, images, name, targets=0, seed=3, **{**IGOS, **options}).maps
        for one in (net, renormalized(net, mean, std))
    )
    assert_same(found, expected)


def test_vit_cx_has_the_same_noise():
    """Under the same canvas, which is the mean color of a model's normalization."""
    net = trained("deit", torch.float64)
    images, targets = (given[:2] for given in scenes())
    twin = renormalized(net, net.mean, UNEVEN_STD)
    expected, found = (attribute(one, images, "vit-cx", targets, sigma=1.0).maps for one in (net, twin))
    assert_same(found, expected)


def test_smoothgrad_has_the_same_noise(net):
    """Where channels are divided alike, all gradients are larger by one factor and maps otherwise the same."""
    std = tuple(20 * s for s in IMAGENET_STD)
    images = pictures(2)
    expected, found = (
        attribute(one, images, "smoothgrad", targets=0, samples=4, noise=0.3).maps
        for one in (net, renormalized(net, UNEVEN_MEAN, std))
    )
    assert_same(found / 20, expected)


def test_the_canvases_of_tis_are_the_same(net):
    images, maps = pictures(2), torch.rand(2, 6, 6, generator=torch.Generator().manual_seed(0))
    options = {"targets": 0, "baseline": ("tis-noise", "tis-mean"), "steps": 8, "protocol": "tis"}
    expected, found = (
        measure(one, images, maps, "insertion", **options) for one in (net, renormalized(net, CAFFE_MEAN, CAFFE_STD))
    )
    torch.testing.assert_close(found.values, expected.values, rtol=1e-4, atol=1e-5)


def test_sensitivity_has_the_same_radius(net):
    images = pictures(2)

    def explained(one, images):
        return attribute(one, images, "occlusion", 0, window=8, stride=4, baseline="black")

    expected, found = (
        measure(one, images, explained(one, images), "sensitivity-max", "tis", targets=0, samples=2)
        for one in (net, renormalized(net, UNEVEN_MEAN, UNEVEN_STD))
    )
    assert expected.values.min() > 1e-3
    torch.testing.assert_close(found.values, expected.values, rtol=1e-3, atol=1e-6)
