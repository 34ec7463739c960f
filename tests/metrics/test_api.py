"""From maps to scores: what comes back, what is refused, and that batches change nothing."""

import inspect
import json
import math
import pickle

import pytest
import torch
from PIL import Image

import suffice
from suffice.attribution import attribute
from suffice.errors import OptionError
from suffice.metrics import Scores, find_metric, measure
from suffice.metrics.protocols import all_protocols
from suffice.perturb import Runner, enlarge
from suffice.vision import open_images
from tests.attribution.nets import pictures, small_cnn
from tests.metrics.nets import brightness, sharp_cnn


def test_baselines_of_ones_own():
    net, images = small_cnn(), pictures(5)
    maps, dark = brightness(images), 0.3 * images
    expected = measure(net, images, maps, baseline=lambda pixels: 0.3 * pixels, steps=4)
    found = measure(net, images, maps, baseline=dark, steps=4, batch_size=2)
    torch.testing.assert_close(found.values, expected.values)
    with pytest.raises(OptionError, match="4 baseline images were given for 5 images"):
        measure(net, images, maps, baseline=dark[:4], steps=4)


@pytest.mark.parametrize("protocol", list(all_protocols()))
def test_batch_size_order_and_number_of_images_change_nothing(protocol):
    net, images = small_cnn(), pictures(5)
    maps, boxes = brightness(images) / 40, [(4, 4, 20, 20)] * 5
    names = [n for n in all_protocols()[protocol].metrics if "method" not in find_metric(n).needs]
    options = {"targets": 2, "minimum": 0.0} if "aic" in names else {"targets": 2}
    options |= {} if protocol in ("eea", "chefer") else {"steps": 9}  # these two go by tenths
    all_at_once = measure(net, images, maps, names, protocol, boxes=boxes, batch_size=16, **options)
    order = torch.tensor([3, 0, 4])
    some = measure(
        net, images[order], maps[order], names, protocol, boxes=boxes[:3], batch_size=2, **options
    )  # fmt: skip
    for name in names:
        torch.testing.assert_close(
            some[name].values, all_at_once[name].values[order], atol=1e-5, rtol=1e-5, equal_nan=True
        )


def test_one_channel_and_three_equal_ones_agree():
    gray = pictures(3).mean(dim=1, keepdim=True)
    maps = brightness(gray)
    for name in ("insertion", "pos", "adp"):
        one = measure(small_cnn(), gray, maps, name, batch_size=2)
        three = measure(small_cnn(), gray.expand(-1, 3, -1, -1), maps, name, batch_size=2)
        torch.testing.assert_close(one.values, three.values, rtol=0, atol=1e-6)


def test_every_choice_is_in_the_protocol_and_can_be_written_down():
    images = pictures(2)
    found = measure(small_cnn(), images, brightness(images), "deletion", "rise", steps=5, seed=7)
    expected = {
        "metric": "deletion", "protocol": "rise", "changed": ["steps"], "baseline": "gray", "steps": 5,
        "rounding": "up", "integration": "trapezoid-points", "ends": "both", "value": "score", "units": "pixels",
        "enlargement": "bilinear", "target_class": "predicted", "score": "softmax", "seed": 7, "model": "small-cnn",
        "size": [32, 32], "normalize": None,
    }  # fmt: skip
    assert expected.items() <= json.loads(json.dumps(found.protocol)).items()
    assert set(find_metric("deletion").options) <= set(found.protocol)
    assert repr(found).startswith("Scores('deletion', protocol='rise', mean=0.")


def test_which_class_is_asked_about():
    net, images = small_cnn(labels=list("abcde")), pictures(3)
    maps = brightness(images)
    predicted = net.predict(images).targets
    explained = attribute(net, images, "gradient", targets=[0, 1, 2])
    assert torch.equal(measure(net, images, maps).targets, predicted)
    asked = measure(net, images, explained)
    assert asked.targets.tolist() == [0, 1, 2]
    assert asked.protocol["target_class"] == "explained"
    assert asked.protocol["maps"]["settings"]["method"] == "gradient"
    assert torch.equal(measure(net, images, explained, protocol="rise", steps=3).targets, predicted)
    assert measure(net, images, explained, targets="e").targets.tolist() == [4, 4, 4]
    labeled = open_images(images, labels=["c", 3, "a"])
    assert measure(net, labeled, explained, "pos", "chefer").targets.tolist() == [2, 3, 0]
    assert torch.equal(measure(net, labeled, maps, "pos", "chefer", target_class="predicted").targets, predicted)
    with pytest.raises(OptionError, match="asks about the label of each image, and 3 of 3 have none"):
        measure(net, images, maps, "pos", "chefer")
    with pytest.raises(OptionError, match="2 targets were given for 3 images"):
        measure(net, images, maps, targets=[1, 2])


