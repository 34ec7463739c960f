"""The miniatures: of timm's own make, alike in size, trainable, and understood by the anatomy."""

import pytest
import timm
import torch
from torch import nn
from torch.nn import functional as F

from suffice.errors import OptionError, UnknownModel
from suffice.vision.anatomy import describe, record
from suffice.vision.families import default_family
from suffice.zoo import variants
from suffice.zoo.architectures import ARCHITECTURES, build

NAMES = [
    *("vgg", "resnet", "resnet-aug", "convnext", "convnext-3", "convnext-3-bn", "convnext-3-gn"),
    *("swin", "swin-4", "swin-4-bn", "swin-4-gn", "nest"),
    *("deit", "deit-distilled", "pit", "pit-distilled", "levit"),
]
# One network under two recipes, and others with one norm or kernel for another, of which one of each kind is enough.
VARIANTS = ("resnet-aug", "convnext-3", "convnext-3-gn", "swin-4", "swin-4-gn")
EACH = [pytest.param(name, marks=[pytest.mark.slow] if name in VARIANTS else []) for name in NAMES]
DISTILLED = ["deit-distilled", "pit-distilled", "levit"]
# The grid of the target layer, tokens before the patches, and the number of attention layers.
PARTS = {
    "vgg": ((14, 14), 0, 0),
    "resnet": ((7, 7), 0, 0),
    "convnext": ((7, 7), 0, 0),
    "swin": ((7, 7), 0, 4),
    "nest": ((7, 7), 0, 4),
    "deit": ((14, 14), 1, 4),
    "deit-distilled": ((14, 14), 2, 4),
    "pit": ((7, 7), 1, 4),
    "pit-distilled": ((7, 7), 2, 4),
    "levit": ((4, 4), 0, 5),  # one of them in the downsampling
}


def made(name: str, **options: int) -> nn.Module:
    torch.manual_seed(0)
    return build(name, **options)


def loss_of(net: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(net(pixels), labels)


def train_a_step(net: nn.Module, pixels: torch.Tensor, labels: torch.Tensor, rate: float) -> float:
    loss = loss_of(net, pixels, labels)
    net.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter -= rate * parameter.grad
    return loss.item()


def test_the_set_mirrors_the_paper():
    assert list(ARCHITECTURES) == NAMES
    originals = [name for known in ARCHITECTURES.values() for name in known.stands_for]
    assert len(originals) == len(set(originals)) == 13 + 6
    trained = [name for name in originals if "." in name]
    assert len(trained) == 13
    assert set(trained) <= set(timm.list_pretrained())
    assert {name for name in originals if "." not in name} == set(timm.list_models(module="variants"))
    assert variants.__name__ == "suffice.zoo.variants"


@pytest.mark.parametrize("name", NAMES)
def test_facts(name):
    known = ARCHITECTURES[name]
    assert known.name == name
    assert {default_family(f"timm/{original}") for original in known.stands_for} == {known.family}
    assert known.distilled == (name in DISTILLED)
    assert known.augmented == (name not in ("vgg", "resnet"))


@pytest.mark.parametrize("name", NAMES)
def test_made_by_timm_and_of_like_size(name):
    net = made(name)
    assert type(net).__module__.startswith("timm.models.")
    with torch.device("meta"):  # without memory for its weights
        original = timm.create_model(ARCHITECTURES[name].stands_for[0].partition(".")[0], pretrained=False)
    assert type(net) is type(original)
    # Those whose 196 tokens all attend to each other are narrower.
    fewest = 0.2e6 if name.startswith("deit") else 0.4e6
    assert fewest < sum(p.numel() for p in net.parameters()) < 0.8e6


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize(("classes", "size"), [(16, 56), (100, 64)])
def test_images_of_both_sizes(name, classes, size):
    net = made(name, num_classes=classes, size=size).eval()
    with torch.inference_mode():
        assert net(torch.randn(2, 3, size, size)).shape == (2, classes)


def test_impossible_requests():
    with pytest.raises(UnknownModel, match=r"Did you mean .*zoo/convnext-3\b"):
        build("convnext-4")
    for size in (24, 57, 60):
        with pytest.raises(OptionError, match="multiple of 8"):
            build("nest", size=size)


@pytest.mark.parametrize("name", EACH)
def test_learns(name):
    net = made(name).train()
    pixels, labels = torch.randn(8, 3, 56, 56), torch.arange(8)
    before = train_a_step(net, pixels, labels, rate=0.01)
    after = train_a_step(net, pixels, labels, rate=0.01)
    assert after < before
    # The step has moved the gains that start at zero, behind which nothing was learned at first.
    loss_of(net, pixels, labels).backward()
    for key, parameter in net.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.abs().max() > 0, key


@pytest.mark.parametrize("name", EACH)
def test_evaluation_repeats_itself_and_sees_each_image_alone(name):
    net = made(name)
    pixels = torch.randn(4, 3, 56, 56)
    with torch.no_grad():
        net.train()(pixels * 2 + 1)  # so that running statistics are not those of a fresh network
        net.eval()
        together = net(pixels)
        torch.testing.assert_close(net(pixels), together)
        alone = torch.cat([net(one[None]) for one in pixels])
    torch.testing.assert_close(alone, together, atol=1e-5, rtol=1e-4)
    assert (together - together[:1])[1:].abs().max() > 1e-4


@pytest.mark.parametrize("name", EACH)
def test_bfloat16(name):
    pixels = torch.randn(2, 3, 56, 56)
    with torch.no_grad():
        exact = made(name).eval()(pixels)
        # A fresh one, because LeViT keeps the attention biases of its first evaluation, number format and all.
        rounded = made(name).eval().to(torch.bfloat16)(pixels.to(torch.bfloat16))
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.float(), exact, atol=0.03 * exact.abs().max().item() + 1e-3, rtol=0.05)


