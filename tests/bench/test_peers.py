"""Peers do the same work as our methods."""

import contextlib

import pytest
import torch

import suffice
from suffice.attribution import attribute, find_method
from suffice.bench.peers import Work, peers
from tests.attribution.nets import pictures, small_cnn

NET = small_cnn()
TARGETS = torch.tensor([0, 1])


@contextlib.contextmanager
def counting(module):
    """Count the inputs that go through a module, and those whose gradients come back."""
    passes = {"forwards": 0, "backwards": 0}

    def note(_module, _inputs, output):
        passes["forwards"] += len(output)
        if output.requires_grad:
            output.register_hook(lambda gradient: passes.update(backwards=passes["backwards"] + len(gradient)))

    handle = module.register_forward_hook(note)
    try:
        yield passes
    finally:
        handle.remove()


@pytest.mark.parametrize(
    ("name", "options", "forwards", "backwards"),
    [
        ("gradient", {}, 1, 1),
        ("integrated-gradients", {"steps": 4}, 4, 4),
        ("smoothgrad", {"samples": 3}, 3, 3),
        ("occlusion", {"window": 16, "stride": 16}, 4 + 1, 0),
        ("grad-cam", {}, 1, 1),
        ("grad-cam++", {}, 1, 1),
        ("score-cam", {}, 12 + 1, 0),
        ("layer-cam", {}, 1, 1),
        ("hires-cam", {}, 1, 1),
        ("eigen-cam", {}, 1, 0),
        ("deep-lift", {}, 2, 1),
        ("kernel-shap", {"samples": 40, "grid": 3}, 40 + 2, 0),
        ("lime", {"samples": 40, "grid": 3}, 40, 0),
        ("rise", {"masks": 9}, 9, 0),
    ],
)
def test_peers_do_the_same_work(name, options, forwards, backwards):
    """As many inputs go through the model as in ours, but for one or two for each image."""
    images = pictures(2)
    chosen = {**find_method(name).options, **options}
    calls = peers(name, Work(NET, NET.normalize(images), TARGETS, 32, chosen))
    if name != "rise" and not calls:
        pytest.skip("no peer is installed")
    for package, call in calls.items():
        with counting(NET.module) as theirs:
            call()
        assert abs(theirs["forwards"] - 2 * forwards) <= 2 * len(images), package
        assert theirs["backwards"] >= 2 * backwards, package


def test_the_published_loop_of_rise_finds_what_ours_finds():
    images = pictures(2)
    chosen = {**find_method("rise").options, "masks": 20}
    found = peers("rise", Work(NET, NET.normalize(images), TARGETS, 8, chosen))["one image at a time"]()
    ours = attribute(NET, images, "rise", TARGETS, masks=20).maps
    torch.testing.assert_close(found, ours, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vit-cx", {"sigma": 0.0, "threshold": 0.3}),  # without noise, of which each side draws its own
        ("tis", {"masks": 10**6, "ratio": 0.25}),  # each channel a cluster, so that it does not matter where they begin
    ],
)
def test_the_published_loops_of_transformers_find_what_ours_find(name, options):
    torch.manual_seed(0)
    net, images = suffice.load("zoo/deit", device="cpu", pretrained=False), pictures(2, 56)
    chosen = {**find_method(name).options, **options}
    found = peers(name, Work(net, net.normalize(images), TARGETS, 8, chosen))["one image at a time"]()
    ours = attribute(net, images, name, TARGETS, **options).maps
    torch.testing.assert_close(found, ours, rtol=1e-3, atol=1e-6)