def test_maps_that_cannot_be_judged_are_refused():
    net, images = small_cnn(), pictures(3)
    maps = torch.rand(3, 8, 8)
    with pytest.raises(OptionError, match=r"Maps are NoneType; expected what suffice.attribute returned"):
        measure(net, images, None)
    with pytest.raises(OptionError, match=r"Maps are list"):
        measure(net, images, list(maps))
    with pytest.raises(OptionError, match=r"shape \[3, 0, 0\]"):
        measure(net, images, torch.zeros(3, 0, 0))
    with pytest.raises(OptionError, match=r"maps of images \[0, 1, 2\] hold NaN or infinite"):
        measure(net, images, 1e300 * maps.double())  # more than float32 holds
    for bad in (torch.nan, torch.inf):
        maps[1, 2, 3] = bad
        with pytest.raises(OptionError, match=r"maps of images \[1\] hold NaN or infinite"):
            measure(net, images, maps)
    with pytest.raises(OptionError, match=r"\[2, 8, 8\]; expected \[3, h, w\]"):
        measure(net, images, torch.rand(2, 8, 8))
    with pytest.raises(OptionError, match=r"\[3, 1, 8, 8\]; expected \[3, h, w\]"):
        measure(net, images, torch.rand(3, 1, 8, 8))


def test_maps_of_any_size():
    net, images = small_cnn(), pictures(2)
    small = torch.rand(2, 8, 8)
    for rule in ("bilinear", "bilinear-corners", "nearest"):
        given = measure(net, images, enlarge(small.double(), (32, 32), rule).float())
        found = measure(net, images, small, enlargement=rule)
        torch.testing.assert_close(found.values, given.values, rtol=0, atol=1e-6)
        assert found.protocol["enlargement"] == rule
        assert found.protocol["maps"]["size"] == [8, 8]
    large = small.repeat_interleave(12, dim=1).repeat_interleave(12, dim=2)  # 96×96, averaged over 3×3
    nearest = measure(net, images, small, enlargement="nearest")
    torch.testing.assert_close(measure(net, images, large).values, nearest.values, rtol=0, atol=1e-6)
    assert measure(net, images, torch.rand(2, 5, 9), units="cells").curves.y.shape == (2, 46)


def test_options_go_to_the_metrics_that_have_them():
    images = pictures(2)
    found = measure(small_cnn(), images, brightness(images), ["insertion", "sparseness"], values="shifted", steps=4)
    assert found["sparseness"].protocol["changed"] == ["values"]
    assert found["insertion"].protocol["changed"] == ["steps"]
    with pytest.raises(OptionError, match="insertion has no option 'step'; there are baseline, ends"):
        measure(small_cnn(), images, brightness(images), "insertion", step=4)
    with pytest.raises(OptionError, match=r"measure has no argument 'target'\. Did you mean targets=\?"):
        measure(small_cnn(), images, brightness(images), ["insertion", "sparseness"], target=4)
    with pytest.raises(OptionError, match=r"expected one or more different names"):
        measure(small_cnn(), images, brightness(images), [])


def test_normalized_scores():
    net, images = small_cnn(), pictures(3)
    names = ["insertion", "deletion", "ins-del"]
    plain = measure(net, images, brightness(images), names, "jiang")
    found = measure(net, images, brightness(images), names, "jiang", normalize="set")
    top, bottom = plain["insertion"].curves.whole.mean(), plain["insertion"].curves.hidden.mean()
    for name in names[:2]:
        torch.testing.assert_close(found[name].values, (plain[name].values - bottom) / (top - bottom))
        assert found[name].protocol["normalize"] == "set"
        assert isinstance(found[name], Scores)
    torch.testing.assert_close(found["ins-del"].values, plain["ins-del"].values / (top - bottom))
    own = plain["insertion"].normalized("image")
    low, high = plain["insertion"].curves.hidden, plain["insertion"].curves.whole
    torch.testing.assert_close(own.values, (plain["insertion"].values - low) / (high - low))
    torch.testing.assert_close(own.curves.y[:, -1], torch.ones(3))
    torch.testing.assert_close(own.curves.y[:, 0], torch.zeros(3))
    assert plain["insertion"].protocol["normalize"] is None
    with pytest.raises(OptionError, match="sparseness has none"):
        measure(net, images, brightness(images), ["sparseness"], normalize="set")
    with pytest.raises(OptionError, match="normalize='all'"):
        measure(net, images, brightness(images), normalize="all")


