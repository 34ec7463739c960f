"""Batch normalization folded into convolutions: the same numbers, only where nothing else would notice."""

import copy

import pytest
import timm
import torch
import torchvision
from torch import nn

import suffice
from suffice.perturb import Runner
from suffice.perturb.folding import fold, fold_if_exact, foldable
from suffice.testing.snapshots import model_state
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, small_cnn


def lived_in(module):
    """Statistics and weights as after training, so that folding has something to do."""
    generator = torch.Generator().manual_seed(0)
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm2d, nn.BatchNorm1d)) and part.running_mean is not None:
            for values, low, high in (
                (part.running_mean, -0.3, 0.3),
                (part.running_var, 0.5, 2.0),
                (part.weight.data, 0.5, 1.5),
                (part.bias.data, -0.3, 0.3),
            ):
                values.copy_(low + (high - low) * torch.rand(values.shape, generator=generator))
    return module.eval()


MODELS = {
    "resnet18": (lambda: timm.create_model("resnet18", num_classes=7), 64, 20),
    "mobilenetv3": (lambda: timm.create_model("mobilenetv3_small_100", num_classes=7), 64, 34),
    "efficientnet": (lambda: timm.create_model("efficientnet_b0", num_classes=7), 64, 49),
    "torchvision": (lambda: torchvision.models.resnet18(num_classes=7), 64, 20),
    "convnext-bn": (lambda: suffice.load("zoo/convnext-3-bn", pretrained=False, device="cpu").module, 56, None),
    "levit": (lambda: suffice.load("zoo/levit", pretrained=False, device="cpu").module, 56, None),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    torch.manual_seed(0)
    make, size, pairs = MODELS[request.param]
    return request.param, lived_in(make()), size, pairs


def inputs_of(size, dtype=torch.float32):
    return torch.randn(3, 3, size, size, generator=torch.Generator().manual_seed(1), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_folded_networks_say_the_same(model, dtype):
    name, module, size, count = model
    module = copy.deepcopy(module).to(dtype)
    inputs = inputs_of(size, dtype)
    pairs = foldable(module, inputs[:1])
    assert len(pairs) >= 1
    if count is not None:
        assert len(pairs) == count == sum(isinstance(part, nn.BatchNorm2d) for part in module.modules())
    folded = copy.deepcopy(module)
    with torch.no_grad():
        fold(folded, pairs)
        expected, found = module(inputs), folded(inputs)
    norms = {norm for _, norm in pairs}
    assert not any(isinstance(folded.get_submodule(norm), nn.BatchNorm2d) for norm in norms)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance * float(expected.abs().max()))
    assert expected.std() > 0, name


def test_looking_for_pairs_and_running_leaves_the_module_bit_for_bit(model):
    _, module, size, _ = model
    net = Classifier(module, size=size, mean=MEAN, std=STD, name="folded")
    module.train()
    before = model_state(net)
    runner = Runner(net)
    assert runner.module is not module
    runner.logits(inputs_of(size))
    assert model_state(net) == before
    module.eval()
    with torch.no_grad():
        torch.testing.assert_close(runner.logits(inputs_of(size)), module(inputs_of(size)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_it_is_folded_before_it_is_rounded(precision, dtype):
    net = small_cnn()
    lived_in(net.module)
    runner = Runner(net, precision=precision)
    folded = copy.deepcopy(net.module)
    with torch.no_grad():
        fold(folded, [("first.0", "first.1")])
    assert runner.module.first[0].weight.dtype == dtype
    torch.testing.assert_close(runner.module.first[0].weight, folded.first[0].weight.to(dtype))
    torch.testing.assert_close(runner.module.first[0].bias, folded.first[0].bias.to(dtype))


def test_variants_that_look_inside_are_not_folded():
    runner = Runner(small_cnn())
    assert isinstance(runner.module.first[1], nn.Identity)
    for work in ("inside", "gradients inside", "relevance"):
        assert isinstance(runner.variant(work).module.first[1], nn.BatchNorm2d), work
    assert isinstance(Runner(small_cnn(), fold=False).module.first[1], nn.BatchNorm2d)


class Net(nn.Module):
    """A convolution, a normalization, and what else happens to the tensor between them."""

    def __init__(self, norm=None, convolution=None):
        super().__init__()
        self.conv = convolution or nn.Conv2d(3, 3, 3, padding=1)
        self.norm = norm or nn.BatchNorm2d(3)

    def forward(self, x):
        return self.norm(self.conv(x)).mean(dim=(2, 3))


class ReadTwice(Net):
    def forward(self, x):
        between = self.conv(x)
        return (self.norm(between) + between).mean(dim=(2, 3))


class ReadTwiceThroughAView(Net):
    def forward(self, x):
        between = self.conv(x)
        return self.norm(between).mean(dim=(2, 3)) + between.flatten(2).amax(dim=2)


class LeavesTheModel(Net):
    """What is put out is read by the caller, though by no operation."""

    def forward(self, x):
        between = self.conv(x)
        return {"logits": self.norm(between).mean(dim=(2, 3)), "features": [between]}


class ConvolvesTwice(Net):
    def forward(self, x):
        return self.norm(self.conv(self.conv(x))).mean(dim=(2, 3))


class NormalizesTwice(Net):
    def forward(self, x):
        return self.norm(self.norm(self.conv(x))).mean(dim=(2, 3))


class ChangedInBetween(Net):
    def forward(self, x):
        return self.norm(self.conv(x).relu()).mean(dim=(2, 3))


class ChangedInPlace(Net):
    def forward(self, x):
        return self.norm(self.conv(x).relu_()).mean(dim=(2, 3))


class Shared(Net):
    """One normalization behind two convolutions."""

    def __init__(self):
        super().__init__()
        self.other = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        return (self.norm(self.conv(x)) + self.norm(self.other(x))).mean(dim=(2, 3))


class UsesItsWeights(Net):
    def forward(self, x):
        return self.norm(self.conv(x)).mean(dim=(2, 3)) + self.conv.weight.mean()


class Standardized(nn.Conv2d):
    """Does something to its weights first."""

    def forward(self, x):
        return nn.functional.conv2d(x, self.weight - self.weight.mean(), self.bias, padding=1)


class OwnNorm(nn.BatchNorm2d):
    def forward(self, x):
        return super().forward(x) * 2


def hooked(which, kind="register_forward_hook"):
    net = Net()
    getattr(getattr(net, which), kind)(lambda *_: None)
    return net


NOT_FOLDED = {
    "its output is read twice": ReadTwice,
    "its output is read twice, once through a view": ReadTwiceThroughAView,
    "the convolution is called twice": ConvolvesTwice,
    "the normalization is called twice": NormalizesTwice,
    "the normalization is shared": Shared,
    "an operation lies between them": ChangedInBetween,
    "an operation in place lies between them": ChangedInPlace,
    "there are no running statistics": lambda: Net(nn.BatchNorm2d(3, track_running_stats=False)),
    "the convolution has a hook": lambda: hooked("conv"),
    "the convolution has a hook before it": lambda: hooked("conv", "register_forward_pre_hook"),
    "the normalization has a hook": lambda: hooked("norm"),
    "the normalization has a hook before it": lambda: hooked("norm", "register_forward_pre_hook"),
    "the convolution is of another kind": lambda: Net(convolution=Standardized(3, 3, 3)),
    "the normalization is of another kind": lambda: Net(norm=OwnNorm(3)),
    "its output leaves the model": LeavesTheModel,
    "its weights are read elsewhere": UsesItsWeights,
}


@pytest.mark.parametrize("case", NOT_FOLDED)
def test_pairs_are_left_alone_where(case):
    module = lived_in(NOT_FOLDED[case]())
    inputs = torch.rand(2, 3, 8, 8)
    assert foldable(module, inputs) == [], case


@pytest.mark.parametrize(
    "make",
    [
        Net,
        lambda: Net(nn.BatchNorm2d(3, affine=False)),
        lambda: Net(convolution=nn.Conv2d(3, 3, 3, bias=False)),
        lambda: Net(convolution=nn.Conv2d(3, 3, 3, groups=3, stride=2)),
        lambda: Net(convolution=nn.ConvTranspose2d(3, 3, 2, stride=2)),
    ],
)
def test_pairs_of_all_kinds_are_folded(make):
    module = make().double().eval()
    module.norm.running_mean.uniform_(-1, 1)
    module.norm.running_var.uniform_(0.5, 2)
    inputs = torch.rand(2, 3, 8, 8, dtype=torch.float64)
    expected = module(inputs)
    assert foldable(module, inputs) == [("conv", "norm")]
    with torch.no_grad():
        fold(module, [("conv", "norm")])
    torch.testing.assert_close(module(inputs), expected, rtol=1e-9, atol=1e-9)
    assert isinstance(module.norm, nn.Identity)


class AsksForTheClass(Net):
    def forward(self, x):
        maps = self.conv(x)
        return (self.norm(maps) if isinstance(self.norm, nn.BatchNorm2d) else 5 * maps).flatten(1)


class AsksForAnAttribute(Net):
    def forward(self, x):
        return (self.norm(self.conv(x)) / self.norm.num_features).flatten(1)


@pytest.mark.parametrize("make", [AsksForTheClass, AsksForAnAttribute])
def test_a_model_that_says_something_else_without_its_normalization_keeps_it(make):
    module = lived_in(make())
    net, images = Classifier(module, size=8, mean=MEAN, std=STD), torch.rand(2, 3, 8, 8)
    assert foldable(module, images) == [("conv", "norm")]
    runner, before = Runner(net), model_state(net)
    torch.testing.assert_close(runner.scores(images), net(images).detach(), rtol=1e-5, atol=1e-6)
    assert type(runner.module.norm) is nn.BatchNorm2d
    assert model_state(net) == before


def test_a_model_that_says_nan_is_folded_all_the_same():
    module = lived_in(Net())
    module.conv.weight.data[0] = torch.nan
    fold_if_exact(module, [("conv", "norm")], torch.rand(2, 3, 8, 8))
    assert isinstance(module.norm, nn.Identity)


def test_weights_that_two_convolutions_share():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.Flatten())
    module[2].weight = module[0].weight
    net = Classifier(lived_in(module), size=12, mean=MEAN, std=STD, name="shared")
    inputs = torch.rand(2, 3, 12, 12)
    with torch.no_grad():
        torch.testing.assert_close(Runner(net).logits(inputs), module(inputs), rtol=1e-4, atol=1e-5)


def test_an_activation_of_the_normalization_stays():
    norm = timm.layers.BatchNormAct2d(3, act_layer=nn.SiLU)
    module = Net(norm=norm).double()
    lived_in(module)
    inputs = torch.rand(2, 3, 8, 8, dtype=torch.float64)
    expected = module(inputs)
    with torch.no_grad():
        fold(module, foldable(module, inputs))
    torch.testing.assert_close(module(inputs), expected, rtol=1e-9, atol=1e-9)
    assert any(isinstance(part, nn.SiLU) for part in module.norm)
