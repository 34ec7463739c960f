"""Miniatures of the networks that Jiang, Khorram and Li (CVPR 2024) compare, for images of 56×56 pixels.

Each is timm's own class in a small configuration, so that whatever knows timm's networks knows these. An image of 56
pixels stands to one of 224 as 4 to 16, so the miniatures work where the late stages of their originals do: with one
position for 4×4 pixels (14×14 of them) and then for 8×8 (7×7). Early stages, which the originals need to get there
from 224, are left out. They have half a million parameters, the plain transformers a fifth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import nn

from suffice.errors import OptionError
from suffice.vision.families import CONVNEXT, DISTILLED, NEWER_CNN, OLDER_CNN, TRANSFORMER
from suffice.vision.models import unknown_model

if TYPE_CHECKING:
    from suffice.zoo.variants import Norm

Maker = Callable[[int, int], nn.Module]

SIZE = 56
CLASSES = 16

# At full size 32 groups leave 24 channels to a group of the last layer, which sees one position; 8 leave 16 here.
_GROUPS = 8


@dataclass(frozen=True)
class Architecture:
    """A miniature, and how the network that it stands for was trained.

    Attributes:
        name: What :func:`build` takes.
        family: The group that it is compared in.
        about: One line for people.
        stands_for: Its full-size originals, as names in timm; those without a tag after a dot are untrained, see
            :mod:`suffice.zoo.variants`.
        distilled: It has two heads and learns the second from a convolutional teacher. In evaluation its output is the
            mean of both; after ``module.set_distilled_training(True)`` it returns ``(scores, teacher_scores)`` while
            training.
        augmented: Its originals were trained with modern augmentation, not only with crops and flips.
        make: Makes it from number of classes and size.
    """

    name: str
    family: str
    about: str
    stands_for: tuple[str, ...]
    make: Maker = field(repr=False)
    distilled: bool = False
    augmented: bool = True


def build(name: str, num_classes: int = CLASSES, size: int = SIZE) -> nn.Module:
    """A miniature with random weights.

    Args:
        name: One of :data:`ARCHITECTURES`.
        num_classes: Number of classes.
        size: Height and width of its images in pixels; a multiple of 8, at least 32.

    Returns:
        timm's module, taking normalized images [N, 3, size, size] to scores [N, num_classes].

    Raises:
        UnknownModel: With close names.
        OptionError: If the size is not possible.

    Example:
        >>> import torch
        >>> build("swin-4-bn", num_classes=100, size=64).eval()(torch.rand(2, 3, 64, 64)).shape
        torch.Size([2, 100])
    """
    if name not in ARCHITECTURES:
        raise unknown_model(f"The zoo has no architecture {name!r}.", name, ARCHITECTURES, "zoo")
    if size < 32 or size % 8:
        raise OptionError(f"size={size} is not possible; write a multiple of 8, at least 32, such as 56 or 64")
    return ARCHITECTURES[name].make(num_classes, size)


def _vgg(num_classes: int, size: int) -> nn.Module:
    from timm.models.vgg import VGG

    # timm fixes the last hidden layer at 4096 units; mlp_ratio narrows the one before it to 32.
    return VGG([16, 16, "M", 32, 32, "M", 64, 64, 64, 64, "M"], num_classes=num_classes, mlp_ratio=1 / 128)


def _resnet(num_classes: int, size: int) -> nn.Module:
    from timm.models.resnet import Bottleneck, ResNet

    # Without pooling in the stem and without stride in the last stage the maps have 28, 14, 7 and 7 rows. The last
    # stage has one block, so that this brings no dilation with it.
    module = ResNet(Bottleneck, (1, 2, 2, 1), num_classes=num_classes, channels=(16, 32, 64, 96), output_stride=16)
    module.maxpool = nn.Identity()
    return module


def _convnext(kernel: int, norm: Norm) -> Maker:
    def make(num_classes: int, size: int) -> nn.Module:
        from timm.models.convnext import ConvNeXt

        from suffice.zoo.variants import convnext_arguments

        # timm builds four stages; the last two, empty ones, are cut off again. Layers are scaled by 0.1 to begin
        # with: the usual 1e-6 is meant for deep networks and long training.
        module = ConvNeXt(
            num_classes=num_classes,
            depths=(2, 3, 0, 0),
            dims=(64, 128, 128, 128),
            ls_init_value=0.1,
            **convnext_arguments(kernel, norm=norm, groups=_GROUPS),
        )
        module.stages = module.stages[:2]  # by hand: timm's own pruning takes the head along in some versions
        return module

    return make


def _swin(window: int | None, norm: Norm) -> Maker:
    def make(num_classes: int, size: int) -> nn.Module:
        from timm.models.swin_transformer import SwinTransformer

        from suffice.zoo.variants import swin_arguments

        return SwinTransformer(
            img_size=size,
            patch_size=4,
            num_classes=num_classes,
            embed_dim=64,
            depths=(2, 2),
            num_heads=(2, 4),
            # 7 for 56 pixels, as for 224: four windows, then one.
            **swin_arguments(window or size // 8, norm=norm, groups=_GROUPS, drop_path_rate=0.0),
        )

    return make


def _nest(num_classes: int, size: int) -> nn.Module:
    from timm.models.nest import Nest

    return Nest(
        img_size=size,
        patch_size=4,
        num_levels=2,
        num_classes=num_classes,
        embed_dims=(64, 128),
        num_heads=(2, 4),
        depths=(2, 2),
        drop_path_rate=0.0,
    )


def _deit(distilled: bool) -> Maker:
    def make(num_classes: int, size: int) -> nn.Module:
        from timm.models.deit import VisionTransformerDistilled
        from timm.models.vision_transformer import VisionTransformer

        # 14×14 tokens, as the originals have. All of them attend to all, so it is narrower than the others.
        kind = VisionTransformerDistilled if distilled else VisionTransformer
        return kind(img_size=size, patch_size=4, num_classes=num_classes, embed_dim=64, depth=4, num_heads=4)

    return make


def _pit(distilled: bool) -> Maker:
    def make(num_classes: int, size: int) -> nn.Module:
        from timm.models.pit import PoolingVisionTransformer

        return PoolingVisionTransformer(
            img_size=size,
            patch_size=8,
            stride=4,
            num_classes=num_classes,
            base_dims=(32, 32),
            depth=(2, 2),
            heads=(2, 4),
            distilled=distilled,
        )

    return make


def _levit(num_classes: int, size: int) -> nn.Module:
    from timm.models.levit import LevitDistilled

    # Of timm's stems the shorter one, by 8: then 7×7 tokens, then 4×4, as in the last stages of LeViT-256.
    return LevitDistilled(
        img_size=size,
        num_classes=num_classes,
        embed_dim=(96, 128),
        key_dim=16,
        depth=(2, 2),
        num_heads=(3, 4),
        stem_type="s8",
    )


ARCHITECTURES: dict[str, Architecture] = {
    architecture.name: architecture
    for architecture in (
        Architecture(
            "vgg",
            OLDER_CNN,
            "VGG-19: 3×3 convolutions, no normalization, a head that reads every position",
            ("vgg19.tv_in1k",),
            _vgg,
            augmented=False,
        ),
        Architecture(
            "resnet",
            OLDER_CNN,
            "ResNet-50 as first published: bottlenecks, batch normalization",
            ("resnet50.tv_in1k",),
            _resnet,
            augmented=False,
        ),
        Architecture(
            "resnet-aug",
            NEWER_CNN,
            "ResNet-50-C1, -C2 and -D: the network of resnet, trained with modern augmentation",
            ("resnet50.c1_in1k", "resnet50.c2_in1k", "resnet50.d_in1k"),
            _resnet,
        ),
        Architecture(
            "convnext",
            CONVNEXT,
            "ConvNeXt-T: depthwise 7×7 convolutions, layer normalization",
            ("convnext_tiny.fb_in1k",),
            _convnext(7, "ln"),
        ),
        Architecture(
            "convnext-3",
            CONVNEXT,
            "ConvNeXt-T-3: convnext with 3×3 convolutions",
            ("convnext_tiny_k3",),
            _convnext(3, "ln"),
        ),
        Architecture(
            "convnext-3-bn",
            CONVNEXT,
            "ConvNeXt-T-3-BN: convnext-3 with batch normalization",
            ("convnext_tiny_k3_bn",),
            _convnext(3, "bn"),
        ),
        Architecture(
            "convnext-3-gn",
            CONVNEXT,
            f"ConvNeXt-T-3-GN: convnext-3 with group normalization ({_GROUPS} groups)",
            ("convnext_tiny_k3_gn",),
            _convnext(3, "gn"),
        ),
        Architecture(
            "swin",
            TRANSFORMER,
            "Swin-T: attention in shifted 7×7 windows, layer normalization",
            ("swin_tiny_patch4_window7_224.ms_in1k",),
            _swin(None, "ln"),
        ),
        Architecture(
            "swin-4",
            TRANSFORMER,
            "Swin-T-4: swin with 4×4 windows in its first two stages, which are all that it has",
            ("swin_tiny_w4",),
            _swin(4, "ln"),
        ),
        Architecture(
            "swin-4-bn",
            TRANSFORMER,
            "Swin-T-4-BN: swin-4 with batch normalization",
            ("swin_tiny_w4_bn",),
            _swin(4, "bn"),
        ),
        Architecture(
            "swin-4-gn",
            TRANSFORMER,
            f"Swin-T-4-GN: swin-4 with group normalization ({_GROUPS} groups)",
            ("swin_tiny_w4_gn",),
            _swin(4, "gn"),
        ),
        Architecture(
            "nest",
            TRANSFORMER,
            "NesT-T: attention in nested blocks, merged by convolution and pooling",
            ("nest_tiny_jx.goog_in1k",),
            _nest,
        ),
        Architecture(
            "deit",
            TRANSFORMER,
            "DeiT-S: a plain vision transformer with a class token",
            ("deit_small_patch16_224.fb_in1k",),
            _deit(distilled=False),
        ),
        Architecture(
            "deit-distilled",
            DISTILLED,
            "DeiT-S distilled: deit with a token and a head that learn from a convolutional teacher",
            ("deit_small_distilled_patch16_224.fb_in1k",),
            _deit(distilled=True),
            distilled=True,
        ),
        Architecture(
            "pit",
            TRANSFORMER,
            "PiT-S: a vision transformer that pools its tokens between stages",
            ("pit_s_224.in1k",),
            _pit(distilled=False),
        ),
        Architecture(
            "pit-distilled",
            DISTILLED,
            "PiT-S distilled: pit with a token and a head that learn from a convolutional teacher",
            ("pit_s_distilled_224.in1k",),
            _pit(distilled=True),
            distilled=True,
        ),
        Architecture(
            "levit",
            DISTILLED,
            "LeViT-256: convolutional stem, attention with batch normalization, a second head for its teacher",
            ("levit_256.fb_dist_in1k",),
            _levit,
            distilled=True,
        ),
    )
}
