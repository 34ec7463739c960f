"""The family that a model belongs to by default, read from its name.

The groups are those of Jiang, Khorram and Li (CVPR 2024): what sets them apart is the recipe and the teacher
as much as the architecture. A family is free text; give ``family=`` to say otherwise.
"""

from __future__ import annotations

import re

OLDER_CNN = "older-cnn"
NEWER_CNN = "newer-cnn"
CONVNEXT = "convnext"
TRANSFORMER = "transformer"
DISTILLED = "distilled-transformer"

# First match wins. Names are architecture names of timm and torchvision or model ids of the Hugging Face hub,
# with the weights' tag after a dot where there is one.
RULES: tuple[tuple[str, str], ...] = (
    # Taught by a CNN.
    (r"(deit|pit|vit).*distilled|levit|efficientformer|tiny_vit.*dist", DISTILLED),
    (r"convnext", CONVNEXT),
    (
        r"vit|deit|swin|(?<!res)nest|pit_|beit|cait|xcit|twins|eva\d*|crossvit|coat|maxvit|pvt|mvit|dino|clip",
        TRANSFORMER,
    ),
    # Trained with the augmentation of their day: the originals, and their first ports to PyTorch.
    (r"(?<!rep)vgg|alexnet|squeezenet|googlenet|densenet|inception", OLDER_CNN),
    (r"(resnet|resnext)\w*\.(tv|gluon|imagenet1k_v1)", OLDER_CNN),
    (r"(resnet|wide_resnet|resnext)\w*\.\w+", NEWER_CNN),
    (r"resnet\d+[a-z]+|resnetv2|seresnet|resnest|ecaresnet", NEWER_CNN),
    (r"resnet|resnext", OLDER_CNN),
    (r"efficientnet|mobilenet|regnet|mnasnet|shufflenet|ghostnet|nfnet|repvgg|rexnet|hrnet", NEWER_CNN),
)


def default_family(name: str) -> str | None:
    """The default family of a model by its name, with or without source; None for a name that says nothing.

    Example:
        >>> default_family("timm/resnet50.tv_in1k"), default_family("timm/resnet50.c1_in1k")
        ('older-cnn', 'newer-cnn')
        >>> default_family("hf/facebook/deit-small-distilled-patch16-224")
        'distilled-transformer'
    """
    plain = name.lower().replace("-", "_")
    return next((family for pattern, family in RULES if re.search(pattern, plain)), None)
