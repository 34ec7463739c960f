"""Anatomy of models from torchvision."""

from __future__ import annotations

from torch import nn

from suffice.vision.anatomy.common import (
    Family,
    Size,
    children,
    convolutional,
    last_activations_before_pools,
    same_layout,
)
from suffice.vision.anatomy.structure import Anatomy, Layout
from suffice.vision.anatomy.trace import output_shapes


def vit(module: nn.Module, size: Size) -> Anatomy:
    """ViT: a class token, which the head reads, then the patch tokens."""
    blocks = children(module, "encoder.layers")
    attention = tuple(f"{block}.self_attention" for block in blocks)
    norms = tuple(f"{block}.ln_1" for block in blocks)
    shapes = output_shapes(module, size, ["conv_proj", *blocks, *attention, *norms, "encoder.ln"])
    _, _, h, w = shapes["conv_proj"]  # a convolution, hence NCHW
    return Anatomy(
        kind="transformer",
        size=size,
        target_layer=norms[-1],
        feature_layers=blocks,
        layouts=same_layout(Layout("tokens", (h, w), prefix=1), shapes, skip=("conv_proj",)),
        prefix_tokens=1,
        read_tokens=(0,),
        blocks=blocks,
        attention=attention,
        norms=norms,
    )


def swin(module: nn.Module, size: Size) -> Anatomy:
    """Swin and Swin V2: [N, h, w, C] everywhere, the attention included: it cuts windows by itself.

    ``features`` holds the patch embedding, then stages and patch mergings in turn.
    """
    stages = children(module, "features")[1::2]
    blocks = tuple(block for stage in stages for block in children(module, stage))
    attention = tuple(f"{block}.attn" for block in blocks)
    norms = tuple(f"{block}.norm1" for block in blocks)
    shapes = output_shapes(module, size, [*stages, *blocks, *attention, *norms, "norm"])
    # Channels-last by definition: axes 1 and 2 are rows and columns.
    layouts = {name: Layout("nhwc", (shape[1], shape[2])) for name, shape in shapes.items()}
    order = list(shapes)
    # V2 normalizes after the attention. The order of execution tells.
    normalized_before = order.index(norms[-1]) < order.index(attention[-1])
    return Anatomy(
        kind="transformer",
        size=size,
        # The final norm is what the head averages over positions.
        target_layer=norms[-1] if normalized_before else "norm",
        feature_layers=stages,
        layouts=layouts,
        blocks=blocks,
        attention=attention,
        norms=norms if normalized_before else (None,) * len(blocks),
    )


def resnet(module: nn.Module, size: Size) -> Anatomy:
    """ResNet, ResNeXt, Wide ResNet."""
    stages = ("layer1", "layer2", "layer3", "layer4")
    return convolutional(module, size, stages, target=children(module, "layer4")[-1])


def vgg(module: nn.Module, size: Size) -> Anatomy:
    """VGG with and without batch normalization: the activations before each pooling."""
    layers = last_activations_before_pools(module, "features")
    return convolutional(module, size, layers, target=layers[-1])


def convnext(module: nn.Module, size: Size) -> Anatomy:
    """ConvNeXt: ``features`` holds the stem, then stages and downsamplings in turn."""
    stages = children(module, "features")[1::2]
    return convolutional(module, size, stages, target=stages[-1])


def mobile(module: nn.Module, size: Size) -> Anatomy:
    """EfficientNet, MobileNetV2, MobileNetV3: the last of ``features`` is a convolution with activation."""
    stages = children(module, "features")
    return convolutional(module, size, stages, target=stages[-1])


FAMILIES = (
    Family("torchvision.models.vision_transformer", "VisionTransformer", vit),
    Family("torchvision.models.swin_transformer", "SwinTransformer", swin),
    Family("torchvision.models.resnet", "ResNet", resnet),
    Family("torchvision.models.vgg", "VGG", vgg),
    Family("torchvision.models.convnext", "ConvNeXt", convnext),
    Family("torchvision.models.efficientnet", "EfficientNet", mobile),
    Family("torchvision.models.mobilenetv2", "MobileNetV2", mobile),
    Family("torchvision.models.mobilenetv3", "MobileNetV3", mobile),
)
