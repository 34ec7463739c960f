from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from suffice import Classifier, attribute
from suffice.errors import AnatomyError, OptionError
from suffice.vision.anatomy import Anatomy, Layout, describe, record, register_anatomy
from tests.attribution.nets import TutorialCNN


def test_facts(specimen):
    anatomy = describe(specimen.model(), specimen.size)
    assert anatomy.kind == ("transformer" if specimen.blocks else "cnn")
    assert anatomy.size == specimen.size
    assert anatomy.target_layer == specimen.target
    assert anatomy.prefix_tokens == specimen.prefix
    assert anatomy.read_tokens == specimen.read
    assert anatomy.token_grid == specimen.grid
    assert len(anatomy.blocks) == len(anatomy.attention) == len(anatomy.norms) == specimen.blocks
    if specimen.features:
        assert tuple(anatomy.grid(layer) for layer in anatomy.feature_layers) == specimen.features
    names = dict(specimen.model().named_modules())
    assert set(anatomy.layouts) <= set(names)
    assert set(anatomy.attention) <= set(names)


def test_blocks_are_in_order_of_execution(transformer):
    anatomy = describe(transformer.model(), transformer.size)
    ran: list[str] = []
    names = {part: name for name, part in transformer.model().named_modules()}
    handles = [
        transformer.model().get_submodule(block).register_forward_hook(lambda m, *_: ran.append(names[m]))
        for block in anatomy.blocks
    ]
    with record(transformer.model(), activations=[anatomy.blocks[0]]):
        transformer.logits(transformer.images())
    for handle in handles:
        handle.remove()
    assert tuple(ran) == anatomy.blocks


