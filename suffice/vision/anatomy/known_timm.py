"""Anatomy of models from timm."""

from __future__ import annotations

from torch import nn

from suffice.errors import AnatomyError
from suffice.vision.anatomy.common import (
    Family,
    Size,
    children,
    convolutional,
    half_up,
    last_activations_before_pools,
    same_layout,
)
from suffice.vision.anatomy.structure import Anatomy, Layout
from suffice.vision.anatomy.trace import HOW_TO_REGISTER, output_shapes


def vit(module: nn.Module, size: Size) -> Anatomy:
    """ViT, DeiT, DeiT distilled, ViT with registers, BEiT, EVA: one sequence of tokens on one grid."""
    blocks = children(module, "blocks")
    attention = tuple(_vit_attention(module, block) for block in blocks)
    before = {block: _first_of(module, block, ("norm1", "in_norm")) for block in blocks}
    watched = ["patch_embed.proj", "norm", *blocks, *attention, *(norm for norm in before.values() if norm)]
    shapes = output_shapes(module, size, watched)
    order = list(shapes)
    # norm1 comes after the attention in blocks with "post-norm". The order of execution tells.
    norms = tuple(
        norm if norm and order.index(norm) < order.index(attn) else None
        for (_, norm), attn in zip(before.items(), attention, strict=True)
    )

    prefix = int(module.num_prefix_tokens)  # type: ignore[arg-type]
    # The patch projection is a convolution, hence NCHW: its output gives the grid.
    layout = Layout("tokens", grid=_grid(shapes["patch_embed.proj"]), prefix=prefix)
    layouts = same_layout(layout, shapes, skip=("patch_embed.proj",))

    read: tuple[int, ...] = (0,) if module.global_pool == "token" else ()
    if getattr(module, "head_dist", None) is not None:
        read = (0, 1)
    return Anatomy(
        kind="transformer",
        size=size,
        target_layer=_vit_target(module, blocks, norms[-1], read),
        feature_layers=blocks,
        layouts=layouts,
        prefix_tokens=prefix,
        read_tokens=read,
        blocks=blocks,
        attention=attention,
        norms=norms,
    )


def pit(module: nn.Module, size: Size) -> Anatomy:
    """PiT, PiT distilled: stages hand over (map [N, C, h, w], prefix tokens); blocks see one sequence."""
    stages = children(module, "transformers")
    inside = {stage: children(module, f"{stage}.blocks") for stage in stages}
    blocks = tuple(block for stage in stages for block in inside[stage])
    parts = ("", ".norm1", ".attn")
    shapes = output_shapes(module, size, [*stages, *(block + part for block in blocks for part in parts)])
    prefix = int(module.cls_token.shape[1])  # type: ignore[index]
    layouts: dict[str, Layout] = {}
    for stage in stages:
        grid = _grid(shapes[stage])
        layouts |= same_layout(Layout("nchw", grid), {stage: shapes[stage]})
        names = [block + part for block in inside[stage] for part in parts]
        layouts |= same_layout(Layout("tokens", grid, prefix), {name: shapes[name] for name in names})
    return Anatomy(
        kind="transformer",
        size=size,
        target_layer=f"{blocks[-1]}.norm1",
        feature_layers=stages,
        layouts=layouts,
        prefix_tokens=prefix,
        read_tokens=(0,) if module.head_dist is None else (0, 1),
        blocks=blocks,
        attention=tuple(f"{block}.attn" for block in blocks),
        norms=tuple(f"{block}.norm1" for block in blocks),
    )


