"""The layers of a module: all of its weights, in order, each once."""

import pytest
import torch
from torch import nn

from suffice.errors import OptionError
from suffice.metrics.sanity import layers_of
from suffice.testing import AnyOf
from suffice.zoo.architectures import ARCHITECTURES
from tests.metrics.sanity.architectures import build


def names(module):
    return [layer.name for layer in layers_of(module)]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_layers_have_every_weight_once(name):
    module = build(name)
    found = [tensor for layer in layers_of(module) for tensor in layer.tensors]
    expected = [n for n, _ in module.named_parameters()]
    expected += [n for n, _ in module.named_buffers() if n.endswith(("running_mean", "running_var"))]
    assert sorted(found) == sorted(expected)


def test_blocks_are_layers_and_lie_between_stem_and_head():
    assert names(build("deit")) == ["patch_embed", *(f"blocks.{i}" for i in range(4)), "head"]
    assert names(build("resnet")) == [
        "conv1", "layer1.0", "layer2.0", "layer2.1", "layer3.0", "layer3.1", "layer4.0", "fc",
    ]  # fmt: skip


def test_tokens_and_position_embeddings_belong_to_the_stem():
    stem = layers_of(build("deit-distilled"))[0]
    assert {"cls_token", "dist_token", "pos_embed", "patch_embed.proj.weight"} <= set(stem.tensors)


def test_a_normalization_belongs_to_the_layer_before_it():
    layers = {layer.name: layer.tensors for layer in layers_of(build("deit"))}
    assert "norm.weight" in layers["blocks.3"]
    assert layers["head"] == ("head.weight", "head.bias")


def test_weights_that_come_after_all_parts_belong_to_the_last():
    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({}))
            self.tail = nn.ModuleList()
            self.tail.scale = nn.Parameter(torch.ones(2, 2))

    assert [layer.tensors for layer in layers_of(Late())] == [("body.0.weight", "body.0.bias", "tail.scale")]


def test_a_single_layer_and_shared_weights():
    assert [layer.tensors for layer in layers_of(nn.Linear(2, 2))] == [("weight", "bias")]
    tied = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
    tied[2].weight = tied[0].weight
    assert [layer.tensors for layer in layers_of(tied)] == [("0.weight", "0.bias", "2.bias")]


def test_a_module_without_weights_is_refused():
    with pytest.raises(OptionError, match="nothing to randomize"):
        layers_of(AnyOf([(3,)], grid=4).classifier(32).module)
