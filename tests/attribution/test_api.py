"""The frame: options, targets, memory, what comes back, and what is refused."""

import functools
import inspect
import itertools
import pickle

import pytest
import torch
from torchvision.transforms.functional import to_pil_image

import suffice
from suffice.attribution import Attribution, attribute, find_method, forget_method, method
from suffice.errors import OptionError
from suffice.perturb import Runner
from suffice.testing import AnyOf
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, pictures, small_cnn
from tests.attribution.trained import trained


@pytest.fixture
def brightness():
    @method("brightness", reference="nowhere", aliases=("light",))
    def function(batch, *, power: float = 1.0):
        """Bright pixels."""
        return batch.pixels.mean(dim=1) ** power

    yield function
    forget_method("brightness")


def test_it_is_a_plain_function():
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
    for wrong in ("much", True, None):
        with pytest.raises(OptionError, match=r"power=.*; it can be a number\."):
            attribute(net, images, "light", power=wrong)
    with pytest.raises(OptionError, match="coverage=1; it can be True or False"):
        attribute(net, images, "rise", coverage=1)
    with pytest.raises(OptionError, match="steps=0; it can be a whole number from 1 on"):
        attribute(net, images, "ig", steps=0)
    for wrong, said in (({"seed": None}, "seed=None"), ({"seed": 2**63}, "seed="), ({"on_error": "no"}, "'skip'")):
        with pytest.raises(OptionError, match=said):
            attribute(net, images, "rise", **wrong)


def test_names_cannot_be_taken_twice_and_options_need_defaults(brightness):
    def positional(batch, power=1.0): ...

    def without_default(batch, *, power): ...

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
    def function(batch):
        """Not a number."""
        return torch.full((len(batch), 2, 2), torch.nan)

    try:
        with pytest.warns(suffice.SufficeWarning, match="not finite numbers in 3 of 3 images"):
            assert torch.equal(attribute(small_cnn(), pictures(), "broken").maps, torch.zeros(3, 2, 2))
    finally:
        forget_method("broken")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("occlusion", {"window": 14, "stride": 14}),
        ("gradient", {}),
        ("integrated-gradients", {"steps": 4}),
        ("grad-cam", {}),
        ("igos++", {"size": 7, "iterations": 1, "steps": 2}),
    ],
)
def test_half_precision_is_near_and_leaves_the_model_alone(name, options):
    net, images = trained("resnet"), suffice.open_images("scenes:test[:2]")
    before = {key: (value.dtype, value.requires_grad) for key, value in net.module.named_parameters()}
    exact, rough = (attribute(net, images, name, precision=p, **options).maps for p in ("fp32", "bf16"))
    assert rough.dtype == torch.float32
    assert not torch.equal(rough, exact)
    assert torch.nn.functional.cosine_similarity(rough.flatten(1), exact.flatten(1)).min() > 0.98
    assert before == {key: (value.dtype, value.requires_grad) for key, value in net.module.named_parameters()}


def test_sums_of_gradients_are_exact_where_the_module_is_in_half_precision():
    nets = [small_cnn(), small_cnn(torch.float16)]
    for net in nets:
        net.module.head[2].weight.data *= 0.1  # gradients of such a size that fp16 does not hold their squares
    options = {"samples": 3, "variant": "squared"}
    full, half = (attribute(net, pictures(2), "smoothgrad", 1, **options).maps.flatten(1) for net in nets)
    assert torch.nn.functional.cosine_similarity(half, full).min() > 0.99


@pytest.mark.parametrize("name", ["cgw2", "tam", "bt-h", "bt-t", "attention-grad-cam"])
def test_half_precision_of_transformers_is_near(name):
    net, images = trained("deit"), suffice.open_images("scenes:test[:2]")
    options = {"steps": 4} if "steps" in find_method(name).options else {}
    exact, rough = (attribute(net, images, name, precision=p, **options).maps.flatten(1) for p in ("fp32", "bf16"))
    assert not torch.equal(rough, exact)
    assert torch.nn.functional.cosine_similarity(rough, exact).min() > 0.99


@pytest.mark.parametrize(
    ("name", "options"),
    [("gradient", {}), ("rise", {"masks": 9}), ("eea", {"mode": "scratch", "steps": 1}), ("grad-cam", {})],
)
def test_autocast_around_a_call_changes_nothing(name, options):
    net, images = small_cnn(), pictures(2)
    expected = attribute(net, images, name, **options)
    with torch.autocast("cpu", torch.bfloat16):
        found = attribute(net, images, name, **options)
        assert torch.is_autocast_enabled("cpu")
    torch.testing.assert_close(found.maps, expected.maps)
    torch.testing.assert_close(found.confidences, expected.confidences)


