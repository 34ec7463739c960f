"""The frame: options, targets, memory, what comes back, and what is refused."""

import itertools
import json
from types import SimpleNamespace

import pytest
import torch

import suffice
from suffice.attribution import Attribution, attribute, find_method, forget_method, given_maps, method
from suffice.attribution.call import Forwarders, _layout_for_gradients, forwarder_for
from suffice.errors import OptionError
from suffice.perturb import Forwarder
from suffice.testing import AnyOf
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, pictures, small_cnn


@pytest.fixture
def brightness():
    @method("brightness", reference="nowhere", aliases=("light",))
    def function(task, *, power: float = 1.0):
        """Bright pixels."""
        return task.pixels.mean(dim=1) ** power

    yield function
    forget_method("brightness")


def test_the_room_can_be_called():
    net, images = small_cnn(), pictures()
    called = suffice.attribute(net, images, "gradient")
    assert isinstance(called, Attribution)
    assert torch.equal(called.maps, attribute(net, images, "gradient").maps)
    assert suffice.attribution.find_method is find_method


def test_a_declared_method_is_found_by_name_and_alias_with_its_options(brightness):
    assert find_method("light") is suffice.attribution.all_methods()["brightness"]
    assert find_method("brightness").about == "Bright pixels."
    net, images = small_cnn(), pictures()
    found = attribute(net, images, "light", power=2.0)
    torch.testing.assert_close(found.maps, images.mean(dim=1) ** 2)
    assert found.settings["method"] == "brightness"
    assert found.settings["options"] == {"power": 2.0}
    with pytest.raises(OptionError, match=r"no option 'strength'; its options are power"):
        attribute(net, images, "light", strength=2)
    for wrong in ("much", True):
        with pytest.raises(OptionError, match=r"brightness has power=1.0 by default"):
            attribute(net, images, "light", power=wrong)
    with pytest.raises(OptionError, match="coverage=False by default; 1 cannot"):
        attribute(net, images, "rise", coverage=1)


def test_names_cannot_be_taken_twice_and_options_need_defaults(brightness):
    def positional(task, power=1.0): ...

    def without_default(task, *, power): ...

    with pytest.raises(OptionError, match="keyword-only"):
        method("other", reference="")(positional)
    with pytest.raises(OptionError, match="have defaults"):
        method("other", reference="")(without_default)
    without_default.__module__ = "elsewhere"
    without_default.__kwdefaults__ = {"power": 1}
    with pytest.raises(OptionError, match="already a method 'light'"):
        method("light", reference="")(without_default)


def test_unknown_methods_and_misfits_say_what_there_is():
    net = small_cnn()
    with pytest.raises(OptionError, match=r"Did you mean .*grad-cam"):
        attribute(net, pictures(), "grad_cam")
    blind = Classifier(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 4)), size=32, mean=MEAN, std=STD)
    with pytest.raises(OptionError, match=r"grad-cam does not fit .* These fit: .*gradient"):
        attribute(blind, pictures(), "grad-cam")


def test_targets_confidences_labels_and_names():
    net = small_cnn(labels=list("abcde"))
    images = pictures(4)
    scores = net(images)
    found = attribute(net, images, "gradient")
    assert torch.equal(found.targets, scores.argmax(dim=1))
    torch.testing.assert_close(found.confidences, scores.amax(dim=1))
    assert found.labels == ["abcde"[t] for t in found.targets.tolist()]
    chosen = attribute(net, images, "gradient", targets=["a", 3, "e", 0])
    assert chosen.targets.tolist() == [0, 3, 4, 0]
    one = attribute(net, images[2:3], "gradient", targets="e")
    torch.testing.assert_close(one.maps[0], chosen.maps[2])
    with pytest.raises(OptionError, match="3 targets were given for 4 images"):
        attribute(net, images, "gradient", targets=[0, 1, 2])


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_the_batch_size_changes_nothing(batch_size):
    net, images = small_cnn(), pictures(5)
    for name in ("gradient", "smoothgrad", "rise", "score-cam"):
        options = {"rise": {"masks": 50}}.get(name, {})
        maps = attribute(net, images, name, **options).maps
        torch.testing.assert_close(attribute(net, images, name, batch_size=batch_size, **options).maps, maps)


def test_what_is_not_a_number_does_not_leave():
    @method("broken", reference="nowhere")
    def function(task):
        """Not a number."""
        return torch.full((len(task), 2, 2), torch.nan)

    try:
        with pytest.warns(suffice.SufficeWarning, match="not finite numbers in 3 of 3 images"):
            assert torch.equal(attribute(small_cnn(), pictures(), "broken").maps, torch.zeros(3, 2, 2))
    finally:
        forget_method("broken")


