"""Anatomy of models from timm, torchvision, transformers and open_clip.

In transformers, module names differ between versions 4 and 5, so parts are found by what they hold rather than by
their full names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from suffice.vision.anatomy.common import (
    Describe,
    Names,
    channels_last,
    children,
    convolutional,
    each,
    grid_of,
    half_up,
    one_sequence,
    resnet,
    same_layout,
    stages_in,
    vgg,
)
from suffice.vision.anatomy.structure import Anatomy, Layout, Size
from suffice.vision.anatomy.trace import output_shapes, undescribed


def _timm_vit(module: nn.Module, size: Size) -> Anatomy:
    """ViT, DeiT, DeiT distilled, ViT with registers, BEiT, EVA."""
    blocks = children(module, "blocks")
    attention = tuple(_timm_vit_attention(module, block) for block in blocks)
    norms = tuple(_timm_vit_norm(module, block) for block in blocks)
    read: tuple[int, ...] = (0,) if module.global_pool == "token" else ()
    if getattr(module, "head_dist", None) is not None:
        read = (0, 1)
    prefix = int(module.num_prefix_tokens)  # type: ignore[arg-type]
    return one_sequence(
        module, size, blocks, attention, norms, patches="patch_embed.proj", final="norm", prefix=prefix, read=read
    )


def _timm_vit_attention(module: nn.Module, block: str) -> str:
    body = module.get_submodule(block)
    if hasattr(body, "attn"):
        return f"{block}.attn"
    if hasattr(body, "fused_attn"):  # parallel blocks compute their attention themselves
        return block
    raise undescribed(f"blocks of class {type(body).__name__} in {type(module).__name__} are not known")


def _timm_vit_norm(module: nn.Module, block: str) -> str | None:
    body = module.get_submodule(block)
    return next((f"{block}.{name}" for name in ("norm1", "in_norm") if hasattr(body, name)), None)


def _timm_staged(
    module: nn.Module,
    size: Size,
    stages: Names,
    container: str,
    inside: Callable[[str, Size], Layout],
    final: str | None = None,
    prefix: int = 0,
    read: tuple[int, ...] = (),
) -> Anatomy:
    """Stages that put out maps, and blocks in their ``container`` laid out as ``inside(stage, grid)`` says."""
    parts = {
        stage: [block + part for block in children(module, f"{stage}.{container}") for part in ("", ".norm1", ".attn")]
        for stage in stages
    }
    blocks = tuple(name for names in parts.values() for name in names[::3])
    watched = [*stages, *(name for names in parts.values() for name in names)]
    shapes = output_shapes(module, size, [*watched, final] if final else watched)
    layouts: dict[str, Layout] = {}
    for stage, names in parts.items():
        grid = grid_of(shapes[stage])
        layouts |= same_layout(Layout("nchw", grid), shapes, [stage])
        layouts |= same_layout(inside(stage, grid), shapes, names)
    if final:
        layouts |= same_layout(Layout("nhwc", grid), shapes, [final])
    attention, norms = each(blocks, "attn"), each(blocks, "norm1")
    target = final or norms[-1]
    return Anatomy("transformer", size, target, stages, layouts, prefix, read, blocks, attention, norms)


def _timm_pit(module: nn.Module, size: Size) -> Anatomy:
    """PiT, PiT distilled: stages hand over (map [N, C, h, w], prefix tokens); blocks see one sequence."""
    prefix = int(module.cls_token.shape[1])  # type: ignore[index]
    read = (0,) if module.head_dist is None else (0, 1)
    stages = children(module, "transformers")
    return _timm_staged(
        module, size, stages, "blocks", lambda _, grid: Layout("tokens", grid, prefix), prefix=prefix, read=read
    )


def _timm_nest(module: nn.Module, size: Size) -> Anatomy:
    """NesT: levels put out maps; the blocks inside see [N, image blocks, positions in a block, C]."""

    def inside(level: str, grid: Size) -> Layout:
        return Layout("blocked", grid, side=int(module.get_submodule(level).block_size))  # type: ignore[arg-type]

    # The final norm is what the head averages over positions.
    return _timm_staged(module, size, children(module, "levels"), "transformer_encoder", inside, final="norm")


def _timm_levit(module: nn.Module, size: Size) -> Anatomy:
    """LeViT: a convolutional stem, then stages of attention; no class token, no norm before attention.

    The downsampling at the start of a stage is attention from few queries to many keys followed by an MLP, so
    it counts as a block. There is no shortcut around that attention.
    """
    stages = children(module, "stages")
    attention_of: dict[str, dict[str, str]] = {}  # by stage and block
    for stage in stages:
        attention_of[stage] = {block: f"{block}.attn" for block in children(module, f"{stage}.blocks")}
        if not isinstance(module.get_submodule(f"{stage}.downsample"), nn.Identity):
            down = {f"{stage}.downsample": f"{stage}.downsample.attn_downsample"}
            attention_of[stage] = {**down, **attention_of[stage]}
    blocks = tuple(block for inside in attention_of.values() for block in inside)
    attention = tuple(name for inside in attention_of.values() for name in inside.values())
    shapes = output_shapes(module, size, ["stem", *stages, *blocks, *attention])
    grid = grid_of(shapes["stem"])
    layouts: dict[str, Layout] = {}
    for stage, inside in attention_of.items():
        if f"{stage}.downsample" in inside:
            grid = half_up(grid)
        layout = Layout("nchw" if module.use_conv else "tokens", grid)
        layouts |= same_layout(layout, shapes, [stage, *inside, *inside.values()])
    # The head averages the tokens that the last block puts out: each has the same direct share in the
    # logit, as the positions of a ResNet's last stage have.
    target, norms = blocks[-1], (None,) * len(blocks)
    return Anatomy("transformer", size, target, stages, layouts, blocks=blocks, attention=attention, norms=norms)


def _timm_swin(module: nn.Module, size: Size) -> Anatomy:
    stages = children(module, "layers")
    return channels_last(
        module, size, stages, tuple(b for stage in stages for b in children(module, f"{stage}.blocks"))
    )


def _timm_efficientnet(module: nn.Module, size: Size) -> Anatomy:
    """EfficientNet, MobileNetV2: a final 1×1 convolution before pooling; ``bn2`` carries its activation."""
    final = () if isinstance(module.bn2, nn.Identity) else ("bn2",)
    return convolutional(module, size, (*children(module, "blocks"), *final))


def _torchvision_vit(module: nn.Module, size: Size) -> Anatomy:
    blocks = children(module, "encoder.layers")
    attention, norms = each(blocks, "self_attention"), each(blocks, "ln_1")
    return one_sequence(module, size, blocks, attention, norms, patches="conv_proj", final="encoder.ln")


def _torchvision_swin(module: nn.Module, size: Size) -> Anatomy:
    """Swin: ``features`` holds the patch embedding, then stages and patch mergings in turn."""
    stages = children(module, "features")[1::2]
    return channels_last(module, size, stages, tuple(block for stage in stages for block in children(module, stage)))


def _hf_vit(module: nn.Module, size: Size, prefix: int = 1, read: tuple[int, ...] = (0,)) -> Anatomy:
    """ViT, and DeiT with a distillation token, which its head reads only beside a teacher's."""
    blocks = _hf_blocks(module)
    attention, norms = each(blocks, "attention"), each(blocks, "layernorm_before")
    patches = _one(module, "patch_embeddings.projection")
    return one_sequence(
        module, size, blocks, attention, norms, patches=patches, final=blocks[-1], prefix=prefix, read=read
    )


