"""The variants of ConvNeXt and Swin: what is exchanged, and what is not."""

import copy

import pytest
import timm
import torch
from torch import nn

from suffice.errors import OptionError
from suffice.vision.anatomy import describe
from suffice.vision.families import default_family
from suffice.zoo import variants
from suffice.zoo.architectures import build
from suffice.zoo.norms import TokenBatchNorm, TokenGroupNorm

FULL_SIZE = [f"{base}{norm}" for base in ("convnext_tiny_k3", "swin_tiny_w4") for norm in ("", "_bn", "_gn")]
KINDS = {"ln": nn.LayerNorm, "bn": nn.modules.batchnorm._BatchNorm, "gn": nn.GroupNorm}
TOKEN_NORMS = (TokenBatchNorm, TokenGroupNorm)


def kind_of_norm(module: nn.Module) -> str | None:
    return next((kind for kind, layer in KINDS.items() if isinstance(module, layer)), None)


def norms(module: nn.Module) -> list[str]:
    return [kind for part in module.modules() if (kind := kind_of_norm(part))]


def names_of_norms(module: nn.Module) -> set[str]:
    wrapped = {f"{name}.norm" for name, part in module.named_modules() if isinstance(part, TOKEN_NORMS)}
    bare = {name for name, part in module.named_modules() if kind_of_norm(part)}
    assert wrapped <= bare
    return bare - wrapped | {name.removesuffix(".norm") for name in wrapped}


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def shapes(module: nn.Module) -> dict[str, torch.Size]:
    return {key: value.shape for key, value in module.state_dict().items()}


SHALLOW = {"depths": (1, 1, 1, 1), "num_classes": 10}


def without_weights(name: str, **options: int) -> nn.Module:
    """One of timm's networks without memory for its weights, which takes no time to fill."""
    with torch.device("meta"):
        return timm.create_model(name, **options)


@pytest.fixture(scope="module")
def full() -> dict[str, nn.Module]:
    return {name: without_weights(name, num_classes=10) for name in FULL_SIZE}


@pytest.fixture(scope="module")
def shallow() -> dict[str, nn.Module]:
    """The same with one block a stage, and with weights, to be run."""
    return {name: timm.create_model(name, **SHALLOW).eval() for name in FULL_SIZE}


