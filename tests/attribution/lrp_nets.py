"""Small transformers with random weights that are not as tame as fresh ones, for tests of relevance."""

import timm
import torch
from timm.models.deit import VisionTransformerDistilled

from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD

KINDS = {"vit": timm.models.VisionTransformer, "distilled": VisionTransformerDistilled}


def transformer(kind="vit", dtype=torch.float64, depth=3, **options):
    """timm's module: 4×4 patch tokens of 24 numbers, 2 heads, 5 classes."""
    torch.manual_seed(0)
    module = KINDS[kind](
        img_size=32, patch_size=8, embed_dim=24, depth=depth, num_heads=2, num_classes=5, **options
    ).eval()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "norm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.2)
            elif "ls" in name or parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)
            else:
                parameter.mul_(8)
    return module.to(dtype)


def classifier(module, **options):
    return Classifier(module, size=32, mean=MEAN, std=STD, **{"name": "small-transformer", **options})