def _hf_tower(
    module: nn.Module, size: Size, prefix: int, read: tuple[int, ...] = (), final: str | None = None
) -> Anatomy:
    """The image tower of CLIP, read at its class token, or of SigLIP, whose head attends to all tokens."""
    blocks = children(module, _one(module, "encoder.layers"))
    attention, norms = each(blocks, "self_attn"), each(blocks, "layer_norm1")
    patches, last = _one(module, "embeddings.patch_embedding"), _one(module, final) if final else blocks[-1]
    return one_sequence(module, size, blocks, attention, norms, patches=patches, final=last, prefix=prefix, read=read)


def _open_clip_vit(module: Any, size: Size) -> Anatomy:
    """The image tower of open_clip; an attentional pooling reads all tokens."""
    blocks = children(module, "transformer.resblocks")
    read = (0,) if module.attn_pool is None and module.pool_type == "tok" else ()
    pooled_after_norm = module.attn_pool is None and not module.final_ln_after_pool
    final = "ln_post" if pooled_after_norm else blocks[-1]
    attention, norms = each(blocks, "attn"), each(blocks, "ln_1")
    return one_sequence(module, size, blocks, attention, norms, patches="conv1", final=final, prefix=1, read=read)


def _hf_swin(module: nn.Module, size: Size) -> Anatomy:
    """Swin: tokens [N, h*w, C] between blocks; a stage puts out merged tokens, on the next grid."""
    blocks = _hf_blocks(module)
    norms = each(blocks, "layernorm_before")
    patches = _one(module, "patch_embeddings.projection")
    shapes = output_shapes(module, size, [patches, *blocks, *norms])
    grid = grid_of(shapes[patches])
    layouts: dict[str, Layout] = {}
    # Not the stages themselves: what they put out belongs to the next stage's grid.
    last_of_stage = []
    for stage in children(module, _one(module, "encoder.layers")):
        inside = [block for block in blocks if block.startswith(f"{stage}.")]
        layouts |= same_layout(Layout("tokens", grid), shapes, [*inside, *each(inside, "layernorm_before")])
        last_of_stage.append(inside[-1])
        if getattr(module.get_submodule(stage), "downsample", None) is not None:
            grid = half_up(grid)
    features, attention = tuple(last_of_stage), each(blocks, "attention")
    return Anatomy("transformer", size, norms[-1], features, layouts, blocks=blocks, attention=attention, norms=norms)


