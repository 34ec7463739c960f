"""ConvNeXt and Swin with smaller kernels or windows and with other normalization, small and at full size.

Jiang, Khorram and Li (CVPR 2024) took ConvNeXt-T and Swin-T apart to see what makes them compositional. Importing
this module registers those networks, at 224×224 and untrained, with timm:

==========================  ====================  =============================================================
name in timm                in the paper          what differs from timm's ``convnext_tiny`` or ``swin_tiny_…``
==========================  ====================  =============================================================
``convnext_tiny_k3``        ConvNeXt-T-3          depthwise kernels of 3×3 instead of 7×7
``convnext_tiny_k3_bn``     ConvNeXt-T-3-BN       and batch instead of layer normalization, everywhere
``convnext_tiny_k3_gn``     ConvNeXt-T-3-GN       and group instead of layer normalization, everywhere
``swin_tiny_w4``            Swin-T-4              windows of 4×4 instead of 7×7 in the first two stages
``swin_tiny_w4_bn``         Swin-T-4-BN           and batch instead of layer normalization, everywhere
``swin_tiny_w4_gn``         Swin-T-4-GN           and group instead of layer normalization, everywhere
==========================  ====================  =============================================================

The paper does not say how many groups; 32 is the default of the group normalization paper, and ``groups=`` changes it.

timm's ``train.py`` takes a name once it is registered. Put a file of two lines beside it::

    import runpy, suffice.zoo.variants
    runpy.run_path("train.py", run_name="__main__")

and run it as you would run ``train.py``, alone or under ``torchrun``::

    python train_variant.py --data-dir imagenet --model convnext_tiny_k3_bn …

timm is imported with this module, because its register is filled by decorators.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.layers import GroupNorm
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.convnext import ConvNeXt
from timm.models.swin_transformer import SwinTransformer
from torch import nn

from suffice.options import check_options
from suffice.zoo.norms import TokenBatchNorm, TokenGroupNorm

Norm = Literal["ln", "bn", "gn"]

GROUPS = 32

_CONVNEXT_TINY = {"depths": (3, 3, 9, 3), "dims": (96, 192, 384, 768)}
_SWIN_TINY = {"patch_size": 4, "embed_dim": 96, "depths": (2, 2, 6, 2), "num_heads": (3, 6, 12, 24)}
_STAGES = (0, 1, 2, 3)


def convnext_arguments(kernel: int, *, norm: Norm = "ln", groups: int = GROUPS) -> dict[str, Any]:
    """What to give timm's ``ConvNeXt`` for one variant.

    Args:
        kernel: Side of all depthwise kernels.
        norm: Layer, batch or group normalization, in stem, blocks, downsampling and head.
        groups: Number of groups for ``"gn"``.

    Returns:
        Keyword arguments.

    Example:
        >>> convnext_arguments(3)
        {'kernel_sizes': 3}
        >>> sorted(convnext_arguments(3, norm="bn"))
        ['conv_mlp', 'kernel_sizes', 'norm_layer']
    """
    check_options({"norm": norm}, convnext_arguments)
    if norm == "ln":
        return {"kernel_sizes": kernel}
    layer = nn.BatchNorm2d if norm == "bn" else partial(GroupNorm, num_groups=groups)
    # With conv_mlp the blocks stay [N, C, h, w], which these layers want: 1×1 convolutions for the same linear maps.
    return {"kernel_sizes": kernel, "norm_layer": layer, "conv_mlp": True}


def swin_arguments(
    window: int | tuple[int, ...], *, norm: Norm = "ln", groups: int = GROUPS, drop_path_rate: float = 0.1
) -> dict[str, Any]:
    """What to give timm's ``SwinTransformer`` for one variant.

    Args:
        window: Side of the attention windows, for all stages or one for each of more than two. Where it does not divide
            the tokens' rows and columns, timm pads them with zeros.
        norm: Layer, batch or group normalization, after the patches, in blocks and merging, and before the head.
        groups: Number of groups for ``"gn"``.
        drop_path_rate: Stochastic depth while training, timm's default unless you say otherwise.

    Returns:
        Keyword arguments.

    Example:
        >>> swin_arguments((4, 4, 7, 7))
        {'window_size': (4, 4, 7, 7), 'drop_path_rate': 0.1}
    """
    check_options({"norm": norm}, swin_arguments)
    arguments: dict[str, Any] = {"window_size": window, "drop_path_rate": drop_path_rate}
    if norm == "bn":
        arguments["norm_layer"] = TokenBatchNorm
    elif norm == "gn":
        arguments["norm_layer"] = partial(TokenGroupNorm, groups=groups)
    return arguments


def _settings(first_conv: str, **others: Any) -> dict[str, Any]:
    return {
        "url": "",
        "num_classes": 1000,
        "input_size": (3, 224, 224),
        "pool_size": (7, 7),
        "interpolation": "bicubic",
        "mean": IMAGENET_DEFAULT_MEAN,
        "std": IMAGENET_DEFAULT_STD,
        "first_conv": first_conv,
        "classifier": "head.fc",
        **others,
    }


_OF_CONVNEXT = _settings("stem.0", crop_pct=0.875)
_OF_SWIN = _settings("patch_embed.proj", crop_pct=0.9, fixed_input_size=True)

# timm finds this by its name, when the functions below are registered.
default_cfgs = generate_default_cfgs(
    {
        "convnext_tiny_k3.untrained": _OF_CONVNEXT,
        "convnext_tiny_k3_bn.untrained": _OF_CONVNEXT,
        "convnext_tiny_k3_gn.untrained": _OF_CONVNEXT,
        "swin_tiny_w4.untrained": _OF_SWIN,
        "swin_tiny_w4_bn.untrained": _OF_SWIN,
        "swin_tiny_w4_gn.untrained": _OF_SWIN,
    }
)


def _convnext(name: str, pretrained: bool, norm: Norm, groups: int = GROUPS, **options: Any) -> ConvNeXt:
    arguments = {**_CONVNEXT_TINY, **convnext_arguments(3, norm=norm, groups=groups), **options}
    return build_model_with_cfg(
        ConvNeXt, name, pretrained, feature_cfg={"out_indices": _STAGES, "flatten_sequential": True}, **arguments
    )


def _swin(name: str, pretrained: bool, norm: Norm, groups: int = GROUPS, **options: Any) -> SwinTransformer:
    arguments = {**_SWIN_TINY, **swin_arguments((4, 4, 7, 7), norm=norm, groups=groups), **options}
    return build_model_with_cfg(
        SwinTransformer, name, pretrained, feature_cfg={"out_indices": _STAGES, "flatten_sequential": True}, **arguments
    )


@register_model
def convnext_tiny_k3(pretrained: bool = False, **options: Any) -> ConvNeXt:
    """ConvNeXt-T with 3×3 kernels; ``options`` as for timm's ``convnext_tiny``."""
    return _convnext("convnext_tiny_k3", pretrained, "ln", **options)