def test_relevance_is_not_for_lower_precision():
    net, images = trained("deit"), suffice.open_images("scenes:test[:1]")
    for name, precision in itertools.product(("cgw1", "partial-lrp"), ("tf32", "bf16", "fp16")):
        with pytest.raises(OptionError, match=f"{name} divides by sums near 0"):
            attribute(net, images, name, precision=precision)
    with pytest.raises(OptionError, match="grad-cam looks inside the model"):
        attribute(net, images, "grad-cam", compile=True)


def test_methods_that_run_a_module_as_it_is_say_so():
    net, images = small_cnn(), pictures(1)
    bright = suffice.from_function(lambda model, inputs, targets: inputs.abs(), "bright")
    for asked in ({"precision": "bf16"}, {"compile": True}):
        with pytest.raises(OptionError, match="bright runs a module as it is"):
            attribute(net, images, bright, **asked)
    runner = Runner(net, precision="bf16")
    assert attribute(net, images, bright, runner=runner).about["precision"] == "fp32"
    assert attribute(net, images, "rise", runner=runner, masks=9).about["precision"] == "bf16"


# The whole compiler also works for the probe, in a test that always runs.
@pytest.mark.parametrize("backend", [pytest.param("inductor", marks=pytest.mark.slow), "aot_eager"])
def test_compiled_gradients_agree(backend, monkeypatch):
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    net, images = small_cnn(), pictures(3)
    # The whole compiler takes seconds for each function.
    name, options = {
        "inductor": ("integrated-gradients", {"steps": 3}),
        "aot_eager": ("igos++", {"size": 7, "iterations": 2, "steps": 3}),
    }[backend]
    plain = attribute(net, images, name, batch_size=8, **options).maps
    compiled = attribute(net, images, name, batch_size=8, compile=True, **options).maps
    assert torch.allclose(compiled, plain, rtol=1e-3, atol=1e-3 * float(plain.abs().max()))
    assert not any(parameter.grad is not None for parameter in net.module.parameters())


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


def test_a_runner_serves_many_calls():
    net, images = small_cnn(), pictures()
    runner = Runner(net, batch_size=3, precision="bf16")
    shared = [attribute(net, images, "occlusion", window=8, stride=8, runner=runner).maps for _ in range(2)]
    alone = attribute(net, images, "occlusion", window=8, stride=8, batch_size=3, precision="bf16").maps
    for found in shared:
        torch.testing.assert_close(found, alone)
    relevant = attribute(net, images, "gradient", runner=runner.variant("inside"))
    torch.testing.assert_close(relevant.maps, attribute(net, images, "gradient", precision="bf16").maps)


@pytest.mark.parametrize(
    ("name", "options", "forwards", "backwards"),
    [
        ("gradient", {}, 1, 1),
        ("integrated-gradients", {"steps": 7}, 7, 7),
        ("integrated-gradients", {"steps": 3, "baseline": "black+gray"}, 6, 6),
        ("smoothgrad", {"samples": 5}, 5, 5),
        ("grad-cam", {}, 1, 1),
        ("layer-cam", {}, 1, 1),
        ("hires-cam", {}, 1, 1),
        ("eigen-cam", {}, 1, 0),
        ("deep-lift", {}, 2, 1),
        ("deep-shap", {"baselines": "black+gray+blur"}, 6, 3),
        ("score-cam", {}, 1 + 12 + 1, 0),  # the features, every channel, and the whole image
        ("occlusion", {"window": 16, "stride": 16}, 4 + 1, 0),
        ("rise", {"masks": 9}, 9 + 1, 0),
        ("kernel-shap", {"samples": 8, "grid": 2}, 8 + 2, 0),  # the baseline, and the whole image
        ("kernel-shap", {"samples": 100, "grid": 2}, 2**4, 0),  # there are no more coalitions
        ("lime", {"samples": 9, "grid": 5}, 9, 0),
        ("i-gos", {"steps": 4, "iterations": 0}, 1, 0),  # the first loss
        ("igos++", {"steps": 3, "iterations": 1, "optimizer": "nag", "noise": 0}, 12, 12),
    ],
)
def test_forwards_and_backwards_are_counted(name, options, forwards, backwards):
    net, images = small_cnn(), pictures(2)
    assert net.anatomy  # found once, by a forward of its own
    assert find_method(name).incompatibility(net) is None  # so is that
    runner = Runner(net, batch_size=8)
    seen = []
    net.module.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    attribute(net, images, name, runner=runner, **options)
    assert (runner.counters.forwards, runner.counters.backwards) == (2 * forwards, 2 * backwards)
    if runner.variant(find_method(name).work).module is net.module:
        assert sum(seen) == 2 * (forwards + 1)  # one more for the prediction, which is not the method's


