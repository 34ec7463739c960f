"""DeepLIFT and DeepSHAP against Captum, and that contributions add up wherever they must."""

import copy

import captum.attr as captum
import pytest
import timm
import torch
from torch import nn
from torch.nn import functional as F

import suffice
from suffice.attribution import attribute, list_methods
from suffice.errors import AnatomyError, OptionError
from suffice.perturb import Batch, Runner
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, TutorialCNN, pictures

IMAGES, TARGETS = pictures(), [1, 4, 2]


def wrapped(module, size=32, dtype=torch.float64):
    return Classifier(module.to(dtype).eval(), size=size, mean=MEAN, std=STD, name="net")


def plain(activation=nn.ReLU):
    """A network that Captum can follow.

    Every activation is a module of its own, windows do not overlap, and something linear stands between an activation
    and a pooling: where they follow each other directly, contributions that Captum 0.9 finds do not add up.
    """
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, padding=1), activation(), nn.BatchNorm2d(8), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(8, 12, 3, padding=1), activation(), nn.BatchNorm2d(12), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(12, 12, 3), activation(), nn.AdaptiveAvgPool2d(3), nn.Flatten()]
    layers += [nn.Linear(108, 16), activation(), nn.Linear(16, 5)]
    for norm in (layers[2], layers[6]):
        norm.running_mean.uniform_(-0.2, 0.2), norm.running_var.uniform_(0.5, 2)
    return wrapped(nn.Sequential(*layers))


def agree(ours, theirs):
    assert theirs.abs().max() > 0
    assert (ours - theirs).abs().max() <= 1e-5 * theirs.abs().max()


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Sigmoid, nn.Tanh, nn.ELU, nn.Softplus, nn.LeakyReLU])
def test_deep_lift_equals_that_of_captum(activation):
    net = plain(activation)
    inputs, black = (net.normalize(pixels.double()) for pixels in (IMAGES, torch.zeros_like(IMAGES)))
    theirs = captum.DeepLift(net.module).attribute(inputs, black, TARGETS).detach()
    agree(attribute(net, IMAGES, "deep-lift", TARGETS).maps, theirs.sum(dim=1))
    agree(attribute(net, IMAGES, "deep-lift", TARGETS, reduction="sum-abs").maps, theirs.abs().sum(dim=1))


def test_deep_shap_equals_that_of_captum():
    net, others = plain(), pictures(4, seed=9)
    theirs = captum.DeepLiftShap(net.module).attribute(
        net.normalize(IMAGES.double()), net.normalize(others.double()), TARGETS
    )
    agree(attribute(net, IMAGES, "deep-shap", TARGETS, baselines=others).maps, theirs.detach().sum(dim=1))
    both = attribute(net, IMAGES, "deep-shap", TARGETS, baselines="black+gray").maps
    each = [attribute(net, IMAGES, "deep-lift", TARGETS, baseline=name).maps for name in ("black", "gray")]
    torch.testing.assert_close(both, (each[0] + each[1]) / 2)
    torch.testing.assert_close(both, attribute(net, IMAGES, "deep-shap", TARGETS, baselines=["gray", "black"]).maps)
    with pytest.raises(OptionError, match="empty"):
        attribute(net, IMAGES, "deep-shap", baselines=[])


class Reused(nn.Module):
    """The plain network with one activation for all its places, or functions, in place or not."""

    def __init__(self, layers, activation):
        super().__init__()
        self.layers, self.activation = layers, activation

    def forward(self, x):
        for layer in self.layers:
            x = self.activation(x) if isinstance(layer, nn.ReLU) else layer(x)
        return x


@pytest.mark.parametrize(
    "activation",
    [nn.ReLU(), nn.ReLU(inplace=True), F.relu, torch.relu, torch.relu_, torch.Tensor.relu_, lambda x: x.clamp(min=0)],
    ids=["module", "in place", "F.relu", "torch.relu", "torch.relu_", "relu_", "clamp"],
)
def test_it_makes_no_difference_how_an_activation_is_written(activation):
    net = plain()
    expected = attribute(net, IMAGES, "deep-lift", TARGETS).maps
    again = wrapped(Reused(net.module, activation))
    torch.testing.assert_close(attribute(again, IMAGES, "deep-lift", TARGETS).maps, expected)