def test_maps_are_spatially_right(specimen):
    """A change in one corner of the image changes each map most in that corner."""
    anatomy = describe(specimen.model(), specimen.size)
    layers = list(dict.fromkeys([*anatomy.feature_layers, *anatomy.blocks, anatomy.target_layer]))
    if anatomy.kind == "cnn":  # late layers of these see the whole of a small image from everywhere
        layers = [layer for layer in layers if min(anatomy.grid(layer)) >= 8]
    assert layers
    before = specimen.images(1)
    height, width = specimen.size
    after = before.clone()
    # The top right corner: neither transposing nor flipping would go unnoticed.
    after[:, :, : height // 4, -width // 4 :] += 0.5
    maps = []
    for images in (before, after):
        with record(specimen.model(), activations=layers) as seen:
            specimen.logits(images)
        maps.append({layer: anatomy.maps(layer, seen.activations[layer]) for layer in layers})
    for layer in layers:
        h, w = anatomy.grid(layer)
        assert maps[0][layer].shape[2:] == (h, w)
        change = (maps[1][layer] - maps[0][layer]).abs().mean(1)[0]
        quarters = {
            "top left": change[: h // 2, : w // 2],
            "bottom left": change[(h + 1) // 2 :, : w // 2],
            "bottom right": change[(h + 1) // 2 :, (w + 1) // 2 :],
        }
        there = change[: h // 2, (w + 1) // 2 :].mean()
        for name, quarter in quarters.items():
            assert there > quarter.mean(), (layer, name)


def test_target_layer_has_gradient_at_every_position(specimen):
    anatomy = describe(specimen.model(), specimen.size)
    with record(specimen.model(), activations=[anatomy.target_layer], gradients=True) as seen:
        slopes = seen.gradients(specimen.logits(specimen.images())[:, 3])
    maps = anatomy.maps(anatomy.target_layer, slopes.activations[anatomy.target_layer])
    per_position = maps.abs().sum(1)
    assert (per_position > 0).float().mean() > 0.9  # a position may be the loser of a max pooling


def test_the_norms_come_before_the_attention(find):
    # With a class token, patch tokens after the last attention have no gradient; those before it have.
    specimen = find("vit")
    anatomy = describe(specimen.model(), specimen.size)
    layers = [anatomy.norms[-1], anatomy.blocks[-1]]
    with record(specimen.model(), activations=layers, gradients=True) as seen:
        slopes = seen.gradients(specimen.logits(specimen.images())[:, 3])
    before, after = (anatomy.tokens(layer, slopes.activations[layer]) for layer in layers)
    assert before.abs().amin(-1).max() > 0
    assert after.abs().max() == 0


@pytest.mark.parametrize("size", [64, 96, (96, 160)])
def test_sizes_follow_the_input(find, size):
    model = find("resnet").model()
    height, width = (size, size) if isinstance(size, int) else size
    anatomy = describe(model, size)
    assert anatomy.grid("layer4") == (height // 32, width // 32)


def test_a_size_the_model_cannot_take_is_an_error(find):
    with pytest.raises(AnatomyError, match="cannot process a blank image of shape"):
        describe(find("vit").model(), 80)
    with pytest.raises(OptionError, match="at least 1"):
        describe(find("vit").model(), 0)


def test_subclasses_are_recognized():
    from torchvision.models.resnet import BasicBlock, ResNet

    class Mine(ResNet):
        def forward(self, x):
            return super().forward(x).log_softmax(-1)

    assert describe(Mine(BasicBlock, [1, 1, 1, 1]), 64).target_layer == "layer4.0"


class Enlarging(nn.Module):
    """Normalizes, enlarges, and asks a known model."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x):
        return self.body(F.interpolate(x - 0.5, scale_factor=2))


def test_a_known_model_inside_another_is_described_by_its_full_names(find):
    anatomy = describe(Enlarging(find("swin").model()), 32)
    alone = describe(find("swin").model(), 64)
    assert anatomy.size == (32, 32)
    assert anatomy.target_layer == f"body.{alone.target_layer}"
    assert anatomy.attention == tuple(f"body.{name}" for name in alone.attention)
    assert anatomy.grid(anatomy.target_layer) == alone.grid(alone.target_layer)
    assert set(anatomy.layouts) == {f"body.{name}" for name in alone.layouts}


def test_two_known_models_inside_another_are_ambiguous(find):
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = find("vit").model(), find("tv-vit").model()

        def forward(self, x):
            return self.a(x) + self.b(x)

    with pytest.raises(AnatomyError, match=r"a, b"):
        describe(Both(), 64)


def squeeze_and_excite(channels: int) -> nn.Module:
    class SqueezeExcite(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels, 1), nn.Sigmoid())

        def forward(self, x):
            return x * self.gate(x)

    return SqueezeExcite()


def test_generic_cnn():
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 16, 3, padding=1),  # 16 channels on 16×16
        nn.BatchNorm2d(16),
        squeeze_and_excite(16),
        nn.AdaptiveAvgPool2d((7, 7)),
        nn.Dropout(),
        nn.Flatten(),
        nn.Linear(16 * 49, 10),
    )
    anatomy = describe(net, 32)
    assert anatomy.kind == "cnn"
    # "5" puts out 16 equal axes, so only layers that are channels-first by definition count there.
    assert anatomy.target_layer == "4"
    assert anatomy.feature_layers == ("1", "4")
    assert describe(net, 48).target_layer == "5"


def test_generic_cnn_passes_over_layers_that_run_several_times():
    anatomy = describe(TutorialCNN(), (32, 32))
    assert anatomy.target_layer == "second"  # not the pool behind it, which stands behind the first convolution too
    assert anatomy.feature_layers == ("first", "second")
    assert anatomy.grid("second") == (10, 10)


def test_generic_cnn_reads_a_densenet():
    from torchvision.models import DenseNet

    net = DenseNet(growth_rate=4, block_config=(1, 1), num_init_features=8, num_classes=10)
    anatomy = describe(net, 64)
    assert anatomy.target_layer == "features"
    assert [anatomy.grid(layer) for layer in anatomy.feature_layers] == [(32, 32), (16, 16), (8, 8)]


class Hybrid(nn.Module):
    """Attention over unfolded patches between two convolutions, as in MobileViT."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 4, 4)
        self.norm = nn.GroupNorm(1, 8)
        self.last = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        maps = self.first(x)
        tokens = self.norm(maps.flatten(2)[:, :, None])  # [N, C, 1, tokens]
        tokens = F.scaled_dot_product_attention(tokens.mT, tokens.mT, tokens.mT).mT
        return self.head(self.last(tokens.reshape_as(maps)).mean((2, 3)))


def test_attention_between_convolutions_is_no_obstacle():
    anatomy = describe(Hybrid(), 32)
    assert (anatomy.kind, anatomy.target_layer, anatomy.feature_layers) == ("cnn", "last", ("last",))
    assert anatomy.grid("last") == (8, 8)  # and not the 1×64 tokens of the norm
    net = Classifier(Hybrid(), size=32, mean=(0.5,) * 3, std=(0.5,) * 3, name="hybrid")
    assert attribute(net, torch.rand(2, 3, 32, 32), "grad-cam").maps.shape == (2, 8, 8)
    with pytest.raises(OptionError, match="rollout does not fit hybrid: no attention"):
        attribute(net, torch.rand(2, 3, 32, 32), "rollout")


class TokenMixer(nn.Module):
    """No attention, but tokens all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        return self.mix(self.patches(x).flatten(2).transpose(1, 2)).mean(1)


class ChannelsLast(TokenMixer):
    def forward(self, x):
        return self.mix(self.patches(x).permute(0, 2, 3, 1)).mean((1, 2))


class Attentive(TokenMixer):
    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        return F.scaled_dot_product_attention(tokens, tokens, tokens).mean(1)


@pytest.mark.parametrize(
    ("net", "why"),
    [
        (TokenMixer(), "tokens"),
        (ChannelsLast(), "channels-last"),
        (Attentive(), "attention"),
        (nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 10)), "no convolution"),
    ],
)
def test_unknown_structures_are_refused(net, why):
    with pytest.raises(AnatomyError, match=rf"{type(net).__name__}.*{why}.*register_anatomy\(test, describe\)"):
        describe(net, 8)


def test_registered_descriptions_come_first(monkeypatch):
    # The function of the same name hides the module as an attribute of its package.
    monkeypatch.setattr(sys.modules["suffice.vision.anatomy.describe"], "_registered", [])

    def describe_mixer(net: nn.Module, size: tuple[int, int]) -> Anatomy:
        layout = Layout("tokens", (size[0] // 4, size[1] // 4))
        return Anatomy("transformer", size, "mix", ("mix",), {"mix": layout})

    register_anatomy(lambda net: isinstance(net, TokenMixer), describe_mixer)
    net = nn.Sequential(TokenMixer())
    anatomy = describe(net, 8)
    with record(net, activations=["0.mix"]) as seen:
        net(torch.randn(1, 3, 8, 8))
    assert anatomy.maps("0.mix", seen.activations["0.mix"]).shape == (1, 8, 2, 2)


def test_recognizing_imports_no_library():
    code = (
        "import sys, torch\n"
        "from suffice.vision.anatomy import describe\n"
        "describe(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()), 8)\n"
        "print([name for name in ('timm', 'torchvision', 'transformers') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