@pytest.mark.parametrize(("layer", "options"), [(TokenBatchNorm, {}), (TokenGroupNorm, {"groups": 4})])
@pytest.mark.parametrize("shape", [(5, 6, 6, 16), (5, 9, 16), (5, 16)])
@pytest.mark.parametrize("training", [True, False])
def test_token_norms_are_those_of_torch_with_channels_last(layer, options, shape, training):
    norm = layer(16, **options)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    twin = copy.deepcopy(norm.norm)
    norm.train(training)
    twin.train(training)
    tokens = torch.randn(shape) * 3 + 1

    expected = twin(tokens.reshape(5, -1, 16).transpose(1, 2)).transpose(1, 2).reshape(shape)
    torch.testing.assert_close(norm(tokens), expected, atol=1e-5, rtol=1e-5)
    for mine, its in zip(norm.norm.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(mine, its, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("layer", [TokenBatchNorm, TokenGroupNorm])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_token_norms_in_half_precision(layer, dtype):
    norm = layer(64).eval()
    tokens = torch.randn(2, 4, 4, 64)
    exact = norm(tokens)
    rounded = norm.to(dtype)(tokens.to(dtype))
    assert rounded.dtype == dtype
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("layer", [TokenBatchNorm, TokenGroupNorm])
def test_token_norms_compile_without_a_break(layer):
    norm = layer(32).eval()
    compiled = torch.compile(norm, backend="eager", fullgraph=True)
    for shape in ((2, 4, 4, 32), (3, 9, 32)):
        tokens = torch.randn(shape)
        torch.testing.assert_close(compiled(tokens), norm(tokens))


def test_synchronized_batch_norm_takes_the_place_of_the_inner_layer():
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(build("swin-4-bn"))
    inner = [part.norm for part in converted.modules() if isinstance(part, TokenBatchNorm)]
    assert inner
    assert all(isinstance(part, nn.SyncBatchNorm) for part in inner)


@pytest.mark.parametrize("base", ["convnext-3", "swin-4"])
@pytest.mark.parametrize("norm", ["bn", "gn"])
def test_every_norm_of_a_miniature_is_exchanged(base, norm):
    plain, exchanged = build(base), build(f"{base}-{norm}")
    assert set(norms(plain)) == {"ln"}
    assert norms(exchanged) == [norm] * len(norms(plain))
    assert names_of_norms(exchanged) == names_of_norms(plain)
    assert parameters(exchanged) == parameters(plain)


@pytest.mark.parametrize("base", ["convnext_tiny_k3", "swin_tiny_w4"])
@pytest.mark.parametrize("norm", ["bn", "gn"])
def test_every_norm_at_full_size_is_exchanged(full, base, norm):
    plain, exchanged = full[base], full[f"{base}_{norm}"]
    assert set(norms(plain)) == {"ln"}
    assert norms(exchanged) == [norm] * len(norms(plain))
    assert names_of_norms(exchanged) == names_of_norms(plain)


def test_group_norm_has_32_groups_at_full_size_unless_told(full):
    for name in ("convnext_tiny_k3_gn", "swin_tiny_w4_gn"):
        assert {part.num_groups for part in full[name].modules() if isinstance(part, nn.GroupNorm)} == {32}
    other = without_weights("swin_tiny_w4_gn", groups=8)
    assert {part.num_groups for part in other.modules() if isinstance(part, nn.GroupNorm)} == {8}


def test_convnext_with_small_kernels_differs_by_kernels_only(full):
    original = shapes(without_weights("convnext_tiny", num_classes=10))
    variant = shapes(full["convnext_tiny_k3"])
    assert list(variant) == list(original)
    changed = {key for key in original if original[key] != variant[key]}
    assert changed == {key for key in original if key.endswith("conv_dw.weight")}
    assert {tuple(variant[key][-2:]) for key in changed} == {(3, 3)}


def test_swin_with_small_windows_differs_in_the_first_two_stages_only(full):
    original = shapes(without_weights("swin_tiny_patch4_window7_224", num_classes=10))
    variant = shapes(full["swin_tiny_w4"])
    assert list(variant) == list(original)
    changed = {key for key in original if original[key] != variant[key]}
    tables = {f"layers.{s}.blocks.{b}.attn.relative_position_bias_table" for s in (0, 1) for b in (0, 1)}
    assert changed == tables
    windows = [[block.window_size[0] for block in stage.blocks] for stage in full["swin_tiny_w4"].layers]
    assert windows == [[4, 4], [4, 4], [7] * 6, [7, 7]]


@pytest.mark.parametrize("name", FULL_SIZE)
def test_full_size_is_known_to_timm(full, shallow, name):
    net = full[name]
    with torch.inference_mode():
        assert shallow[name](torch.randn(1, 3, 224, 224)).shape == (1, 10)
    assert name in timm.list_models("*tiny*")
    assert not timm.is_model_pretrained(name)
    with pytest.raises(RuntimeError, match="No pretrained weights"):
        timm.create_model(name, pretrained=True, **SHALLOW)

    settings = net.pretrained_cfg
    assert (settings["input_size"], settings["num_classes"], settings["pool_size"]) == ((3, 224, 224), 1000, (7, 7))
    assert isinstance(net.get_submodule(settings["first_conv"]), nn.Conv2d)
    assert net.get_submodule(settings["classifier"]) is net.get_classifier()
    peer = "convnext_tiny.fb_in1k" if "convnext" in name else "swin_tiny_patch4_window7_224.ms_in1k"
    theirs = timm.get_pretrained_cfg(peer).to_dict()
    for key in ("mean", "std", "interpolation", "crop_pct", "first_conv", "classifier"):
        assert settings[key] == theirs[key]


@pytest.mark.parametrize("name", FULL_SIZE)
def test_full_size_has_an_anatomy_and_a_family(shallow, name):
    anatomy = describe(shallow[name], 224)
    assert anatomy.grid(anatomy.target_layer) == (7, 7)
    assert len(anatomy.attention) == (4 if "swin" in name else 0)
    assert default_family(f"timm/{name}") == ("transformer" if "swin" in name else "convnext")


def test_names_of_norms_are_checked():
    with pytest.raises(OptionError, match="'ln', 'bn' or 'gn'"):
        variants.convnext_arguments(3, norm="layer")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="'ln', 'bn' or 'gn'"):
        variants.swin_arguments(4, norm="batch")  # type: ignore[arg-type]
