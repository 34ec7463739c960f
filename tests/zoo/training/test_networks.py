"""Networks by name."""

import pytest
import torch
from torch import nn

from suffice.errors import OptionError, UnknownModel
from suffice.zoo.training.networks import build_network


def same(a: nn.Module, b: nn.Module) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def test_networks_by_name_have_seeded_weights():
    first, again, other = (build_network("timm/resnet10t", classes=4, size=(32, 32), seed=s) for s in (0, 0, 1))
    assert same(first, again)
    assert not same(first, other)
    vit = build_network("timm/vit_tiny_patch16_224", classes=4, size=(32, 32))
    assert vit(torch.zeros(1, 3, 32, 32)).shape == (1, 4)
    with pytest.raises(UnknownModel, match="resnet10t"):
        build_network("timm/resnet10x", classes=4, size=(32, 32))
    with pytest.raises(OptionError, match="cannot be made"):
        build_network("timm/nest_tiny_jx", classes=4, size=(30, 30))
