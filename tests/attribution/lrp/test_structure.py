"""Which transformers have rules; the others are told by name."""

import pytest
import timm
import torch
import torchvision
from timm.models.vision_transformer import ParallelScalingBlock
from torch import nn

from suffice.attribution import attribute
from suffice.attribution.lrp.structure import why_unknown
from suffice.errors import OptionError
from suffice.vision import Classifier
from tests.attribution.lrp_nets import classifier, transformer
from tests.attribution.nets import MEAN, STD, pictures, small_cnn


def swin():
    module = timm.models.SwinTransformer(
        img_size=32, patch_size=4, embed_dim=12, depths=(1, 1), num_heads=(1, 2), window_size=4, num_classes=5
    )
    return classifier(module.eval(), name="small-swin")


def pit():
    module = timm.models.PoolingVisionTransformer(
        img_size=32, patch_size=8, stride=4, base_dims=(8, 8), depth=(1, 1), heads=(1, 2), num_classes=5
    )
    return classifier(module.eval())


def of_torchvision():
    module = torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=5
    )
    return classifier(module.eval())


def of_transformers():
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    return classifier(transformers.ViTForImageClassification(config).eval())


@pytest.mark.parametrize("method", ["cgw1", "partial-lrp"])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (swin, "SwinTransformer of timm with its SwinTransformerBlock"),
        (pit, "PoolingVisionTransformer of timm"),
        (of_torchvision, "VisionTransformer of torchvision"),
        (of_transformers, "ViTForImageClassification of transformers"),
    ],
)
def test_other_transformers_are_told_by_name(make, said, method):
    net = make()
    with pytest.raises(OptionError, match=said) as caught:
        attribute(net, pictures(1), method)
    assert f"{method} does not fit {net.name}" in str(caught.value)
    assert "These fit: " in str(caught.value)


class OwnForward(timm.models.VisionTransformer):
    def forward_features(self, x, **options):
        return super().forward_features(x, **options) * 2


class Adapted(nn.Linear):
    def forward(self, x):
        return super().forward(x) + x.mean()


def adapted():
    module = transformer()
    module.blocks[1].mlp.fc1 = Adapted(24, 96).double()
    return module


def replaced():
    module = transformer()
    block = module.blocks[2]
    block.forward = lambda x: type(block).forward(block, x) * 2
    return module


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: transformer(global_pool="avg"), "pools over tokens .global_pool='avg'"),
        (lambda: transformer(class_token=False, global_pool="avg"), "pools over tokens"),
        (lambda: transformer(block_fn=ParallelScalingBlock), "block 0, .*ParallelScalingBlock"),
        (lambda: transformer(mlp_layer=timm.layers.GluMlp), "GluMlp"),
        (
            lambda: OwnForward(img_size=32, patch_size=8, embed_dim=24, depth=1, num_heads=2),
            "forward_features of its own",
        ),
        (adapted, "block 1, a layer is Adapted"),
        (replaced, "block 2, there are no rules for Block"),
    ],
)
def test_parts_without_rules_are_named(make, said):
    net = classifier(make().eval())
    with pytest.raises(OptionError, match=said):
        attribute(net, pictures(1).to(net.dtype), "cgw1", 0)


def test_gated_attention_has_no_rule():
    module = transformer()
    for block in module.blocks:
        block.attn.gate = nn.Linear(24, 24).double()
    assert "gated" in why_unknown(classifier(module))


def test_why_unknown():
    assert why_unknown(classifier(transformer("distilled"))) is None
    assert "no transformer blocks" in why_unknown(small_cnn())


class Wrapper(nn.Module):
    def __init__(self, inner, temperature):
        super().__init__()
        self.inner, self.temperature = inner, temperature

    def forward(self, x):
        return self.inner(x) / self.temperature


@pytest.mark.parametrize("method", ["cgw1", "partial-lrp"])
def test_a_wrapper_may_not_change_the_logits(method):
    module = transformer(dtype=torch.float32)
    bare = attribute(classifier(module), pictures(2), method).maps
    torch.testing.assert_close(attribute(classifier(Wrapper(module, 1)), pictures(2), method).maps, bare)
    with pytest.raises(OptionError, match="small-transformer changes the logits"):
        attribute(classifier(Wrapper(module, 2)), pictures(2), method)


def test_sizes_that_are_not_square():
    module = timm.models.VisionTransformer(img_size=(32, 48), patch_size=8, embed_dim=24, depth=2, num_heads=2)
    net = Classifier(module.eval(), size=(32, 48), mean=MEAN, std=STD)
    for method in ("cgw1", "partial-lrp"):
        assert attribute(net, torch.rand(2, 3, 32, 48), method).maps.shape == (2, 4, 6)
