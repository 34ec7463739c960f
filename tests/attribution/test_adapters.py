"""Methods of other packages, and ours for others."""

from functools import partial

import captum.attr as captum
import numpy as np
import pytest
import torch

import suffice
from suffice.attribution import find_method
from suffice.errors import OptionError
from suffice.testing import CHECKS
from suffice.testing.snapshots import out_of_memory_above
from tests.attribution.nets import pictures, small_cnn
from tests.attribution.test_conformance import vision_transformer

IMAGES, TARGETS = pictures(), [1, 4, 2]


def test_captum_through_us_equals_captum():
    net = small_cnn()
    adapted = suffice.from_captum(captum.IntegratedGradients, n_steps=10)
    found = suffice.attribute(net, IMAGES, adapted, TARGETS, batch_size=2)
    theirs = captum.IntegratedGradients(net.logits).attribute(net.normalize(IMAGES), target=TARGETS, n_steps=10)
    torch.testing.assert_close(found.maps, theirs.sum(dim=1).float(), rtol=1e-4, atol=1e-6)
    assert found.settings["method"] == "captum.IntegratedGradients"
    tunnel = suffice.from_captum(lambda forward: captum.NoiseTunnel(captum.Saliency(forward)), nt_samples=2)
    assert suffice.attribute(net, IMAGES, tunnel).maps.shape == (3, 32, 32)


class FakeCAM:
    """A CAM with the interface of pytorch-grad-cam, whose map is the plain mean over channels."""

    def __init__(self, model, target_layers, reshape_transform=None):
        self.model, self.reshape = model, reshape_transform
        self.handle = target_layers[0].register_forward_hook(lambda m, i, o: setattr(self, "seen", o))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.handle.remove()

    def __call__(self, input_tensor, targets):
        outputs = self.model(input_tensor)
        picked = [target(output) for target, output in zip(targets, outputs, strict=True)]
        scale = torch.stack(picked)[:, None, None]
        return (self.reshape(self.seen).mean(dim=1) * scale).detach().cpu().numpy()


def test_cams_of_pytorch_grad_cam_get_layer_layout_and_targets():
    net = small_cnn()
    found = suffice.attribute(net, IMAGES, suffice.from_cam(FakeCAM), TARGETS)
    with torch.no_grad():
        inputs = net.normalize(IMAGES)
        maps = net.module.second(net.module.first(inputs)).mean(dim=1)
        logits = net.module(inputs).gather(1, torch.tensor(TARGETS)[:, None])
    torch.testing.assert_close(found.maps, maps * logits[:, :, None])


@pytest.mark.parametrize("net", [small_cnn, vision_transformer])
def test_cams_of_the_real_pytorch_grad_cam(net):
    cams = pytest.importorskip("pytorch_grad_cam", reason="needs the package grad-cam")
    net = net()
    found = suffice.attribute(net, IMAGES, suffice.from_cam(cams.GradCAM), TARGETS).maps
    ours = suffice.attribute(net, IMAGES, "grad-cam", TARGETS).resized()
    for theirs, own in zip(found, ours, strict=True):  # theirs is enlarged and stretched to [0, 1]
        assert theirs.shape == (32, 32)
        if own.max() > own.min():
            assert torch.corrcoef(torch.stack([theirs.flatten(), own.flatten()]))[0, 1] > 0.9


def tokens_as_maps(activation):
    """As users of pytorch-grad-cam write it: patch tokens without the class token, channels first."""
    return activation[:, 1:].reshape(len(activation), 4, 4, -1).permute(0, 3, 1, 2)


def called_directly(algorithm, net, **made):
    """Maps by pytorch-grad-cam alone, as its users call it."""
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    module = net.module
    last, reshape = (module.second, None) if hasattr(module, "second") else (module.blocks[1].norm1, tokens_as_maps)
    with algorithm(model=module, target_layers=[last], reshape_transform=reshape, **made) as cam:
        found = cam(input_tensor=net.normalize(IMAGES), targets=[ClassifierOutputTarget(target) for target in TARGETS])
    return torch.as_tensor(found)


