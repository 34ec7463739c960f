"""One small model of each family, with what is true of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch import nn

torch.set_num_threads(1)


@dataclass(frozen=True)
class Specimen:
    name: str
    build: Callable[[], nn.Module]
    size: tuple[int, int]
    target: str
    prefix: int = 0
    read: tuple[int, ...] = ()
    grid: tuple[int, int] | None = None  # of the last block
    blocks: int = 0
    features: tuple[tuple[int, int], ...] = field(default=())  # grid of each feature layer

    def model(self) -> nn.Module:
        """A model in training mode, no parameter zero; shared between tests, which leave it as it is."""
        return _built(self.name)

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        output = self.model()(images)
        return output if isinstance(output, torch.Tensor) else output.logits

    def images(self, n: int = 2) -> torch.Tensor:
        return torch.randn(n, 3, *self.size, generator=torch.Generator().manual_seed(7))


@cache
def _built(name: str) -> nn.Module:
    torch.manual_seed(0)
    model = BY_NAME[name].build()
    with torch.no_grad():
        for parameter in model.parameters():  # families start some weights at zero, which hides gradients
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model.train()


def timm_vit(**options: Any) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    defaults = {
        "img_size": 64,
        "patch_size": 16,
        "embed_dim": 24,
        "depth": 2,
        "num_heads": 3,
        "num_classes": 10,
    }
    return VisionTransformer(**{**defaults, **options})


def timm_res_post() -> nn.Module:
    from timm.models.vision_transformer import ResPostBlock

    return timm_vit(depth=3, block_fn=ResPostBlock)


def timm_parallel() -> nn.Module:
    from timm.models.vision_transformer import ParallelScalingBlock

    return timm_vit(block_fn=ParallelScalingBlock)


def timm_named(name: str, **options: Any) -> nn.Module:
    import timm

    return timm.create_model(name, num_classes=10, **options)


def timm_beit(**options: Any) -> nn.Module:
    from timm.models.beit import Beit

    return Beit(img_size=64, embed_dim=24, depth=2, num_heads=3, num_classes=10, use_rel_pos_bias=True, **options)


def timm_eva() -> nn.Module:
    from timm.models.eva import Eva

    return Eva(
        img_size=64,
        embed_dim=24,
        depth=2,
        num_heads=3,
        num_classes=10,
        use_rot_pos_emb=True,
        global_pool="token",
    )


def timm_pit(distilled: bool) -> nn.Module:
    from timm.models.pit import PoolingVisionTransformer

    return PoolingVisionTransformer(
        img_size=64,
        base_dims=(8, 8, 8),
        depth=(1, 2, 1),
        heads=(1, 2, 4),
        num_classes=10,
        distilled=distilled,
    )


def timm_levit(use_conv: bool, img_size: int = 128) -> nn.Module:
    from timm.models.levit import LevitDistilled

    net = LevitDistilled(
        img_size=img_size,
        embed_dim=(16, 24, 32),
        key_dim=8,
        depth=(1, 1, 2),
        num_heads=(2, 3, 4),
        num_classes=10,
        use_conv=use_conv,
    )
    # No shortcut leads around the downsampling attention: things stay in place only if attention is local.
    for part in net.modules():
        if hasattr(part, "attention_biases"):
            rows, columns = part.resolution
            distance = torch.arange(rows)[:, None] + torch.arange(columns)
            part.attention_biases.data.copy_(-3.0 * distance.flatten())
    return net


def timm_nest() -> nn.Module:
    from timm.models.nest import Nest

    # Four heads on the second level, which also has four image blocks.
    return Nest(img_size=32, embed_dims=(8, 16, 24), num_heads=(2, 4, 3), depths=(1, 1, 2), num_classes=10)


def timm_swin() -> nn.Module:
    from timm.models.swin_transformer import SwinTransformer

    # 16 channels on a grid of 16×16: shapes alone do not tell the axes.
    return SwinTransformer(img_size=64, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4, num_classes=10)


def timm_swin_v2() -> nn.Module:
    from timm.models.swin_transformer_v2 import SwinTransformerV2

    return SwinTransformerV2(img_size=64, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4, num_classes=10)


def timm_convnext() -> nn.Module:
    from timm.models.convnext import ConvNeXt

    return ConvNeXt(depths=(1, 1, 1, 1), dims=(8, 16, 24, 32), num_classes=10)


def timm_vgg(norm: bool) -> nn.Module:
    from timm.models.vgg import VGG

    return VGG(
        cfg=[8, "M", 16, 16, "M"],
        mlp_ratio=0.01,
        num_classes=10,
        norm_layer=nn.BatchNorm2d if norm else None,
    )


def tv_vit() -> nn.Module:
    from torchvision.models import VisionTransformer

    return VisionTransformer(64, 16, num_layers=2, num_heads=4, hidden_dim=24, mlp_dim=32, num_classes=10)


def tv_swin(v2: bool) -> nn.Module:
    from torchvision.models import swin_transformer as tv

    parts = {"block": tv.SwinTransformerBlockV2, "downsample_layer": tv.PatchMergingV2} if v2 else {}
    return tv.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=10, **parts)


def tv_named(name: str) -> nn.Module:
    import torchvision

    return getattr(torchvision.models, name)(num_classes=10)


def tv_vgg(norm: bool) -> nn.Module:
    from torchvision.models import vgg

    layers = vgg.make_layers([8, "M", 16, "M"], batch_norm=norm)
    with torch.device("meta"):  # its classifier alone would take half a gigabyte
        net = vgg.VGG(layers, num_classes=10, init_weights=False)
    net.classifier = nn.Sequential(nn.Linear(16 * 49, 10))
    return net


def tv_convnext() -> nn.Module:
    from torchvision.models import convnext as tv

    stages = [tv.CNBlockConfig(8, 16, 1), tv.CNBlockConfig(16, 24, 1), tv.CNBlockConfig(24, None, 1)]
    return tv.ConvNeXt(stages, num_classes=10)


def hf(family: str, head: str = "ForImageClassification", **options: Any) -> nn.Module:
    import transformers

    config = getattr(transformers, f"{family}Config")(num_labels=10, **options)
    return getattr(transformers, family + head)(config)


def zero_shot(vision: nn.Module, projection: nn.Module | None = None, width: int = 24) -> nn.Module:
    from suffice.vision.zero_shot import ZeroShot

    texts = nn.functional.normalize(torch.randn(10, width), dim=1)
    return ZeroShot(vision, projection or nn.Identity(), texts, scale=10.0)


def hf_clip() -> nn.Module:
    import transformers

    text = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 32}
    config = transformers.CLIPConfig(vision_config=HF_PLAIN, text_config={**text, "vocab_size": 8}, projection_dim=20)
    model = transformers.CLIPModel(config)
    return zero_shot(model.vision_model, model.visual_projection, 20)


def hf_siglip() -> nn.Module:
    import transformers

    return zero_shot(transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**HF_PLAIN)))


def open_clip_vit(**options: Any) -> nn.Module:
    towers = pytest.importorskip("open_clip.transformer", reason="open_clip is not installed")
    return zero_shot(towers.VisionTransformer(64, 16, 24, 2, 3, mlp_ratio=2, output_dim=24, **options))


def open_clip_resnet() -> nn.Module:
    towers = pytest.importorskip("open_clip.modified_resnet", reason="open_clip is not installed")
    return zero_shot(towers.ModifiedResNet((1, 1, 1, 1), output_dim=24, heads=4, image_size=64, width=8))


HF_PLAIN = {
    "image_size": 64,
    "patch_size": 16,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 32,
}
HF_SWIN = {"image_size": 64, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}

SQUARE = (64, 64)
TWO_BLOCKS = ((4, 4), (4, 4))
HALVING = ((16, 16), (8, 8), (4, 4), (2, 2))
VIT = {"size": SQUARE, "grid": (4, 4), "blocks": 2, "features": TWO_BLOCKS}
SWIN = {"size": SQUARE, "grid": (8, 8), "blocks": 4, "features": ((16, 16), (8, 8))}

SPECIMENS = (
    Specimen("vit", timm_vit, **VIT, target="blocks.1.norm1", prefix=1, read=(0,)),
    Specimen(
        "vit-oblong",
        partial(timm_vit, img_size=(64, 96)),
        (64, 96),
        "blocks.1.norm1",
        1,
        (0,),
        (4, 6),
        2,
        ((4, 6), (4, 6)),
    ),
    Specimen(
        "vit-dynamic",
        partial(timm_vit, dynamic_img_size=True),
        (96, 64),
        "blocks.1.norm1",
        1,
        (0,),
        (6, 4),
        2,
        ((6, 4), (6, 4)),
    ),
    Specimen(
        "vit-registers",
        partial(timm_vit, reg_tokens=4),
        **VIT,
        target="blocks.1.norm1",
        prefix=5,
        read=(0,),
    ),
    # As many channels as tokens.
    Specimen(
        "vit-gap",
        partial(timm_vit, global_pool="avg", class_token=False, embed_dim=16, num_heads=2),
        **VIT,
        target="blocks.1",
    ),
    Specimen(
        "vit-gap-norm",
        partial(timm_vit, global_pool="avg", fc_norm=False, reg_tokens=2),
        **VIT,
        target="norm",
        prefix=3,
    ),
    Specimen("vit-map", partial(timm_vit, global_pool="map", class_token=False), **VIT, target="norm"),
    Specimen(
        "vit-post-norm",
        timm_res_post,
        SQUARE,
        "blocks.1",
        prefix=1,
        read=(0,),
        grid=(4, 4),
        blocks=3,
        features=((4, 4),) * 3,
    ),
    Specimen("vit-parallel", timm_parallel, **VIT, target="blocks.1.in_norm", prefix=1, read=(0,)),
    Specimen(
        "deit",
        partial(timm_named, "deit_tiny_patch16_224", depth=2, img_size=64),
        **VIT,
        target="blocks.1.norm1",
        prefix=1,
        read=(0,),
    ),
    Specimen(
        "deit-distilled",
        partial(timm_named, "deit_tiny_distilled_patch16_224", depth=2, img_size=64),
        **VIT,
        target="blocks.1.norm1",
        prefix=2,
        read=(0, 1),
    ),
    Specimen("beit", timm_beit, **VIT, target="blocks.1", prefix=1),
    Specimen(
        "beit-token",
        partial(timm_beit, global_pool="token"),
        **VIT,
        target="blocks.1.norm1",
        prefix=1,
        read=(0,),
    ),
    Specimen("eva", timm_eva, **VIT, target="blocks.1.norm1", prefix=1, read=(0,)),
    Specimen(
        "pit",
        partial(timm_pit, distilled=False),
        SQUARE,
        "transformers.2.blocks.0.norm1",
        1,
        (0,),
        (2, 2),
        4,
        ((7, 7), (4, 4), (2, 2)),
    ),
    Specimen(
        "pit-distilled",
        partial(timm_pit, distilled=True),
        SQUARE,
        "transformers.2.blocks.0.norm1",
        2,
        (0, 1),
        (2, 2),
        4,
        ((7, 7), (4, 4), (2, 2)),
    ),
    Specimen(
        "levit",
        partial(timm_levit, use_conv=False),
        (128, 128),
        "stages.2.blocks.1",
        grid=(2, 2),
        blocks=6,
        features=((8, 8), (4, 4), (2, 2)),
    ),
    Specimen(
        "levit-conv",
        partial(timm_levit, use_conv=True),
        (128, 128),
        "stages.2.blocks.1",
        grid=(2, 2),
        blocks=6,
        features=((8, 8), (4, 4), (2, 2)),
    ),
    Specimen(
        "levit-odd",
        partial(timm_levit, use_conv=False, img_size=80),
        (80, 80),
        "stages.2.blocks.1",
        grid=(2, 2),
        blocks=6,
        features=((5, 5), (3, 3), (2, 2)),
    ),
    Specimen(
        "nest",
        timm_nest,
        (32, 32),
        "norm",
        grid=(2, 2),
        blocks=4,
        features=((8, 8), (4, 4), (2, 2)),
    ),
    Specimen("swin", timm_swin, **SWIN, target="layers.1.blocks.1.norm1"),
    Specimen("swin-v2", timm_swin_v2, **SWIN, target="norm"),
    Specimen(
        "convnext",
        timm_convnext,
        SQUARE,
        "stages.3",
        features=HALVING,
    ),
    Specimen("resnet", partial(timm_named, "resnet18"), SQUARE, "layer4.1", features=HALVING),
    Specimen(
        "resnet-oblong",
        partial(timm_named, "resnet18"),
        (64, 96),
        "layer4.1",
        features=((16, 24), (8, 12), (4, 6), (2, 3)),
    ),
    Specimen("resnet-d", partial(timm_named, "resnet18d"), SQUARE, "layer4.1", features=HALVING),
    Specimen("vgg", partial(timm_vgg, norm=False), SQUARE, "features.6", features=((64, 64), (32, 32))),
    Specimen("vgg-bn", partial(timm_vgg, norm=True), SQUARE, "features.9", features=((64, 64), (32, 32))),
    Specimen(
        "efficientnet",
        partial(timm_named, "efficientnet_b0"),
        SQUARE,
        "bn2",
        features=((32, 32), (16, 16), (8, 8), (4, 4), (4, 4), (2, 2), (2, 2), (2, 2)),
    ),
    Specimen(
        "mobilenet-v2",
        partial(timm_named, "mobilenetv2_050"),
        SQUARE,
        "bn2",
        features=((32, 32), (16, 16), (8, 8), (4, 4), (4, 4), (2, 2), (2, 2), (2, 2)),
    ),
    Specimen(
        "mobilenet-v3",
        partial(timm_named, "mobilenetv3_small_050"),
        SQUARE,
        "blocks.5",
        features=((16, 16), (8, 8), (4, 4), (4, 4), (2, 2), (2, 2)),
    ),
    Specimen(
        "tv-vit",
        tv_vit,
        **VIT,
        target="encoder.layers.encoder_layer_1.ln_1",
        prefix=1,
        read=(0,),
    ),
    Specimen("tv-swin", partial(tv_swin, v2=False), **SWIN, target="features.3.1.norm1"),
    Specimen("tv-swin-v2", partial(tv_swin, v2=True), **SWIN, target="norm"),
    Specimen("tv-convnext", tv_convnext, SQUARE, "features.5", features=((16, 16), (8, 8), (4, 4))),
    Specimen("tv-resnet", partial(tv_named, "resnet18"), SQUARE, "layer4.1", features=HALVING),
    Specimen("tv-vgg", partial(tv_vgg, norm=False), SQUARE, "features.4", features=((64, 64), (32, 32))),
    Specimen("tv-vgg-bn", partial(tv_vgg, norm=True), SQUARE, "features.6", features=((64, 64), (32, 32))),
    Specimen(
        "tv-efficientnet",
        partial(tv_named, "efficientnet_b0"),
        SQUARE,
        "features.8",
        features=((32, 32), (32, 32), (16, 16), (8, 8), (4, 4), (4, 4), (2, 2), (2, 2), (2, 2)),
    ),
    Specimen("tv-mobilenet-v2", partial(tv_named, "mobilenet_v2"), SQUARE, "features.18"),
    Specimen("tv-mobilenet-v3", partial(tv_named, "mobilenet_v3_small"), SQUARE, "features.12"),
    Specimen(
        "hf-vit",
        partial(hf, "ViT", **HF_PLAIN),
        **VIT,
        target="vit.layers.1.layernorm_before",
        prefix=1,
        read=(0,),
    ),
    Specimen(
        "hf-deit",
        partial(hf, "DeiT", **HF_PLAIN),
        **VIT,
        target="deit.layers.1.layernorm_before",
        prefix=2,
        read=(0,),
    ),
    Specimen(
        "hf-deit-teacher",
        partial(hf, "DeiT", "ForImageClassificationWithTeacher", **HF_PLAIN),
        **VIT,
        target="deit.layers.1.layernorm_before",
        prefix=2,
        read=(0, 1),
    ),
    Specimen(
        "hf-swin",
        partial(hf, "Swin", **HF_SWIN),
        **SWIN,
        target="swin.encoder.layers.1.blocks.1.layernorm_before",
    ),
    Specimen(
        "hf-swin-odd",
        partial(hf, "Swin", **{**HF_SWIN, "image_size": 28}),
        (28, 28),
        "swin.encoder.layers.1.blocks.1.layernorm_before",
        grid=(4, 4),
        blocks=4,
        features=((7, 7), (4, 4)),
    ),
    Specimen(
        "hf-convnext",
        partial(hf, "ConvNext", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
        SQUARE,
        "convnext.encoder.stages.3",
        features=HALVING,
    ),
    Specimen(
        "hf-resnet",
        partial(hf, "ResNet", embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 2]),
        SQUARE,
        "resnet.encoder.stages.3.layers.1",
        features=HALVING,
    ),
    Specimen("hf-clip", hf_clip, **VIT, target="vision.encoder.layers.1.layer_norm1", prefix=1, read=(0,)),
    Specimen("hf-siglip", hf_siglip, **VIT, target="vision.post_layernorm"),
    # Classifiers made of the towers average the tokens of patches.
    Specimen(
        "hf-clip-head",
        partial(hf, "CLIP", vision_config=HF_PLAIN),
        **VIT,
        target="vision_model.encoder.layers.1",
        prefix=1,
    ),
    Specimen(
        "hf-siglip-head",
        partial(hf, "Siglip", vision_config=HF_PLAIN),
        **VIT,
        target="vision_model.post_layernorm",
    ),
    Specimen("open-clip", open_clip_vit, **VIT, target="vision.transformer.resblocks.1.ln_1", prefix=1, read=(0,)),
    Specimen("open-clip-avg", partial(open_clip_vit, pool_type="avg"), **VIT, target="vision.ln_post", prefix=1),
    Specimen(
        "open-clip-attention",
        partial(open_clip_vit, attentional_pool=True, attn_pooler_heads=3, attn_pooler_queries=4),
        **VIT,
        target="vision.transformer.resblocks.1",
        prefix=1,
    ),
    Specimen("open-clip-resnet", open_clip_resnet, SQUARE, "vision.layer4.0", features=HALVING),
)
BY_NAME = {specimen.name: specimen for specimen in SPECIMENS}
TRANSFORMERS = tuple(specimen for specimen in SPECIMENS if specimen.blocks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for argument, specimens in (("specimen", SPECIMENS), ("transformer", TRANSFORMERS)):
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, specimens, ids=[specimen.name for specimen in specimens])


@pytest.fixture
def find() -> Callable[[str], Specimen]:
    return BY_NAME.__getitem__
