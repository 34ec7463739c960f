"""Anatomy of image classifiers from transformers.

Module names differ between versions 4 and 5 of that library, so parts are found by what they hold rather than
by their full names.
"""

from __future__ import annotations

from torch import nn

from suffice.errors import AnatomyError
from suffice.vision.anatomy.common import Family, Size, children, convolutional, half_up, same_layout
from suffice.vision.anatomy.structure import Anatomy, Layout
from suffice.vision.anatomy.trace import HOW_TO_REGISTER, output_shapes


def vit(module: nn.Module, size: Size) -> Anatomy:
    """ViT: a class token, then the patch tokens."""
    return _plain_transformer(module, size, prefix=1, read=(0,))


def deit(module: nn.Module, size: Size) -> Anatomy:
    """DeiT: class and distillation token; this head reads only the class token."""
    return _plain_transformer(module, size, prefix=2, read=(0,))


def deit_with_teacher(module: nn.Module, size: Size) -> Anatomy:
    """DeiT with both heads, whose logits are averaged."""
    return _plain_transformer(module, size, prefix=2, read=(0, 1))


def swin(module: nn.Module, size: Size) -> Anatomy:
    """Swin: tokens [N, h*w, C] between blocks; a stage puts out merged tokens, on the next grid."""
    blocks = _blocks(module)
    norms = tuple(f"{block}.layernorm_before" for block in blocks)
    projection = _one(module, "patch_embeddings.projection")
    shapes = output_shapes(module, size, [projection, *blocks, *norms])
    _, _, h, w = shapes[projection]  # a convolution, hence NCHW
    grid = (h, w)
    layouts: dict[str, Layout] = {}
    last_of_stage = []
    for stage in children(module, _one(module, "encoder.layers")):
        inside = [block for block in blocks if block.startswith(f"{stage}.")]
        names = [name for block in inside for name in (block, f"{block}.layernorm_before")]
        layouts |= same_layout(Layout("tokens", grid), {name: shapes[name] for name in names})
        last_of_stage.append(inside[-1])
        if getattr(module.get_submodule(stage), "downsample", None) is not None:
            grid = half_up(grid)
    return Anatomy(
        kind="transformer",
        size=size,
        target_layer=norms[-1],
        # Not the stages themselves: what they put out belongs to the next stage's grid.
        feature_layers=tuple(last_of_stage),
        layouts=layouts,
        blocks=blocks,
        attention=tuple(f"{block}.attention" for block in blocks),
        norms=norms,
    )


def convnext(module: nn.Module, size: Size) -> Anatomy:
    """ConvNeXt: stages put out [N, C, h, w]."""
    stages = children(module, _one(module, "encoder.stages"))
    return convolutional(module, size, stages, target=stages[-1])


def resnet(module: nn.Module, size: Size) -> Anatomy:
    """ResNet: stages put out [N, C, h, w]."""
    stages = children(module, _one(module, "encoder.stages"))
    return convolutional(module, size, stages, target=children(module, f"{stages[-1]}.layers")[-1])


def _plain_transformer(module: nn.Module, size: Size, prefix: int, read: tuple[int, ...]) -> Anatomy:
    blocks = _blocks(module)
    attention = tuple(f"{block}.attention" for block in blocks)
    norms = tuple(f"{block}.layernorm_before" for block in blocks)
    projection = _one(module, "patch_embeddings.projection")
    shapes = output_shapes(module, size, [projection, *blocks, *attention, *norms])
    _, _, h, w = shapes[projection]  # a convolution, hence NCHW
    return Anatomy(
        kind="transformer",
        size=size,
        target_layer=norms[-1],
        feature_layers=blocks,
        layouts=same_layout(Layout("tokens", (h, w), prefix), shapes, skip=(projection,)),
        prefix_tokens=prefix,
        read_tokens=read,
        blocks=blocks,
        attention=attention,
        norms=norms,
    )


def _blocks(module: nn.Module) -> tuple[str, ...]:
    """Names of all blocks: modules that hold an attention and the normalization before it."""
    return tuple(
        name
        for name, part in module.named_modules()
        if hasattr(part, "layernorm_before") and hasattr(part, "attention")
    )


def _one(module: nn.Module, ending: str) -> str:
    """The name of the one module whose name ends like this."""
    found = [name for name, _ in module.named_modules() if f".{name}".endswith(f".{ending}")]
    if len(found) != 1:
        raise AnatomyError(
            f"one module of {type(module).__name__} was expected to have a name ending in {ending!r} but "
            f"{found or 'none'} do; {HOW_TO_REGISTER}"
        )
    return found[0]


FAMILIES = (
    Family("transformers.models.vit.modeling_vit", "ViTForImageClassification", vit),
    Family("transformers.models.deit.modeling_deit", "DeiTForImageClassification", deit),
    Family("transformers.models.deit.modeling_deit", "DeiTForImageClassificationWithTeacher", deit_with_teacher),
    Family("transformers.models.swin.modeling_swin", "SwinForImageClassification", swin),
    Family("transformers.models.convnext.modeling_convnext", "ConvNextForImageClassification", convnext),
    Family("transformers.models.resnet.modeling_resnet", "ResNetForImageClassification", resnet),
)
