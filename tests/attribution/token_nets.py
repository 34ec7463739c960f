"""Small random transformers whose blocks do something, for tests of methods."""

import copy

import timm
import torch
from timm.models.deit import VisionTransformerDistilled
from torch import nn

from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD

SIZES = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "num_heads": 2, "num_classes": 5}


def lively(module):
    """Larger weights than usual at the start, the same every time, so that tokens differ and classes depend on them."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if weight.dim() > 1:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.3)
            elif name.endswith("weight"):  # of normalizations; some begin at 0
                weight.fill_(1.0)
            else:
                weight.zero_()
    return module.eval()


def awake(net):
    """A copy in which normalizations that begin at 0, as those at the end of LeViT's attention, count as others do."""
    module = copy.deepcopy(net.module)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d):
            nn.init.ones_(part.weight)
    return net.with_module(module)


def plain(dtype=torch.float32):
    return _classifier(timm.models.VisionTransformer(depth=3, **SIZES), "small-vit", dtype)


def distilled(dtype=torch.float32):
    return _classifier(VisionTransformerDistilled(depth=2, **SIZES), "small-distilled", dtype)


def registers(dtype=torch.float32):
    module = timm.models.VisionTransformer(depth=2, reg_tokens=3, class_token=False, global_pool="avg", **SIZES)
    return _classifier(module, "small-registers", dtype)


def _classifier(module: nn.Module, name, dtype):
    return Classifier(lively(module).to(dtype), size=32, mean=MEAN, std=STD, name=name)
