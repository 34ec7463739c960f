"""The frame: what is shared, what comes back, what is refused, and that batches change nothing."""

import json
import math

import pytest
import torch
from PIL import Image

from suffice.attribution import attribute
from suffice.errors import OptionError
from suffice.metrics import Curves, Outcome, Protocol, Scores, find_metric, forget_metric, measure, metric
from suffice.metrics.metric import all_metrics
from suffice.metrics.protocols import all_protocols
from suffice.perturb import Forwarder, enlarge
from suffice.testing import CHECKS
from suffice.vision import open_images
from tests.attribution.nets import pictures, small_cnn
from tests.metrics.nets import sharp_cnn

SHARED = ["insertion", "deletion", "morf", "lerf", "pos", "neg"]
ALIKE = {"baseline": "black", "units": "pixels", "steps": 8, "fractions": None}


def brightness(images):
    """Maps that depend on the image, with ties."""
    return (images.mean(dim=1) * 40).round()


@pytest.fixture
def highest():
    @metric("highest", higher_is_better=True, range=(0, 1), needs=("maps",), reference="nowhere")
    def function(trial, *, power: float = 1.0):
        """The highest value."""
        return Outcome(trial.maps.flatten(1).amax(dim=1) ** power)

    yield function
    forget_metric("highest")


class Shared(list):
    """A list that a copy of its owner shares: the model is copied for its memory layout."""

    def __deepcopy__(self, memo):
        return self


class Counting(torch.nn.Module):
    """A module that counts the inputs it gets and remembers its batches."""

    def __init__(self, module):
        super().__init__()
        self.module, self.batches = module, Shared()

    def forward(self, x):
        self.batches.append(len(x))
        return self.module(x)


def counting_net():
    net = small_cnn()
    return net.with_module(Counting(net.module))


def test_metrics_asked_together_share_their_forwards():
    net, images = counting_net(), pictures(4)
    together = measure(net, images, brightness(images), SHARED, batch_size=4, **ALIKE)
    # The whole image, the baseline, and seven inner points from both ends.
    assert sum(net.module.batches) == 4 * (1 + 1 + 2 * 7)
    assert set(net.module.batches) == {4}
    for name in SHARED:
        alone = measure(small_cnn(), images, brightness(images), name, **ALIKE)
        torch.testing.assert_close(together[name].values, alone.values)
        assert together[name].protocol == alone.protocol


@pytest.mark.parametrize("protocol", ["default", "rise", "eea"])
def test_together_and_alone_agree(protocol):
    """Metrics that rank other units, hide by other baselines or look at other places do not mix up their answers."""
    images, boxes = pictures(2), [(4, 4, 20, 20)] * 2
    maps = brightness(images) / 40
    names = [n for n in all_protocols()[protocol].metrics if "method" not in find_metric(n).needs]
    together = measure(sharp_cnn(), images, maps, names, protocol, boxes=boxes, targets=1)
    for name in names:
        alone = measure(sharp_cnn(), images, maps, name, protocol, boxes=boxes, targets=1)
        torch.testing.assert_close(together[name].values, alone.values, equal_nan=True)


def test_the_whole_image_is_asked_once_for_all_baselines():
    net, images = counting_net(), pictures(2)
    found = measure(net, images, brightness(images), "insertion", baseline=["black", "gray", "blur"], steps=4)
    assert sum(net.module.batches) == 2 * (1 + 3 * 4)
    alone = [measure(small_cnn(), images, brightness(images), baseline=b, steps=4) for b in ("black", "gray", "blur")]
    torch.testing.assert_close(found.values, torch.stack([a.values for a in alone]).mean(dim=0))
    assert list(found.parts) == ["black", "gray", "blur"]


def test_baselines_of_ones_own():
    net, images = small_cnn(), pictures(5)
    maps, dark = brightness(images), 0.3 * images
    expected = measure(net, images, maps, baseline=lambda pixels: 0.3 * pixels, steps=4)
    found = measure(net, images, maps, baseline=dark, steps=4, batch_size=2)
    torch.testing.assert_close(found.values, expected.values)
    with pytest.raises(OptionError, match="4 baseline images were given for 5 images"):
        measure(net, images, maps, baseline=dark[:4], steps=4)