def test_running_out_of_memory_means_smaller_batches(brightness):
    sizes = []

    @method("greedy", reference="nowhere")
    def function(task):
        """Fails with more than two inputs at once."""
        sizes.append(task.forwarder.batch_size)
        if task.forwarder.batch_size > 2:
            raise torch.cuda.OutOfMemoryError
        return task.pixels.mean(dim=1)

    try:
        with pytest.warns(suffice.SufficeWarning, match="Out of memory"):
            attribute(small_cnn(), pictures(), "greedy", batch_size=8)
    finally:
        forget_method("greedy")
    assert sizes == [8, 4, 2]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("occlusion", {"window": 8, "stride": 8}),
        ("gradient", {}),
        ("integrated-gradients", {"steps": 4}),
        ("grad-cam", {}),
        ("igos++", {"size": 14, "iterations": 5, "steps": 5}),
    ],
)
def test_half_precision_is_near_and_leaves_the_model_alone(name, options):
    net, images = suffice.load("zoo/resnet", device="cpu"), suffice.open_images("scenes:test[:2]")
    before = {key: (value.dtype, value.requires_grad) for key, value in net.module.named_parameters()}
    exact, rough = (attribute(net, images, name, precision=p, **options).maps for p in ("fp32", "bf16"))
    assert rough.dtype == torch.float32
    assert not torch.equal(rough, exact)
    assert torch.nn.functional.cosine_similarity(rough.flatten(1), exact.flatten(1)).min() > 0.98
    assert before == {key: (value.dtype, value.requires_grad) for key, value in net.module.named_parameters()}


@pytest.mark.parametrize("name", ["cgw2", "tam", "bt-h", "bt-t", "attention-grad-cam"])
def test_half_precision_of_transformers_is_near(name):
    net, images = suffice.load("zoo/deit", device="cpu"), suffice.open_images("scenes:test[:4]")
    exact, rough = (attribute(net, images, name, precision=p).maps.flatten(1) for p in ("fp32", "bf16"))
    assert not torch.equal(rough, exact)
    assert torch.nn.functional.cosine_similarity(rough, exact).min() > 0.99


def test_relevance_is_not_for_lower_precision():
    net, images = suffice.load("zoo/deit", device="cpu"), suffice.open_images("scenes:test[:1]")
    for name, precision in itertools.product(("cgw1", "partial-lrp"), ("tf32", "bf16", "fp16")):
        with pytest.raises(OptionError, match=f"{name} divides by sums near 0"):
            attribute(net, images, name, precision=precision)
    with pytest.raises(OptionError, match="grad-cam looks inside the model"):
        attribute(net, images, "grad-cam", compile=True)


@pytest.mark.parametrize(
    ("name", "options"), [("integrated-gradients", {"steps": 5}), ("igos++", {"size": 7, "iterations": 3, "steps": 3})]
)
def test_compiled_gradients_agree(name, options):
    net, images = suffice.load("zoo/resnet", device="cpu"), suffice.open_images("scenes:test[:3]")
    plain = attribute(net, images, name, batch_size=8, **options).maps
    compiled = attribute(net, images, name, batch_size=8, compile=True, **options).maps
    assert torch.allclose(compiled, plain, rtol=1e-3, atol=1e-3 * float(plain.abs().max()))
    assert not any(parameter.grad is not None for parameter in net.module.parameters())


def test_nothing_is_compiled_anew_for_other_numbers_of_images(monkeypatch):
    shapes = set()

    def noting(function, **_):
        def run(*given):
            shapes.add((function.__name__, tuple(getattr(each, "shape", each) for each in given)))
            return function(*given)

        return run

    monkeypatch.setattr(torch, "compile", noting)
    net, images = small_cnn(), pictures(5)
    forwarder = forwarder_for(find_method("igos++"), net, 16, compile=True)
    for some in (images, images[:2]):
        attribute(net, some, "igos++", forwarder=forwarder, steps=3, iterations=2, size=8)
    assert sorted(name for name, _ in shapes) == ["_logits_in_graph", "normal_noise"]  # each with one shape only


@pytest.mark.parametrize("name", ["gradient", "occlusion"])
def test_tf32_is_for_all_methods_and_only_while_they_work(name):
    net, images = small_cnn(), pictures()
    during = []
    net.module.register_forward_hook(lambda *_: during.append(torch.get_float32_matmul_precision()))
    assert torch.get_float32_matmul_precision() == "highest"
    options = {} if name == "gradient" else {"window": 8, "stride": 8}
    found = attribute(net, images, name, precision="tf32", **options).maps
    assert "high" in during
    assert torch.get_float32_matmul_precision() == "highest"
    assert torch.allclose(found, attribute(net, images, name, **options).maps, rtol=1e-2, atol=1e-3)