def test_functions_and_methods_pickle():
    assert pickle.loads(pickle.dumps(suffice.attribute)) is suffice.attribute
    for found in suffice.attribution.all_methods().values():
        assert pickle.loads(pickle.dumps(found.function)) is found.function


def test_signatures_can_be_completed():
    parameters = inspect.signature(suffice.attribute).parameters
    assert list(parameters)[:4] == ["net", "images", "method", "targets"]
    assert {"seed", "batch_size", "precision", "compile", "runner", "on_error", "on_progress"} <= set(parameters)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_images_that_cannot_be_read(tmp_path, on_error):
    for number, image in enumerate(pictures(2)):
        to_pil_image(image).save(tmp_path / f"{number}.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    net = small_cnn()
    if on_error == "raise":
        with pytest.raises(suffice.SufficeError, match=r"broken\.png"):
            attribute(net, tmp_path, "gradient")
        return
    found = attribute(net, tmp_path, "gradient", targets=[3, 0, 1], on_error="skip")
    assert len(found) == 2
    assert [s.name for s in found.skipped] == ["broken.png"]
    assert sorted(found.names) == ["0.png", "1.png"]
    order = [p.name for p in suffice.open_images(tmp_path)]
    assert found.targets.tolist() == [[3, 0, 1][order.index(name)] for name in found.names]


def test_progress_and_the_device_of_results():
    net, images = small_cnn(), pictures(5)
    seen = []
    found = attribute(net, images, "gradient", batch_size=2, on_progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5, 5)
    assert seen == sorted(seen)
    assert found.maps.device == images.device


def test_baselines_given_one_an_image_follow_their_images():
    net, images, black = small_cnn(), pictures(5), torch.zeros(5, 3, 32, 32)
    mixed = black.clone()
    mixed[3] = 1.0
    options = {"steps": 3, "batch_size": 2}
    plain = attribute(net, images, "integrated-gradients", baseline=black, **options).maps
    found = attribute(net, images, "integrated-gradients", baseline=mixed, **options).maps
    differs = (found - plain).flatten(1).abs().amax(dim=1) > 1e-5
    assert differs.tolist() == [False, False, False, True, False]
    with pytest.raises(OptionError, match="2 baseline images were given for 5 images"):
        attribute(net, images, "integrated-gradients", baseline=black[:2], **options)


def test_a_model_without_gradients_is_refused():
    oracle = AnyOf([(3,)], grid=4)
    net = oracle.classifier(32)

    class Cut(torch.nn.Module):
        def forward(self, x):
            return net.module(x).detach()

    cut = Classifier(Cut(), size=32, mean=net.mean, std=net.std, score=net.score)
    with pytest.raises(OptionError, match="no gradient"):
        attribute(cut, oracle.image(32), "gradient")


def test_installed_packages_are_looked_through_once(monkeypatch):
    from importlib import metadata

    import suffice

    before = suffice.attribution.all_methods(), suffice.metrics.all_metrics()
    monkeypatch.setattr(metadata, "distributions", lambda **_: pytest.fail("looked through again"))
    assert (suffice.attribution.all_methods(), suffice.metrics.all_metrics()) == before


def test_a_word_of_ours_that_is_nearly_right_is_suggested():
    with pytest.raises(OptionError, match=r"attribute has no argument 'target'\. Did you mean targets=\?"):
        suffice.attribute(small_cnn(), pictures(1), "gradient", target=1)
    with pytest.raises(OptionError, match=r"attribute has no argument 'target'\. Did you mean targets=\?"):
        suffice.attribute(small_cnn(), pictures(1), ["gradient", "grad-cam"], target=1)
    with pytest.raises(OptionError, match="None of gradient, grad-cam has an option 'colour'"):
        suffice.attribute(small_cnn(), pictures(1), ["gradient", "grad-cam"], colour=1)
    with pytest.raises(OptionError, match="gradient has no option 'colour'; its options are"):
        suffice.attribute(small_cnn(), pictures(1), "gradient", colour=1)


def test_no_images_are_said_so():
    net = AnyOf([(5,)], grid=4).classifier(32)
    with pytest.raises(OptionError, match="no images"):
        attribute(net, suffice.open_images(torch.rand(2, 3, 32, 32))[:0], "gradient")
