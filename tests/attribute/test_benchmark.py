"""The benchmark of methods counts what it should and knows its peers."""

import pytest
import torch

from suffice.attribute import attribute
from suffice.attribute.benchmark import benchmark_methods, counting
from tests.attribute.nets import pictures, small_cnn

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
    names = ["gradient", "integrated-gradients", "smoothgrad", "occlusion", "rise"]
    options["occlusion"] = {"window": 16, "stride": 16}
    found = list(benchmark_methods(NET, names, torch.rand(2, 3, 32, 32), rounds=1, options=options))
    assert [t.method for t in found] == names
    assert [t.peer for t in found] == ["captum"] * 4 + [None]
    assert all(t.images_per_second > 0 for t in found)
    assert all(t.speed_up > 0 for t in found[:4])
    assert found[-1].speed_up is None