def test_batches_are_full_whatever_the_number_of_images():
    net, images = counting_net(), pictures(5)
    measure(net, images, brightness(images), ["insertion", "deletion"], batch_size=4, steps=8)
    assert set(net.module.batches) == {4, 3, 1}  # the fifth image is alone: 1, 4 + 4 and 4 + 3 questions
    assert net.module.batches.count(4) == (1 + 8 + 7) + 3


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("protocol", list(all_protocols()))
def test_batch_size_order_and_number_of_images_change_nothing(protocol, batch_size):
    net, images = small_cnn(), pictures(5)
    maps, boxes = brightness(images) / 40, [(4, 4, 20, 20)] * 5
    names = [n for n in all_protocols()[protocol].metrics if "method" not in find_metric(n).needs]
    options = {"targets": 2, "minimum": 0.0, "steps": 9} if "aic" in names else {"targets": 2}
    all_at_once = measure(net, images, maps, names, protocol, boxes=boxes, batch_size=16, **options)
    order = torch.tensor([3, 0, 4])
    some = measure(
        net, images[order], maps[order], names, protocol, boxes=boxes[:3], batch_size=batch_size, **options
    )  # fmt: skip
    for name in names:
        torch.testing.assert_close(
            some[name].values, all_at_once[name].values[order], atol=1e-5, rtol=1e-5, equal_nan=True
        )


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("name", ["ins-del", "pos", "adp", "sic", "energy-pointing-game", "sparseness"])
def test_promises(name, check):
    if name == "sic" and check is CHECKS["dtype"]:
        pytest.skip("images that its rules leave out have no value")

    def run(net, images):
        options = {"minimum": 0.0, "shares": (0.1, 0.5)} if name == "sic" else {}
        options |= {"baseline": ["noise", "blur"], "steps": 6} if name == "ins-del" else {}
        boxes = [(4, 4, 20, 20)] * len(images)
        return measure(net, images, brightness(images.detach()), name, boxes=boxes, batch_size=5, **options).values

    check(run, small_cnn(), pictures(3), tolerance=1e-4)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_promises_of_sensitivity(check):
    def run(net, images):
        found = attribute(net, images, "gradient")
        return measure(net, images, found, "sensitivity-max", samples=2, batch_size=2).values

    check(run, small_cnn(), pictures(3), tolerance=1e-4)


def test_one_channel_and_three_equal_ones_agree():
    gray = pictures(3).mean(dim=1, keepdim=True)
    maps = brightness(gray)
    for name in ("insertion", "pos", "adp"):
        one = measure(small_cnn(), gray, maps, name, batch_size=2)
        three = measure(small_cnn(), gray.expand(-1, 3, -1, -1), maps, name, batch_size=2)
        assert torch.equal(one.values, three.values)


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


def test_naming_positions_one_way_unsets_the_others():
    images = pictures(1)
    found = measure(small_cnn(), images, brightness(images), ["pos", "insertion"], step_size=100)
    for scores in found.values():
        assert scores.protocol["steps"] is None
        assert scores.protocol["fractions"] is None
        assert scores.curves.x.shape == (12,)


def test_protocols_list_every_choice():
    assert set(all_protocols()) == {"default", "rise", "igos", "jiang", "vit-cx", "tis", "eea", "chefer"}
    for protocol in all_protocols().values():
        for name, choices in protocol.choices.items():
            assert set(choices) == set(find_metric(name).options)
    assert set(all_protocols()["default"].metrics) == set(all_metrics())
    assert all_protocols()["igos"].choices["deletion"]["steps"] == 50


def test_a_protocol_says_nothing_about_other_metrics():
    images = pictures(1)
    with pytest.raises(OptionError, match=r"'eea' says nothing about insertion; it defines pos, neg, deletion, lerf"):
        measure(small_cnn(), images, brightness(images), "insertion", "eea", targets=0)
    with pytest.raises(OptionError, match=r"no protocol 'rises'; there are default, rise"):
        measure(small_cnn(), images, brightness(images), "insertion", "rises")


