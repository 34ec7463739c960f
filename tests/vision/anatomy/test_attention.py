from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from suffice.errors import AnatomyError
from suffice.vision.anatomy import describe, record
from suffice.vision.anatomy.attention import AttentionCapture, computes_attention


def recorded_attention(specimen: Any) -> dict[str, Tensor]:
    names = describe(specimen.model(), specimen.size).attention
    with record(specimen.model(), attention=names) as seen:
        specimen.logits(specimen.images())
    return seen.attention


def test_every_attention_is_a_distribution_over_keys(transformer):
    attention = recorded_attention(transformer)
    anatomy = describe(transformer.model(), transformer.size)
    assert tuple(attention) == anatomy.attention
    for block, name in zip(anatomy.blocks, anatomy.attention, strict=True):
        weights = attention[name]
        assert weights.dim() == 4
        assert weights.shape[0] % 2 == 0  # two images, perhaps cut in windows
        assert (weights >= 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
        h, w = anatomy.grid(block)
        queries = weights.shape[0] // 2 * weights.shape[2]
        if transformer.name == "hf-swin-odd":  # windows are filled up
            assert queries > h * w or block.startswith("swin.encoder.layers.1")
        else:
            assert queries == anatomy.prefix_tokens + h * w, "each token asks once in each image"
        assert weights.std() > 0


@pytest.mark.parametrize(
    "name", ["vit", "vit-registers", "vit-parallel", "deit-distilled", "beit", "eva", "pit", "swin", "nest"]
)
def test_timm_agrees_with_its_unfused_attention(find, name):
    specimen = find(name)
    fused = copy.deepcopy(specimen.model())
    plain = copy.deepcopy(specimen.model()).eval()
    names = describe(fused, specimen.size).attention
    dropped: dict[str, Tensor] = {}
    for attention_name in names:
        fused.get_submodule(attention_name).fused_attn = True
        part = plain.get_submodule(attention_name)
        part.fused_attn = False

        def keep(_module: nn.Module, inputs: tuple[Tensor], _output: Tensor, key: str = attention_name) -> None:
            dropped[key] = inputs[0]

        part.attn_drop.register_forward_hook(keep)
    with record(fused, attention=names) as seen:
        fused(specimen.images())
    with torch.no_grad():
        plain(specimen.images())
    assert len(dropped) == specimen.blocks
    for key, weights in seen.attention.items():
        expected = dropped[key]
        if name == "nest":  # [N, heads, image blocks, queries, keys]
            expected = torch.cat([image.transpose(0, 1) for image in expected])
        torch.testing.assert_close(weights, expected, atol=1e-6, rtol=1e-4)


def test_swin_v2_agrees_with_its_softmax_module(find):
    specimen = find("swin-v2")
    attention = recorded_attention(specimen)
    plain = copy.deepcopy(specimen.model()).eval()
    outputs: list[Tensor] = []
    for key in attention:
        plain.get_submodule(key).softmax.register_forward_hook(lambda _m, _x, output: outputs.append(output))
    with torch.no_grad():
        plain(specimen.images())
    for weights, expected in zip(attention.values(), outputs, strict=True):
        torch.testing.assert_close(weights, expected)


def test_levit_agrees_with_a_literal_computation(find):
    specimen = find("levit")
    name = "stages.1.downsample.attn_downsample"
    anatomy = describe(specimen.model(), specimen.size)
    before = anatomy.feature_layers[0]
    with record(specimen.model(), [before, name], [name]) as seen:
        specimen.logits(specimen.images())
    part = copy.deepcopy(specimen.model().get_submodule(name))
    part.eval()
    x = seen.activations[before]
    n, heads, dim = x.shape[0], part.num_heads, part.key_dim
    assert seen.attention[name].shape == (n, heads, 16, 64)
    with torch.no_grad():
        keys_values = part.kv(x).view(n, 64, heads, -1)
        queries = part.q(x).view(n, 16, heads, dim)
        mixed = torch.zeros(n, 16, heads, part.val_dim)
        for i in range(n):
            for head in range(heads):
                keys, values = keys_values[i, :, head].split([dim, part.val_dim], dim=-1)
                scores = queries[i, :, head] @ keys.T * dim**-0.5
                scores = scores + part.attention_biases[head][part.attention_bias_idxs]
                weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
                torch.testing.assert_close(seen.attention[name][i, head], weights, atol=1e-6, rtol=1e-4)
                mixed[i, :, head] = weights @ values
        torch.testing.assert_close(part.proj(mixed.flatten(2)), seen.activations[name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["hf-vit", "hf-deit", "hf-deit-teacher"])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_transformers_agrees_with_output_attentions(find, name, implementation):
    specimen = find(name)
    plain = copy.deepcopy(specimen.model()).eval()
    plain.set_attn_implementation("eager")
    with torch.no_grad():
        expected = plain(specimen.images(), output_attentions=True).attentions
    model = copy.deepcopy(specimen.model())
    model.set_attn_implementation(implementation)
    names = describe(model, specimen.size).attention
    with record(model, attention=names) as seen:
        model(specimen.images())
    assert model.config._attn_implementation == implementation
    assert len(expected) == len(names)
    for key, weights in zip(names, expected, strict=True):
        torch.testing.assert_close(seen.attention[key], weights, atol=1e-6, rtol=1e-4)


def test_transformers_swin_agrees_with_output_attentions(find):
    specimen = find("hf-swin")
    attention = recorded_attention(specimen)
    plain = copy.deepcopy(specimen.model()).eval()
    plain.set_attn_implementation("eager")
    with torch.no_grad():
        expected = plain(specimen.images(), output_attentions=True).attentions  # last block of each stage
    for stage, weights in enumerate(expected):
        key = f"swin.encoder.layers.{stage}.blocks.1.attention"
        torch.testing.assert_close(attention[key], weights, atol=1e-6, rtol=1e-4)


def test_torchvision_vit_agrees_with_the_weights_that_torch_returns(find):
    specimen = find("tv-vit")
    names = describe(specimen.model(), specimen.size).attention
    norms = [name.replace("self_attention", "ln_1") for name in names]
    with record(specimen.model(), [*norms, *names], names) as seen:
        specimen.logits(specimen.images())
    for norm, name in zip(norms, names, strict=True):
        x = seen.activations[norm]
        part = copy.deepcopy(specimen.model().get_submodule(name)).eval()
        output, weights = part(x, x, x, need_weights=True, average_attn_weights=False)
        torch.testing.assert_close(seen.attention[name], weights, atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(seen.activations[name], output, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", ["vit", "nest", "swin", "swin-v2", "levit", "tv-vit", "tv-swin", "hf-vit", "hf-swin"])
def test_gradients_at_attention_are_those_of_finite_differences(find, name):
    """Change an attention matrix a little by hand: the logit moves as the gradient says."""
    specimen = find(name)
    module = copy.deepcopy(specimen.model()).double().eval()
    images = specimen.images().double()

    def logit() -> Tensor:
        output = module(images)
        return (output if isinstance(output, Tensor) else output.logits)[:, 3].sum()

    attention = describe(module, specimen.size).attention[1]
    with record(module, attention=[attention], gradients=True) as seen:
        slope = seen.gradients(logit()).attention[attention]
    assert slope.abs().max() > 0
    direction = torch.randn(slope.shape, dtype=slope.dtype, generator=torch.Generator().manual_seed(1))

    def moved(step: float) -> float:
        capture = AttentionCapture(lambda _name, weights: weights + step * direction)
        part = module.get_submodule(attention)
        handles = [
            part.register_forward_pre_hook(lambda m, x, k: capture.entering("", m, x, k), with_kwargs=True),
            part.register_forward_hook(lambda *_: capture.leaving()),
        ]
        with capture, torch.no_grad():
            result = logit().item()
        for handle in handles:
            handle.remove()
        return result

    step = 1e-5
    expected = (moved(step) - moved(-step)) / (2 * step)
    assert (slope * direction).sum().item() == pytest.approx(expected, rel=1e-4, abs=1e-9)


class Attention(nn.Module):
    """Attention with whatever arguments are given."""

    num_heads = 4

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, **self.options)


def sequences(key_heads: int = 4, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    q = torch.randn(2, 4, 5, 8, generator=g)
    k = torch.randn(2, key_heads, 6, 8, generator=g)
    v = torch.randn(2, key_heads, 6, 3, generator=g)
    return q.to(dtype), k.to(dtype), v.to(dtype)


VISIBLE = torch.rand(5, 6, generator=torch.Generator().manual_seed(2)) > 0.5
VISIBLE[0] = False  # a query that sees nothing
VISIBLE[1] = True


@pytest.mark.parametrize(
    ("options", "key_heads"),
    [
        ({}, 4),
        ({"scale": 0.1}, 4),
        ({"is_causal": True}, 4),
        ({"attn_mask": VISIBLE}, 4),
        ({"attn_mask": torch.randn(2, 1, 5, 6)}, 4),
        ({"attn_mask": torch.zeros(5, 6).masked_fill(~VISIBLE, float("-inf"))}, 4),
        ({"enable_gqa": True}, 2),
    ],
)
def test_scaled_dot_product_attention_is_reproduced(options, key_heads):
    module = Attention(**options)
    q, k, v = sequences(key_heads)
    with record(module, attention=[""]) as seen:
        output = module(q, k, v)
    torch.testing.assert_close(output, F.scaled_dot_product_attention(q, k, v, **options))
    weights = seen.attention[""]
    assert weights.shape == (2, 4, 5, 6)
    blind = 1 if options.get("attn_mask") is not None and (weights[:, :, 0] == 0).all() else 0
    torch.testing.assert_close(weights[:, :, blind:].sum(-1), torch.ones(2, 4, 5 - blind))
    torch.testing.assert_close(weights @ v.repeat_interleave(4 // key_heads, 1), output)


def test_half_precision_is_as_precise_as_the_fused_kernel():
    q, k, v = sequences(dtype=torch.bfloat16)
    module = Attention()
    with record(module, attention=[""]) as seen:
        output = module(q, k, v)
    assert output.dtype == seen.attention[""].dtype == torch.bfloat16
    torch.testing.assert_close(output, F.scaled_dot_product_attention(q, k, v), atol=2e-2, rtol=2e-2)


def test_dropout_in_evaluation_mode_is_refused():
    module = Attention(dropout_p=0.5)
    with pytest.raises(AnatomyError, match="at random"), record(module, attention=[""]):
        module(*sequences())


class Handmade(nn.Module):
    """Single-head or head-folded attention written by hand, with in-place arithmetic."""

    def __init__(self, how: str, heads: int = 1) -> None:
        super().__init__()
        self.how = how
        self.num_heads = heads

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        folded = x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2).flatten(0, 1)
        scores = folded @ folded.transpose(1, 2)
        if self.how == "torch":
            weights = torch.softmax(scores, dim=-1)
        elif self.how == "method":
            weights = scores.softmax(2)
        elif self.how == "functional":
            weights = F.softmax(scores, -1)
        else:
            weights = nn.Softmax(dim=-1)(scores)
        weights.mul_(2)  # after it was recorded
        return (weights @ folded).unflatten(0, (n, self.num_heads)).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("how", ["torch", "method", "functional", "module"])
def test_softmax_in_any_spelling_is_seen(how, heads):
    module = Handmade(how, heads)
    x = torch.randn(3, 5, 4)
    with record(module, attention=[""], gradients=True) as seen:
        output = module(x)
        slopes = seen.gradients(output)
    torch.testing.assert_close(output.detach(), module(x))
    weights = seen.attention[""]
    assert weights.shape == (3, heads, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, heads, 5))
    parts = x.unflatten(-1, (heads, -1)).transpose(1, 2)
    torch.testing.assert_close(slopes.attention[""], 2 * parts.sum(-1)[:, :, None].expand(-1, -1, 5, -1))


def test_two_attentions_in_one_module_are_refused():
    both = nn.Sequential(Handmade("torch"), Handmade("method"))
    x = torch.randn(3, 5, 4)
    with pytest.raises(AnatomyError, match="several attention matrices"), record(both, attention=[""]):
        both(x)
    with record(both, attention=["0", "1"]) as seen:
        both(x)
    assert set(seen.attention) == {"0", "1"}


def test_shapes_in_which_heads_cannot_be_found_are_refused():
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.softmax(x, -1)

    module = Odd()
    with pytest.raises(AnatomyError, match="heads cannot be told"), record(module, attention=[""]):
        module(torch.randn(2, 3, 4, 5, 5))
    nameless = nn.Sequential(Handmade("torch", heads=2))  # folds its heads and does not say how many
    with pytest.raises(AnatomyError, match="heads cannot be told"), record(nameless, attention=[""]):
        nameless(torch.randn(3, 5, 4))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_multi_head_attention_of_torch(need_weights, batch_first, bias):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(8, 2, bias=bias, batch_first=batch_first, dropout=0.5)
    x = torch.randn(3, 5, 8)
    call = {"need_weights": need_weights, "average_attn_weights": False}
    with record(module, attention=[""]) as seen:
        output, returned = module(x, x, x, **call)
    module.eval()
    expected, weights = module(x, x, x, need_weights=True, average_attn_weights=False)
    torch.testing.assert_close(output, expected.detach())
    torch.testing.assert_close(seen.attention[""], weights.detach())
    assert (returned is not None) == need_weights


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ({"add_bias_kv": True}, {}),
        ({"add_zero_attn": True}, {}),
        ({"kdim": 6, "vdim": 6}, {}),
        ({}, {"attn_mask": torch.zeros(5, 5)}),
        ({}, {"key_padding_mask": torch.zeros(3, 5)}),
    ],
)
def test_unusual_multi_head_attention_is_refused(options, call):
    module = nn.MultiheadAttention(8, 2, batch_first=True, **options)
    query, key = torch.randn(3, 5, 8), torch.randn(3, 5, options.get("kdim", 8))
    with pytest.raises(AnatomyError, match="only plain batched attention"), record(module, attention=[""]):
        module(query, key, key, **call)


def test_a_failed_pass_leaves_nothing_behind_inside_the_context():
    class Fragile(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = Handmade("torch")

        def forward(self, x: Tensor) -> Tensor:
            return self.attention(x) + torch.softmax(x @ x.transpose(1, 2), -1).sum()

    module = Fragile()
    with record(module, attention=["attention"]) as seen:
        with pytest.raises(RuntimeError):
            module.attention(torch.randn(3, 5, 4).to(torch.int64))
        module(torch.randn(3, 5, 4))  # a softmax outside the module asked for is none of its business
    assert seen.attention["attention"].shape == (3, 1, 5, 5)


def test_softmax_counts_as_attention_over_the_keys_only():
    assert computes_attention(torch.softmax, (torch.zeros(2, 3, 3), -1), {})
    assert not computes_attention(torch.softmax, (torch.zeros(2, 10), -1), {})