@pytest.mark.parametrize("name", DISTILLED)
def test_two_heads_while_training_their_mean_in_evaluation(name):
    net = made(name)
    pixels = torch.randn(4, 3, 56, 56)
    net.set_distilled_training(True)
    scores, teacher = net.train()(pixels)
    assert scores.shape == teacher.shape == (4, 16)
    assert (scores - teacher).abs().max() > 1e-4

    net.eval()
    # With batch statistics frozen, both heads again, and the mean that evaluation gives.
    mean = net(pixels)
    net.training = True
    scores, teacher = net(pixels)
    torch.testing.assert_close(mean, (scores + teacher) / 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [56, 64])
def test_anatomy(name, size):
    net = made(name, size=size).eval()
    anatomy = describe(net, (size, size))
    known = name if name in PARTS else name.partition("-")[0]
    grid, prefix, attention = PARTS[known]
    if size == 64:
        grid = {(14, 14): (16, 16), (7, 7): (8, 8), (4, 4): (4, 4)}[grid]
    assert anatomy.grid(anatomy.target_layer) == grid
    assert anatomy.prefix_tokens == prefix
    assert len(anatomy.attention) == attention

    pixels = torch.randn(2, 3, size, size)
    with record(net, activations=[anatomy.target_layer], attention=anatomy.attention, gradients=True) as seen:
        best = net(pixels).max(dim=1).values
        slopes = seen.gradients(best)
    maps = anatomy.maps(anatomy.target_layer, slopes.activations[anatomy.target_layer])
    assert maps.abs().sum() > 0
    for layer in anatomy.attention:
        weights = seen.attention[layer]
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))


def test_windows_are_as_named():
    for name, windows in {"swin": {7}, "swin-4": {4}, "swin-4-bn": {4}, "swin-4-gn": {4}}.items():
        assert {block.window_size[0] for stage in made(name).layers for block in stage.blocks} == windows
        assert [block.shift_size[0] > 0 for block in made(name).layers[0].blocks] == [False, True]


def test_kernels_are_as_named():
    for name, side in {"convnext": 7, "convnext-3": 3, "convnext-3-bn": 3, "convnext-3-gn": 3}.items():
        net = made(name)
        assert {block.conv_dw.kernel_size for stage in net.stages for block in stage.blocks} == {(side, side)}


def test_resnet_has_no_dilation():
    assert {part.dilation for part in made("resnet").modules() if isinstance(part, nn.Conv2d)} == {(1, 1)}


def test_resnets_are_one_network_under_two_recipes():
    plain, augmented = made("resnet").state_dict(), made("resnet-aug").state_dict()
    assert all(torch.equal(plain[key], augmented[key]) for key in plain | augmented)