@register_model
def convnext_tiny_k3_bn(pretrained: bool = False, **options: Any) -> ConvNeXt:
    """ConvNeXt-T with 3×3 kernels and batch normalization."""
    return _convnext("convnext_tiny_k3_bn", pretrained, "bn", **options)


@register_model
def convnext_tiny_k3_gn(pretrained: bool = False, **options: Any) -> ConvNeXt:
    """ConvNeXt-T with 3×3 kernels and group normalization in ``groups=32`` groups."""
    return _convnext("convnext_tiny_k3_gn", pretrained, "gn", **options)


@register_model
def swin_tiny_w4(pretrained: bool = False, **options: Any) -> SwinTransformer:
    """Swin-T with windows 4, 4, 7, 7; ``options`` as for timm's ``swin_tiny_patch4_window7_224``."""
    return _swin("swin_tiny_w4", pretrained, "ln", **options)


@register_model
def swin_tiny_w4_bn(pretrained: bool = False, **options: Any) -> SwinTransformer:
    """Swin-T with windows 4, 4, 7, 7 and batch normalization."""
    return _swin("swin_tiny_w4_bn", pretrained, "bn", **options)


@register_model
def swin_tiny_w4_gn(pretrained: bool = False, **options: Any) -> SwinTransformer:
    """Swin-T with windows 4, 4, 7, 7 and group normalization in ``groups=32`` groups."""
    return _swin("swin_tiny_w4_gn", pretrained, "gn", **options)
