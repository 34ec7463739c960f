"""The benchmark of methods counts what it should and knows its peers."""

import pytest

from suffice.bench import benchmark_methods
from tests.attribution.nets import pictures, small_cnn

NET = small_cnn()
# Options, forwards and backwards for each image.
COUNTS = {
    "gradient": ({}, 1, 1),
    "integrated-gradients": ({"steps": 7}, 7, 7),
    "smoothgrad": ({"samples": 3}, 3, 3),
    "grad-cam": ({}, 1, 1),
    "layer-cam": ({}, 1, 1),
    "eigen-cam": ({}, 1, 0),
    "deep-lift": ({}, 2, 1),
    "score-cam": ({}, 1 + 12 + 1, 0),  # the features, every channel, and the whole image
    "occlusion": ({"window": 16, "stride": 16}, 4 + 1, 0),
    "rise": ({"masks": 9}, 9 + 1, 0),
    "kernel-shap": ({"samples": 40, "grid": 3}, 40 + 2, 0),  # the whole image and the baseline, too
    "lime": ({"samples": 40, "grid": 4}, 40, 0),
    "vit-cx": ({"masks": "all", "impact": "plain"}, 1 + 12 + 1, 0),
}


@pytest.fixture(scope="module")
def timings():
    from suffice.bench import BareModel

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BareModel.forwards_per_second.__kwdefaults__, "seconds", 0.001)
        options = {name: given for name, (given, _, _) in COUNTS.items()}
        return {t.method: t for t in benchmark_methods(NET, list(COUNTS), pictures(2), rounds=1, options=options)}


def test_one_timing_a_method_in_their_order(timings):
    assert list(timings) == list(COUNTS)
    assert all(t.images_per_second > 0 for t in timings.values())


@pytest.mark.parametrize("name", COUNTS)
def test_passes_are_counted(timings, name):
    _, forwards, backwards = COUNTS[name]
    assert (timings[name].forwards, timings[name].backwards) == (forwards, backwards)


def test_efficiency_is_that_of_forwards_alone(timings):
    without = {"eigen-cam", "score-cam", "occlusion", "rise", "kernel-shap", "lime", "vit-cx"}
    assert {name for name, t in timings.items() if t.efficiency is not None} == without
    assert all(timings[name].efficiency > 0 for name in without)


def test_timings_have_peers_where_there_are_some(timings):
    assert timings["rise"].peer == "one image at a time"
    assert timings["rise"].speed_ups == {"one image at a time": timings["rise"].speed_up}
    assert timings["rise"].speed_up > 0
    assert timings["vit-cx"].peer is None
    assert timings["vit-cx"].speed_up is None
    for timing in timings.values():
        assert timing.speed_up == min(timing.speed_ups.values(), default=None)
        assert (timing.peer in timing.speed_ups) == (timing.peer is not None)


def test_precision_is_the_one_that_the_method_really_has():
    import suffice

    net = suffice.load("zoo/deit", device="cpu", pretrained=False)
    found = benchmark_methods(net, ["cgw1", "raw-attention"], pictures(1, 56), rounds=1, precision="bf16")
    assert {t.method: t.precision for t in found} == {"cgw1": "fp32", "raw-attention": "bf16"}