def test_an_image_like_its_baseline_is_not_judged_by_its_own_span():
    images = torch.stack([torch.zeros(3, 32, 32), pictures(1)[0]])
    found = measure(small_cnn(), images, torch.rand(2, 8, 8), baseline="black", normalize="image")
    assert found.judged.tolist() == [False, True]
    assert found.mean == pytest.approx(float(found.values[1]))
    assert math.isnan(found.standard_error)


def test_progress_and_devices():
    seen = []
    images = pictures(5)
    maps = brightness(images)
    found = measure(small_cnn(), images, maps, batch_size=2, steps=2, on_progress=lambda *done: seen.append(done))
    assert seen == [(2, 5), (4, 5), (5, 5)]
    assert found.values.device == found.curves.x.device == images.device
    assert found.values.dtype == torch.float32
    assert found.curves.mean.shape == found.curves.standard_error.shape == (3,)
    torch.testing.assert_close(found.curves.mean, found.curves.y.mean(dim=0))


def test_images_that_could_not_be_read_have_no_map_and_no_score(tmp_path):
    for i in range(3):
        array = (pictures(1, seed=i)[0].permute(1, 2, 0) * 255).byte().numpy()
        Image.fromarray(array).save(tmp_path / f"{i}.png")
    (tmp_path / "1.png").write_bytes(b"broken")
    found = attribute(small_cnn(), str(tmp_path), "gradient", on_error="skip")
    scores = measure(small_cnn(), str(tmp_path), found, steps=3)
    assert len(scores) == 2
    assert [name.endswith(("0.png", "2.png")) for name in scores.names] == [True, True]
    assert [skip.index for skip in scores.skipped] == [1]
    # Some of the maps go with the same of the images.
    readable = open_images(str(tmp_path))[[0, 2]]
    alike = measure(small_cnn(), readable[1:], found[1:], steps=3)
    torch.testing.assert_close(alike.values, scores.values[1:], rtol=0, atol=1e-6)


def test_a_runner_serves_many_calls():
    net, images = sharp_cnn(), pictures(3)
    runner = Runner(net, batch_size=2, precision="bf16")
    shared = [measure(net, images, brightness(images), "insertion", runner=runner, steps=9) for _ in range(2)]
    alone = measure(net, images, brightness(images), "insertion", batch_size=2, precision="bf16", steps=9)
    for one in shared:
        torch.testing.assert_close(one.values, alone.values, rtol=0, atol=1e-6)
    assert runner.counters.forwards == 2 * 3 * 10
    assert shared[0].protocol["precision"] == "bf16"


def test_the_function_pickles_and_says_what_it_takes():
    assert pickle.loads(pickle.dumps(suffice.measure)) is measure
    parameters = inspect.signature(suffice.measure).parameters
    assert list(parameters)[:5] == ["net", "images", "maps", "metric", "protocol"]
    assert {"targets", "boxes", "seed", "batch_size", "precision", "runner"} <= set(parameters)


def test_a_runner_of_another_model_is_refused():
    net, images = small_cnn(), pictures(2)
    with pytest.raises(OptionError, match=r"runner= is of sharp-cnn, not of small-cnn; write runner=suffice.Runner"):
        measure(net, images, brightness(images), runner=Runner(sharp_cnn()))
    with pytest.raises(OptionError, match="precision='fp8'"):
        measure(net, images, brightness(images), "sparseness", precision="fp8")


def test_metrics_are_given_by_name_or_as_they_are():
    net, images = small_cnn(), pictures(2)
    named = measure(net, images, brightness(images), ["insertion", "sparseness"], steps=3)
    found = measure(net, images, brightness(images), [find_metric("insertion"), "sparseness"], steps=3)
    assert found.metrics == named.metrics
    alone = measure(net, images, brightness(images), find_metric("insertion"), steps=3)
    torch.testing.assert_close(alone.values, named["insertion"].values, rtol=0, atol=1e-6)


def test_measuring_under_inference_mode_changes_nothing():
    net, images = sharp_cnn(), pictures(2)
    maps = attribute(net, images, "gradient")
    names = ["insertion", "adp", "sensitivity-max"]
    outside = measure(net, images, maps, names, steps=3, samples=2)
    with torch.inference_mode():
        inside = measure(net, images, maps, names, steps=3, samples=2)
    for name in names:
        torch.testing.assert_close(inside[name].values, outside[name].values, rtol=1e-5, atol=1e-6)