def test_a_protocol_of_ones_own():
    mine = Protocol("mine", "Few steps.", "predicted", {"insertion": {"steps": 3, "baseline": "noise"}})
    images = pictures(1)
    found = measure(small_cnn(), images, brightness(images), "insertion", mine)
    assert found.protocol["protocol"] == "mine"
    assert found.curves.x.tolist() == pytest.approx([0, 341 / 1024, 683 / 1024, 1])


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
        assert torch.equal(found.values, given.values)
        assert found.protocol["enlargement"] == rule
        assert found.protocol["maps"]["size"] == [8, 8]
    large = small.repeat_interleave(12, dim=1).repeat_interleave(12, dim=2)  # 96×96, averaged over 3×3
    nearest = measure(net, images, small, enlargement="nearest")
    assert torch.equal(measure(net, images, large).values, nearest.values)
    assert measure(net, images, torch.rand(2, 5, 9), units="cells").curves.y.shape == (2, 46)


def test_options_go_to_the_metrics_that_have_them():
    images = pictures(2)
    found = measure(small_cnn(), images, brightness(images), ["insertion", "sparseness"], values="shifted", steps=4)
    assert found["sparseness"].protocol["changed"] == ["values"]
    assert found["insertion"].protocol["changed"] == ["steps"]
    with pytest.raises(OptionError, match="insertion has no option 'step'; there are baseline, ends"):
        measure(small_cnn(), images, brightness(images), "insertion", step=4)
    with pytest.raises(OptionError, match=r"expected one or more different names"):
        measure(small_cnn(), images, brightness(images), [])


def test_metrics_without_a_question_do_not_ask_the_model():
    net, images = counting_net(), pictures(2)
    found = measure(net, images, brightness(images), ["sparseness", "pointing-game"], boxes=[(0, 0, 9, 9)] * 2)
    assert net.module.batches == []
    assert found["sparseness"].targets is None


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
    assert found.mean == float(found.values[1])
    assert math.isnan(found.standard_error)


def test_a_declared_metric(highest):
    images = pictures(2)
    found = measure(small_cnn(), images, torch.full((2, 4, 4), 0.5), "highest", power=2.0)
    assert found.values.tolist() == [0.25, 0.25]
    assert all_metrics()["highest"].about == "The highest value."
    with pytest.raises(OptionError, match="Did you mean 'insertion'"):
        measure(small_cnn(), images, torch.rand(2, 4, 4), "insertio")

    def positional(trial, power=1.0): ...

    with pytest.raises(OptionError, match="keyword-only"):
        metric("other", higher_is_better=True, range=(0, 1), needs=(), reference="")(positional)
    positional.__module__ = "elsewhere"
    positional.__defaults__ = None
    with pytest.raises(OptionError):
        metric("highest", higher_is_better=True, range=(0, 1), needs=(), reference="")(positional)


def test_statistics_leave_out_what_was_not_judged():
    found = Outcome(torch.tensor([1.0, torch.nan, 2.0, 4.0]))
    assert found.mean == pytest.approx(7 / 3)
    assert found.standard_error == pytest.approx(math.sqrt(7 / 3) / math.sqrt(3))


@pytest.mark.parametrize("count", [1, 4, 5])
def test_the_median_curve(count):
    y = torch.rand(count + 1, 7)
    y[0] = torch.nan
    curves = Curves(torch.linspace(0, 1, 7), y, y[:, 0], y[:, 1], torch.ones(7, dtype=torch.float64))
    torch.testing.assert_close(curves.median, y[1:].quantile(0.5, dim=0))
    torch.testing.assert_close(curves.mean, y[1:].mean(dim=0))


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


def test_a_forwarder_serves_many_calls():
    net, images = sharp_cnn(), pictures(3)
    forwarder = Forwarder(net, batch_size=2, precision="bf16")
    shared = measure(net, images, brightness(images), "insertion", forwarder=forwarder)
    alone = measure(net, images, brightness(images), "insertion", batch_size=2, precision="bf16")
    assert torch.equal(shared.values, alone.values)
    assert shared.protocol["precision"] == "bf16"
