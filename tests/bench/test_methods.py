"""The benchmark of methods counts what it should and knows its peers."""

import pytest
import torch

from suffice.attribution import attribute, find_method
from suffice.attribution.benchmark import benchmark_methods, counting
from suffice.attribution.peers import Work, peers
from tests.attribution.nets import pictures, small_cnn

NET = small_cnn()


@pytest.mark.parametrize(
    ("name", "options", "forwards", "backwards"),
    [
        ("gradient", {}, 1, 1),
        ("integrated-gradients", {"steps": 7}, 7, 7),
        ("grad-cam", {}, 1, 1),
        ("score-cam", {}, 1 + 12 + 1, 0),  # the features, every channel, and the whole image
        ("occlusion", {"window": 16, "stride": 16}, 4 + 1, 0),
        ("rise", {"masks": 9}, 9 + 1, 0),
    ],
)
def test_passes_are_counted(name, options, forwards, backwards):
    images = pictures(2)
    assert NET.anatomy  # found once, by a forward of its own
    with counting(NET.module) as passes:
        attribute(NET, images, name, **options)
    assert passes == {"forwards": 2 * (forwards + 1), "backwards": 2 * backwards}  # one more for the prediction
    assert not NET.module._forward_hooks


def test_timings_have_peers_where_there_are_some():
    options = {"integrated-gradients": {"steps": 3}, "smoothgrad": {"samples": 3}, "rise": {"masks": 5}}
    names = ["gradient", "integrated-gradients", "smoothgrad", "occlusion", "rise", "vit-cx"]
    options["occlusion"] = {"window": 16, "stride": 16}
    found = list(benchmark_methods(NET, names, torch.rand(2, 3, 32, 32), rounds=1, options=options))
    assert [t.method for t in found] == names
    assert [t.peer for t in found] == ["captum"] * 4 + ["one image at a time", None]
    assert all(t.images_per_second > 0 for t in found)
    assert all(t.speed_up > 0 for t in found[:5])
    assert found[-1].speed_up is None
    assert [t.efficiency is None for t in found] == [True, True, True, False, False, False]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gradient", {"reduction": "max-abs"}),
        ("integrated-gradients", {"steps": 4}),
        ("occlusion", {"window": 16, "stride": 16}),
        ("grad-cam", {"positive": False}),
        ("grad-cam++", {"positive": False}),
        ("score-cam", {}),
        ("rise", {"masks": 9}),
    ],
)
def test_peers_do_the_same_work(name, options):
    """As many inputs go through the model as in ours, but for the predictions that both make."""
    images, targets = pictures(2), torch.tensor([0, 1])
    chosen = {**find_method(name).options, **options}
    calls = peers(name, Work(NET, NET.normalize(images), targets, 32, chosen))
    assert calls
    with counting(NET.module) as ours:
        attribute(NET, images, name, targets, **options)
    for package, call in calls.items():
        with counting(NET.module) as theirs:
            call()
        assert abs(ours["forwards"] - theirs["forwards"]) <= 3 * len(images), package
        assert ours["backwards"] <= theirs["backwards"] + len(images), package


def test_the_published_loop_of_rise_finds_what_ours_finds():
    images, targets = pictures(2), torch.tensor([0, 1])
    chosen = {**find_method("rise").options, "masks": 20}
    found = peers("rise", Work(NET, NET.normalize(images), targets, 8, chosen))["one image at a time"]()
    ours = attribute(NET, images, "rise", targets, masks=20).maps
    assert torch.allclose(found, ours, rtol=1e-4, atol=1e-6)