def _hf_convnext(module: nn.Module, size: Size) -> Anatomy:
    return convolutional(module, size, children(module, _one(module, "encoder.stages")))


def _hf_resnet(module: nn.Module, size: Size) -> Anatomy:
    stages = children(module, _one(module, "encoder.stages"))
    return convolutional(module, size, stages, target=children(module, f"{stages[-1]}.layers")[-1])


def _hf_blocks(module: nn.Module) -> Names:
    """Names of all blocks: modules that hold an attention and the normalization before it."""
    parts = ("layernorm_before", "attention")
    return tuple(name for name, block in module.named_modules() if all(hasattr(block, part) for part in parts))


def _one(module: nn.Module, ending: str) -> str:
    """The name of the one module whose name ends like this."""
    found = [name for name, _ in module.named_modules() if f".{name}".endswith(f".{ending}")]
    if len(found) != 1:
        raise undescribed(f"one module of {type(module).__name__} should be named …{ending}, but {found or 'none'} are")
    return found[0]


_torchvision_mobile = stages_in("features")  # the last of them is a convolution with activation
_hf_deit = partial(_hf_vit, prefix=2)
_hf_deit_with_teacher = partial(_hf_vit, prefix=2, read=(0, 1))
_hf_clip = partial(_hf_tower, prefix=1, read=(0,))
_hf_siglip = partial(_hf_tower, prefix=0, final="post_layernorm")

# By the full name of the class: whoever holds an instance has imported it, and nobody else should pay for the import.
FAMILIES: dict[str, Describe] = {
    "timm.models.vision_transformer.VisionTransformer": _timm_vit,
    "timm.models.beit.Beit": _timm_vit,
    "timm.models.eva.Eva": _timm_vit,
    "timm.models.pit.PoolingVisionTransformer": _timm_pit,
    "timm.models.levit.Levit": _timm_levit,
    "timm.models.nest.Nest": _timm_nest,
    "timm.models.swin_transformer.SwinTransformer": _timm_swin,
    "timm.models.swin_transformer_v2.SwinTransformerV2": _timm_swin,
    "timm.models.resnet.ResNet": resnet,
    "timm.models.convnext.ConvNeXt": stages_in("stages"),  # channels-last only inside its blocks
    "timm.models.vgg.VGG": vgg,
    "timm.models.efficientnet.EfficientNet": _timm_efficientnet,
    # The final convolution of MobileNetV3 comes after pooling, so the last stage is the last map.
    "timm.models.mobilenetv3.MobileNetV3": stages_in("blocks"),
    "torchvision.models.vision_transformer.VisionTransformer": _torchvision_vit,
    "torchvision.models.swin_transformer.SwinTransformer": _torchvision_swin,
    "torchvision.models.resnet.ResNet": resnet,
    "torchvision.models.vgg.VGG": vgg,
    # Its features are the stem, then stages and downsamplings in turn.
    "torchvision.models.convnext.ConvNeXt": stages_in("features", slice(1, None, 2)),
    "torchvision.models.efficientnet.EfficientNet": _torchvision_mobile,
    "torchvision.models.mobilenetv2.MobileNetV2": _torchvision_mobile,
    "torchvision.models.mobilenetv3.MobileNetV3": _torchvision_mobile,
    "transformers.models.vit.modeling_vit.ViTForImageClassification": _hf_vit,
    "transformers.models.deit.modeling_deit.DeiTForImageClassification": _hf_deit,
    "transformers.models.deit.modeling_deit.DeiTForImageClassificationWithTeacher": _hf_deit_with_teacher,
    "transformers.models.swin.modeling_swin.SwinForImageClassification": _hf_swin,
    "transformers.models.convnext.modeling_convnext.ConvNextForImageClassification": _hf_convnext,
    "transformers.models.resnet.modeling_resnet.ResNetForImageClassification": _hf_resnet,
    # The towers of CLIPModel and SiglipModel: a "…Transformer" until version 5 of transformers, a "…Model" since.
    "transformers.models.clip.modeling_clip.CLIPVisionModel": _hf_clip,
    "transformers.models.clip.modeling_clip.CLIPVisionTransformer": _hf_clip,
    "transformers.models.clip.modeling_clip.CLIPForImageClassification": partial(_hf_tower, prefix=1),
    "transformers.models.siglip.modeling_siglip.SiglipVisionModel": _hf_siglip,
    "transformers.models.siglip.modeling_siglip.SiglipVisionTransformer": _hf_siglip,
    "transformers.models.siglip.modeling_siglip.SiglipForImageClassification": _hf_siglip,
    "open_clip.transformer.VisionTransformer": _open_clip_vit,
    "open_clip.modified_resnet.ModifiedResNet": resnet,
}


def known_family(module: nn.Module) -> Describe | None:
    """How to describe the module, if its class or one that it is derived from is of a known family."""
    names = (f"{cls.__module__}.{cls.__qualname__}" for cls in type(module).__mro__)
    return next((FAMILIES[name] for name in names if name in FAMILIES), None)
