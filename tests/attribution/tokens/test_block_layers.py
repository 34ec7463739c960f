"""Layers of blocks by what they are, in transformers of three libraries."""

import pytest
import timm
import torch
import torchvision

from suffice.attribution.tokens.block_layers import BLOCK_LAYERS, block_layer
from suffice.errors import OptionError
from suffice.vision import Classifier
from suffice.vision.anatomy import record
from tests.attribution.nets import MEAN, STD, pictures
from tests.attribution.token_nets import lively
from tests.attribution.trained import untrained


def of_timm():
    return timm.models.VisionTransformer(
        img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2, num_classes=5, init_values=0.3
    )


def of_torchvision():
    return torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=24, mlp_dim=48, num_classes=5
    )


def of_transformers():
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48
    )
    return transformers.ViTForImageClassification(config)


@pytest.mark.parametrize("make", [of_timm, of_torchvision, of_transformers])
def test_the_residual_is_what_attention_adds_to_the_input_of_the_block(make):
    net = Classifier(lively(make()), size=32, mean=MEAN, std=STD)
    names = {which: block_layer(net, which) for which in BLOCK_LAYERS}
    block = net.anatomy.blocks[-1]
    layers = [*names.values(), f"{block}:input"]
    with record(net.module, layers) as seen:
        net.logits(net.normalize(pictures(2)))
    into, attended = seen.activations[f"{block}:input"], seen.activations[names["attention-output"]]
    if make is of_timm:
        attended = attended * net.module.blocks[-1].ls1.gamma
    torch.testing.assert_close(seen.activations[names["attention-residual"]], into + attended)
    assert names["attention-input"] == net.anatomy.norms[-1]
    assert names["block-output"] == block


def test_networks_whose_blocks_are_not_like_that():
    levit = untrained("levit")
    assert block_layer(levit, "attention-input").endswith(":input")  # no normalization before its attention
    with pytest.raises(OptionError, match=r"'attention-residual' does not fit zoo/levit.*'attention-input'"):
        block_layer(levit, "attention-residual")
    swin = untrained("swin")
    grids = [swin.anatomy.grid(block) for block in swin.anatomy.blocks]
    assert swin.anatomy.grid(block_layer(swin, "attention-input")) == next(g for g in reversed(grids) if g != grids[-1])
    with pytest.raises(OptionError, match="'block-output' does not fit zoo/resnet, which has no transformer blocks"):
        block_layer(untrained("resnet"), "block-output")