def levit(module: nn.Module, size: Size) -> Anatomy:
    """LeViT: a convolutional stem, then stages of attention; no class token, no norm before attention.

    The downsampling at the start of a stage is attention from few queries to many keys followed by an MLP, so
    it counts as a block. There is no shortcut around that attention.
    """
    stages = children(module, "stages")
    attention_of: dict[str, str] = {}
    stage_of: dict[str, str] = {}
    for stage in stages:
        if not isinstance(module.get_submodule(f"{stage}.downsample"), nn.Identity):
            attention_of[f"{stage}.downsample"] = f"{stage}.downsample.attn_downsample"
        attention_of |= {block: f"{block}.attn" for block in children(module, f"{stage}.blocks")}
        stage_of |= {block: stage for block in attention_of if block not in stage_of}
    blocks = tuple(attention_of)
    shapes = output_shapes(module, size, ["stem", *stages, *blocks, *attention_of.values()])

    grid = _grid(shapes["stem"])
    layouts: dict[str, Layout] = {}
    for stage in stages:
        if f"{stage}.downsample" in attention_of:
            grid = half_up(grid)
        layout = Layout("nchw" if module.use_conv else "tokens", grid)
        names = [stage] + [
            name for block in blocks if stage_of[block] == stage for name in (block, attention_of[block])
        ]
        layouts |= same_layout(layout, {name: shapes[name] for name in names})
    return Anatomy(
        kind="transformer",
        size=size,
        # The head averages the tokens that the last block puts out: each has the same direct share in the
        # logit, as the positions of a ResNet's last stage have.
        target_layer=blocks[-1],
        feature_layers=stages,
        layouts=layouts,
        blocks=blocks,
        attention=tuple(attention_of.values()),
        norms=(None,) * len(blocks),
    )


def nest(module: nn.Module, size: Size) -> Anatomy:
    """NesT: levels put out maps; the blocks inside see [N, image blocks, positions in a block, C]."""
    levels = children(module, "levels")
    inside = {level: children(module, f"{level}.transformer_encoder") for level in levels}
    blocks = tuple(block for level in levels for block in inside[level])
    parts = ("", ".norm1", ".attn")
    shapes = output_shapes(module, size, [*levels, *(block + part for block in blocks for part in parts), "norm"])
    layouts: dict[str, Layout] = {}
    for level in levels:
        grid = _grid(shapes[level])
        side = int(module.get_submodule(level).block_size)  # type: ignore[arg-type]
        layouts |= same_layout(Layout("nchw", grid), {level: shapes[level]})
        names = [block + part for block in inside[level] for part in parts]
        layouts |= same_layout(Layout("blocked", grid, side=side), {name: shapes[name] for name in names})
    layouts |= same_layout(Layout("nhwc", grid), {"norm": shapes["norm"]})
    return Anatomy(
        kind="transformer",
        size=size,
        target_layer="norm",  # this is what the head averages over positions
        feature_layers=levels,
        layouts=layouts,
        blocks=blocks,
        attention=tuple(f"{block}.attn" for block in blocks),
        norms=tuple(f"{block}.norm1" for block in blocks),
    )


def swin(module: nn.Module, size: Size) -> Anatomy:
    """Swin: [N, h, w, C] everywhere but inside the attention, which sees windows."""
    return _swin(module, size, normalized_before=True)


def swin_v2(module: nn.Module, size: Size) -> Anatomy:
    """Swin V2: as Swin, but its blocks normalize after the attention."""
    return _swin(module, size, normalized_before=False)


def _swin(module: nn.Module, size: Size, normalized_before: bool) -> Anatomy:
    stages = children(module, "layers")
    blocks = tuple(block for stage in stages for block in children(module, f"{stage}.blocks"))
    norms = tuple(f"{block}.norm1" for block in blocks)
    shapes = output_shapes(module, size, [*stages, *blocks, *norms, "norm"])
    return Anatomy(
        kind="transformer",
        size=size,
        # The final norm is what the head averages over positions.
        target_layer=norms[-1] if normalized_before else "norm",
        feature_layers=stages,
        # timm's Swin is channels-last by definition: axes 1 and 2 are rows and columns.
        layouts={name: Layout("nhwc", (shape[1], shape[2])) for name, shape in shapes.items()},
        blocks=blocks,
        attention=tuple(f"{block}.attn" for block in blocks),
        norms=norms if normalized_before else (None,) * len(blocks),
    )


