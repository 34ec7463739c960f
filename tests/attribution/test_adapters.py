"""Methods of other packages, and ours for others."""

import captum.attr as captum
import numpy as np
import pytest
import torch

import suffice
from suffice.errors import OptionError
from tests.attribution.nets import pictures, small_cnn

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
        return (self.reshape(self.seen).mean(dim=1) * scale).detach().numpy()


def test_cams_of_pytorch_grad_cam_get_layer_layout_and_targets():
    net = small_cnn()
    found = suffice.attribute(net, IMAGES, suffice.from_cam(FakeCAM), TARGETS)
    with torch.no_grad():
        inputs = net.normalize(IMAGES)
        maps = net.module.second(net.module.first(inputs)).mean(dim=1)
        logits = net.module(inputs).gather(1, torch.tensor(TARGETS)[:, None])
    torch.testing.assert_close(found.maps, maps * logits[:, :, None])


def test_a_function_may_return_channels_arrays_or_maps():
    net = small_cnn()

    def slopes(model, inputs, targets):
        inputs.requires_grad_()
        said = model(inputs).gather(1, targets[:, None]).sum()
        return torch.autograd.grad(said, inputs)[0]

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
    with pytest.raises(OptionError, match="Expected inputs"):
        explain(net.module, inputs, TARGETS[:2])