class Gated(nn.Module):
    """A product of two things that depend on the image, and a quotient of two more."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 1)
        self.norm, self.head = nn.GroupNorm(2, 6), nn.Linear(6, 5)

    def forward(self, x):
        x = F.silu(self.norm(self.first(x)), inplace=True)
        x = x * self.second(x.mean((2, 3), keepdim=True)).sigmoid()
        x *= torch.einsum("bchw,bchw->bc", x, x)[:, :, None, None]
        x = x.mean((2, 3))
        return self.head(x / (2 + x.square().sum(dim=1, keepdim=True)).sqrt()) * 10


def transformer():
    return timm.models.VisionTransformer(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2, num_classes=5)


NETWORKS = {
    "functions and one pool for all": (TutorialCNN, 32),
    "in place, with windows that overlap": (lambda: timm.create_model("resnet10t", num_classes=5), 64),
    "products": (Gated, 32),
    "squeeze and excitation": (lambda: timm.create_model("mobilenetv3_small_050", num_classes=5), 64),
    "layer normalization": (lambda: timm.create_model("convnext_atto", depths=(1, 1, 1, 1), num_classes=5), 64),
    "attention": (transformer, 32),
    "attention in windows": (
        lambda: timm.models.SwinTransformer(
            img_size=32, patch_size=2, window_size=4, embed_dim=12, depths=(1, 2), num_heads=(2, 2), num_classes=5
        ),
        32,
    ),
}


@pytest.mark.parametrize("output", ["logit", "score"])
@pytest.mark.parametrize("kind", NETWORKS)
def test_contributions_add_up(kind, output):
    make, size = NETWORKS[kind]
    torch.manual_seed(0)
    module = make()
    for parameter in module.parameters():  # beyond the small numbers of the first epoch
        parameter.data += 0.05 * torch.randn_like(parameter)
    net, images = wrapped(module, size), pictures(3, size)
    found = attribute(net, images, "deep-lift", TARGETS, baseline="gray", output=output).maps.double()
    batch = Batch(net, images, torch.tensor(TARGETS), list("abc"), 0, Runner(net))
    with torch.no_grad():
        whole, nothing = (batch.outputs(net.normalize(p), output) for p in (images, batch.baseline("gray")))
    differences = (whole - nothing).double()
    assert (differences.abs() > 1e-6).all()
    missing = (found.sum(dim=(1, 2)) - differences).abs()
    assert (missing <= 1e-4 * differences.abs() + 1e-5 * found.abs().sum(dim=(1, 2))).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_modules_in_half_precision_have_the_maps_of_their_weights_in_single_precision(dtype):
    torch.manual_seed(0)
    module = transformer().to(dtype)
    expected = attribute(wrapped(copy.deepcopy(module), dtype=torch.float32), IMAGES, "deep-shap", TARGETS).maps
    agree(attribute(wrapped(module, dtype=dtype), IMAGES, "deep-shap", TARGETS).maps, expected)
    assert module.head.weight.dtype == dtype


def test_an_image_that_is_its_baseline_has_no_contributions():
    assert not attribute(plain(), IMAGES, "deep-lift", baseline=IMAGES).maps.any()


class Sorted(nn.Module):
    """Ends with something that has no rule, or hides what it does from autograd."""

    def __init__(self, how):
        super().__init__()
        self.how, self.head = how, nn.Linear(3, 5)

    def forward(self, x):
        return self.head(self.how(x).mean((2, 3))) * 100


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (lambda x: x.sort(dim=2).values.cumprod(dim=2), "it computes Cumprod"),
        (lambda x: x * (x > 0), "contributions do not add up"),
        (lambda x: torch.pow(x.abs() + 1, x), "pow has arguments that depend on the image"),
    ],
)
def test_what_has_no_rule_is_refused(how, reason):
    net = wrapped(Sorted(how))
    with pytest.raises(OptionError, match=f"deep-lift does not fit net: {reason}"):
        attribute(net, IMAGES, "deep-lift")
    assert not {"deep-lift", "deep-shap"} & set(list_methods(net=net))
    assert {"deep-lift", "deep-shap"} < set(list_methods(net=plain()))


def test_a_model_that_goes_another_way_is_refused():
    def another_way(x):
        return x.tanh() if x.mean() > 0.5 else x.exp()

    with pytest.raises(AnatomyError, match="another way for the image"):
        attribute(wrapped(Sorted(another_way)), 0.8 + 0.2 * IMAGES, "deep-lift", baseline="black")


def test_it_needs_no_anatomy():
    module = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 8), nn.ReLU(), nn.Linear(8, 5))
    maps = suffice.attribute(wrapped(module), IMAGES, "deep-lift").maps
    assert maps.shape == (3, 32, 32)
    assert maps.abs().max() > 0