def resnet(module: nn.Module, size: Size) -> Anatomy:
    """ResNet, ResNet-D and all that share its stages."""
    stages = tuple(f"layer{i}" for i in range(1, 5) if hasattr(module, f"layer{i}"))
    return convolutional(module, size, stages, target=children(module, stages[-1])[-1])


def convnext(module: nn.Module, size: Size) -> Anatomy:
    """ConvNeXt: blocks work channels-last inside but put out [N, C, h, w]."""
    stages = children(module, "stages")
    return convolutional(module, size, stages, target=stages[-1])


def vgg(module: nn.Module, size: Size) -> Anatomy:
    """VGG with and without batch normalization: the activations before each pooling."""
    layers = last_activations_before_pools(module, "features")
    return convolutional(module, size, layers, target=layers[-1])


def efficientnet(module: nn.Module, size: Size) -> Anatomy:
    """EfficientNet, MobileNetV2: a final 1×1 convolution before pooling; ``bn2`` carries its activation."""
    stages = children(module, "blocks")
    if not isinstance(module.bn2, nn.Identity):
        stages = (*stages, "bn2")
    return convolutional(module, size, stages, target=stages[-1])


def mobilenet_v3(module: nn.Module, size: Size) -> Anatomy:
    """MobileNetV3: the final convolution comes after pooling, so the last stage is the last map."""
    stages = children(module, "blocks")
    return convolutional(module, size, stages, target=stages[-1])


def _grid(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a [N, C, h, w] output of a convolution."""
    if len(shape) != 4:
        raise AnatomyError(f"a map [N, C, h, w] was expected but the output has shape {shape}; {HOW_TO_REGISTER}")
    return shape[2], shape[3]


def _first_of(module: nn.Module, block: str, names: tuple[str, ...]) -> str | None:
    return next((f"{block}.{name}" for name in names if hasattr(module.get_submodule(block), name)), None)


def _vit_attention(module: nn.Module, block: str) -> str:
    body = module.get_submodule(block)
    if hasattr(body, "attn"):
        return f"{block}.attn"
    if hasattr(body, "fused_attn"):  # parallel blocks compute their attention themselves
        return block
    raise AnatomyError(
        f"blocks of class {type(body).__name__} in {type(module).__name__} are not known; {HOW_TO_REGISTER}"
    )


def _vit_target(module: nn.Module, blocks: tuple[str, ...], last_norm: str | None, read: tuple[int, ...]) -> str:
    if not read:
        # When the head pools over patch tokens, each token of the pooled layer has a direct share in the
        # logit, as the positions of a ResNet's last stage have: CAM there is what the original CAM is.
        return blocks[-1] if isinstance(module.norm, nn.Identity) else "norm"
    # Patch tokens after the last attention have gradient zero when only prefix tokens are read.
    if last_norm is not None:
        return last_norm
    if len(blocks) > 1:
        return blocks[-2]
    raise AnatomyError(
        f"{type(module).__name__} has one block and no layer before its attention to read; {HOW_TO_REGISTER}"
    )


FAMILIES = (
    Family("timm.models.vision_transformer", "VisionTransformer", vit),
    Family("timm.models.beit", "Beit", vit),
    Family("timm.models.eva", "Eva", vit),
    Family("timm.models.pit", "PoolingVisionTransformer", pit),
    Family("timm.models.levit", "Levit", levit),
    Family("timm.models.nest", "Nest", nest),
    Family("timm.models.swin_transformer", "SwinTransformer", swin),
    Family("timm.models.swin_transformer_v2", "SwinTransformerV2", swin_v2),
    Family("timm.models.resnet", "ResNet", resnet),
    Family("timm.models.convnext", "ConvNeXt", convnext),
    Family("timm.models.vgg", "VGG", vgg),
    Family("timm.models.efficientnet", "EfficientNet", efficientnet),
    Family("timm.models.mobilenetv3", "MobileNetV3", mobilenet_v3),
)