@pytest.mark.parametrize("algorithm", ["GradCAM", "GradCAMPlusPlus", "AblationCAM"])
@pytest.mark.parametrize("net", [small_cnn, vision_transformer])
def test_pytorch_grad_cam_through_us_equals_pytorch_grad_cam(net, algorithm):
    cams = pytest.importorskip("pytorch_grad_cam", reason="needs the package grad-cam")
    net, algorithm = net(), getattr(cams, algorithm)
    names = [name for name, _ in net.module.named_modules()]
    found = suffice.attribute(net, IMAGES, suffice.from_cam(algorithm), TARGETS)
    assert [name for name, _ in net.module.named_modules()] == names
    tokens = algorithm is cams.AblationCAM and not hasattr(net.module, "second")
    theirs = called_directly(algorithm, net, **({"ablation_layer": cams.AblationLayerVit()} if tokens else {}))
    assert theirs.flatten(1).std(dim=1).max() > 0.1
    torch.testing.assert_close(found.maps, theirs, rtol=1e-4, atol=1e-5)


def test_arguments_of_the_class_are_given_by_a_partial():
    cams = pytest.importorskip("pytorch_grad_cam", reason="needs the package grad-cam")
    net = vision_transformer()
    whole = suffice.attribute(net, IMAGES, suffice.from_cam(cams.AblationCAM), TARGETS)
    chosen = partial(cams.AblationCAM, batch_size=5, ablation_layer=cams.AblationLayerVit())
    for algorithm in (partial(cams.AblationCAM, batch_size=5), chosen):
        found = suffice.attribute(net, IMAGES, suffice.from_cam(algorithm), TARGETS)
        torch.testing.assert_close(found.maps, whole.maps, rtol=1e-4, atol=1e-5)
        assert found.settings["method"] == "cam.AblationCAM"


class Swallowing(FakeCAM):
    """Meets an error that its context keeps to itself, as that of pytorch-grad-cam does."""

    def __exit__(self, kind, *_):
        super().__exit__()
        return kind is IndexError

    def __call__(self, input_tensor, targets):
        return input_tensor[0, 7]


def test_an_error_that_a_cam_keeps_to_itself_is_said():
    with pytest.raises(OptionError, match=r"cam\.Swallowing cannot read 'second' of small-cnn: index 7 is out"):
        suffice.attribute(small_cnn(), IMAGES, suffice.from_cam(Swallowing), TARGETS)


def test_a_layer_of_a_cam_is_given_by_its_name_or_as_a_module():
    net = small_cnn()
    last = suffice.attribute(net, IMAGES, suffice.from_cam(FakeCAM), TARGETS).maps
    for layer in ("second", net.module.second):
        assert torch.equal(suffice.attribute(net, IMAGES, suffice.from_cam(FakeCAM, layer=layer), TARGETS).maps, last)
    first = suffice.attribute(net, IMAGES, suffice.from_cam(FakeCAM, layer="first"), TARGETS).maps
    assert first.shape == (3, 16, 16)
    given = suffice.from_cam(FakeCAM, layer=net.module.first)
    assert torch.equal(suffice.attribute(net, IMAGES, given, TARGETS).maps, first)
    vit = vision_transformer()
    by_name = suffice.attribute(vit, IMAGES, suffice.from_cam(FakeCAM, layer="blocks.1.norm1"), TARGETS).maps
    given = suffice.from_cam(FakeCAM, layer=vit.module.blocks[-1].norm1)
    assert torch.equal(suffice.attribute(vit, IMAGES, given, TARGETS).maps, by_name)


def test_a_layer_that_a_cam_cannot_read_is_refused():
    for layer, message in (
        (small_cnn().module.second, "small-cnn .*a Sequential, is no part of this SmallCNN"),
        ("secnd", r"no module named 'secnd'\. Did you mean 'second'"),
        ("head", "how layer 'head' lays out its output is not known"),
    ):
        with pytest.raises(OptionError, match=message):
            suffice.attribute(small_cnn(), IMAGES, suffice.from_cam(FakeCAM, layer=layer))
    with pytest.raises(OptionError, match=r"layer=\[Sequential[^;]*; it can be a text, a Module or None"):
        suffice.from_cam(FakeCAM, layer=[small_cnn().module.second])


def slopes(model, inputs, targets):
    """Gradients, as one's own function would find them."""
    inputs.requires_grad_()
    scores = model(inputs).gather(1, targets[:, None]).sum()
    return torch.autograd.grad(scores, inputs)[0]


def adapted():
    """A method of each adapter, by name; those of packages that are not installed are missing."""
    found = {
        "function": suffice.from_function(slopes),
        "captum": suffice.from_captum(captum.IntegratedGradients, n_steps=3),
        "cam": suffice.from_cam(FakeCAM),
    }
    try:
        from pytorch_grad_cam import GradCAM
    except ImportError:
        return found
    return {**found, "pytorch-grad-cam": suffice.from_cam(GradCAM)}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("name", ["function", "captum", "cam", "pytorch-grad-cam"])