def test_a_forwarder_serves_many_calls():
    net, images = small_cnn(), pictures()
    forwarder = Forwarder(net, batch_size=3, precision="bf16")
    shared = [attribute(net, images, "occlusion", window=8, stride=8, forwarder=forwarder).maps for _ in range(2)]
    alone = attribute(net, images, "occlusion", window=8, stride=8, batch_size=3, precision="bf16").maps
    assert torch.equal(shared[0], alone)
    assert torch.equal(shared[1], alone)
    compiled = Forwarder(net, batch_size=3, compile=True)
    with pytest.raises(OptionError, match="grad-cam looks inside the model"):
        attribute(net, images, "grad-cam", forwarder=compiled)


def test_forwarders_are_as_fast_as_each_method_allows():
    ways = Forwarders(small_cnn(), 4, "bf16", compile=True)
    seen = {name: ways.of(find_method(name)) for name in ("gradient", "rise", "occlusion", "rollout", "tis")}
    assert seen["rise"] is seen["occlusion"] is ways.fast
    assert seen["rollout"] is seen["tis"] is ways.uncompiled
    how = {name: (way.precision, way.compiled, way.batch_size) for name, way in seen.items()}
    assert how == {
        "gradient": ("fp32", True, 4), "rise": ("bf16", True, 4), "occlusion": ("bf16", True, 4),
        "rollout": ("bf16", False, 4), "tis": ("bf16", False, 4),
    }  # fmt: skip
    tf32 = Forwarders(small_cnn(), precision="tf32")
    assert tf32.of(find_method("gradient")).precision == "tf32"
    assert tf32.of(find_method("cgw1")).precision == tf32.of(find_method("partial-lrp")).precision == "fp32"


@pytest.mark.parametrize("order", [("gradient", "cgw1"), ("cgw1", "gradient")])
def test_methods_that_send_relevance_back_keep_the_layout_of_the_model(order):
    ways = Forwarders(small_cnn())
    layouts = {name: ways.of(find_method(name)).channels_last for name in order}
    assert layouts == {"gradient": True, "cgw1": False}  # on a CPU


@pytest.mark.parametrize(
    ("name", "device", "layout"),
    [
        ("gradient", "cpu", "inputs"),
        ("gradient", "cuda", False),
        ("grad-cam", "cuda", "inputs"),
        ("cgw1", "cuda", False),
    ],
)
def test_on_gpus_only_a_short_way_back_has_channels_last(name, device, layout):
    net = SimpleNamespace(device=torch.device(device))
    assert _layout_for_gradients(find_method(name), net, compile=False) == layout


def test_a_model_without_gradients_is_refused():
    oracle = AnyOf([(3,)], grid=4)
    net = oracle.classifier(32)

    class Cut(torch.nn.Module):
        def forward(self, x):
            return net.module(x).detach()

    cut = Classifier(Cut(), size=32, mean=net.mean, std=net.std, score=net.score)
    with pytest.raises(OptionError, match="no gradient"):
        attribute(cut, oracle.image(32), "gradient")


def test_results_survive_a_file(tmp_path):
    found = attribute(small_cnn(), pictures(), "grad-cam")
    path = found.save(tmp_path / "deep" / "maps")
    again = Attribution.load(tmp_path / "deep" / "maps")
    assert path.name == "maps.safetensors"
    assert torch.equal(again.maps, found.maps)
    assert torch.equal(again.targets, found.targets)
    assert again.settings == json.loads(json.dumps(found.settings))
    assert list(again.names) == list(found.names)
    with pytest.raises(OptionError, match="no maps at"):
        Attribution.load(tmp_path / "other")


def test_enlarging_and_showing():
    net, images = small_cnn(), pictures()
    found = attribute(net, images, "grad-cam")
    assert found.maps.shape == (3, 8, 8)
    assert found.enlarged().shape == (3, 32, 32)
    assert found.enlarged((4, 4), "nearest").shape == (3, 4, 4)
    assert found.show(images).size == (3 * 32 + 2 * 4, 32)
    assert found.show().getpixel((0, 0)) is not None
    with pytest.raises(OptionError, match="2 images were given for 3 maps"):
        found.show(images[:2])


def test_given_maps():
    mine = given_maps(torch.rand(2, 7, 7), torch.tensor([3, 5]), method="mine")
    assert mine.enlarged(14).shape == (2, 14, 14)
    assert mine.confidences.isnan().all()
    with pytest.raises(OptionError, match="Expected maps"):
        given_maps(torch.rand(2, 7, 7), torch.tensor([3]))


def test_installed_packages_are_looked_through_once(monkeypatch):
    from importlib import metadata

    import suffice

    before = suffice.attribution.all_methods(), suffice.metrics.all_metrics()
    monkeypatch.setattr(metadata, "distributions", lambda **_: pytest.fail("looked through again"))
    assert (suffice.attribution.all_methods(), suffice.metrics.all_metrics()) == before