def test_adapters_keep_the_promises_of_methods(name, check):
    method, net = adapted().get(name), small_cnn()
    if method is None:
        pytest.skip("needs the package grad-cam")
    assert net.anatomy
    check(lambda net, images: suffice.attribute(net, images, method).maps, net, IMAGES, tolerance=1e-4)


@pytest.mark.parametrize("name", ["function", "cam"])
def test_adapters_on_transformers_where_memory_is_short(name):
    check, net = CHECKS["memory"], vision_transformer()
    assert net.anatomy
    check(lambda net, images: suffice.attribute(net, images, adapted()[name]).maps, net, IMAGES, tolerance=1e-4)


def test_explain_func_where_memory_is_short():
    net = small_cnn()
    inputs = net.normalize(IMAGES).numpy()
    explain = suffice.as_explain_func(net, "smoothgrad", samples=3)
    expected = explain(net.module, inputs, TARGETS)
    with out_of_memory_above(net.module, 2) as refused:
        np.testing.assert_allclose(explain(net.module, inputs, TARGETS), expected, rtol=1e-3, atol=1e-5)
    assert refused[0]


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        (captum.IntegratedGradients, {"n_steps": 9}),
        (lambda forward: captum.NoiseTunnel(captum.Saliency(forward)), {"nt_samples": 9}),
        (captum.Occlusion, {"sliding_window_shapes": (3, 16, 16)}),
    ],
)
def test_captum_puts_no_more_inputs_through_than_fit(algorithm, options):
    net, seen = small_cnn(), []
    net.module.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    suffice.attribute(net, IMAGES, suffice.from_captum(algorithm, **options), batch_size=4)
    assert max(seen) <= 4
    with out_of_memory_above(net.module, 2) as refused:
        suffice.attribute(net, IMAGES, suffice.from_captum(algorithm, **options))
    assert refused[0]


def test_what_is_asked_of_captum_is_done():
    net, seen = small_cnn(), []
    net.module.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    adapted = suffice.from_captum(captum.IntegratedGradients, n_steps=4, internal_batch_size=None)
    suffice.attribute(net, IMAGES, adapted, batch_size=4)
    assert max(seen) == 4 * 3


def test_adapters_say_what_they_need():
    assert suffice.from_function(slopes).work == "gradients"
    assert suffice.from_function(slopes, needs=()).work == "scores"
    assert suffice.from_captum(captum.Saliency).work == "gradients"
    assert suffice.from_cam(FakeCAM).work == "gradients inside"
    assert find_method(suffice.from_cam(FakeCAM)).name == "cam.FakeCAM"


def test_a_function_may_return_channels_arrays_or_maps():
    net = small_cnn()
    ours = suffice.attribute(net, IMAGES, "gradient", TARGETS, reduction="sum").maps
    found = suffice.attribute(net, IMAGES, suffice.from_function(slopes), TARGETS)
    torch.testing.assert_close(found.maps, ours)
    assert found.settings["method"] == "slopes"
    for shape in ((3, 1, 4, 4), (3, 4, 4)):
        method = suffice.from_function(lambda m, x, t, shape=shape: np.ones(shape))
        assert suffice.attribute(net, IMAGES, method).maps.shape == (3, 4, 4)
    with pytest.raises(OptionError, match="expected maps"):
        suffice.attribute(net, IMAGES, suffice.from_function(lambda m, x, t: x[:2, 0]))


def test_explain_func_for_quantus_also_with_another_module_and_noisy_inputs():
    net = small_cnn()
    explain = suffice.as_explain_func(net, "gradient", reduction="sum")
    inputs = net.normalize(IMAGES).numpy()
    maps = explain(net.module, inputs, np.array(TARGETS), device="cpu")
    expected = suffice.attribute(net, IMAGES, "gradient", TARGETS, reduction="sum").maps.numpy()
    np.testing.assert_allclose(maps, expected, rtol=1e-3, atol=1e-6)
    torch.manual_seed(5)
    other = type(net.module)().eval()
    assert not np.allclose(explain(other, inputs, TARGETS), maps, atol=1e-3)
    assert np.isfinite(explain(net.module, inputs + 10, TARGETS)).all()
    with pytest.raises(OptionError, match="no option"):
        suffice.as_explain_func(net, "gradient", steps=3)
    with pytest.raises(OptionError, match=r"rollout does not fit small-cnn: no attention .* These fit: .*gradient"):
        suffice.as_explain_func(net, "rollout")
    with pytest.raises(OptionError, match="Expected inputs"):
        explain(net.module, inputs, TARGETS[:2])
