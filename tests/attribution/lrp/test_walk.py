"""The way back through real blocks: values as the model's own, relevance conserved block by block."""

import pytest
import torch

from suffice.attribution.lrp.rules import Rules
from suffice.attribution.lrp.structure import known_transformer
from suffice.attribution.lrp.walk import EVERY, block_values, through_block, through_heads, walk, walk_once
from suffice.perturb import Batch, Runner
from suffice.vision.anatomy import record
from tests.attribution.lrp_nets import classifier, transformer
from tests.attribution.nets import pictures

TARGETS = torch.tensor([1, 4, 2, 0])


def watched(module):
    net = classifier(module)
    known = known_transformer(net, "test")
    names = [known.input_of(number) for number in range(len(known.blocks) + 1)]
    with record(module, activations=names, attention=net.anatomy.attention) as seen:
        net.logits(net.normalize(pictures(4)))
    return known, seen


@torch.no_grad()
@pytest.mark.parametrize(
    "options",
    [{}, {"kind": "distilled"}, {"init_values": 0.5}, {"qk_norm": True}, {"reg_tokens": 2}, {"pre_norm": True}],
    ids=str,
)
def test_values_are_those_of_the_model(options):
    known, seen = watched(transformer(**options))
    for number, block in enumerate(known.blocks):
        values = block_values(block, seen.activations[known.input_of(number)])
        out = values.tokens + values.attended + values.processed
        torch.testing.assert_close(out, seen.activations[known.input_of(number + 1)])
        torch.testing.assert_close(values.attention, seen.attention[f"blocks.{number}.attn"])
        # Layer scale is part of the weights.
        for layer, inputs, branch in (("fc2", "hidden", "processed"), ("proj", "mixed", "attended")):
            bias = getattr(values, branch) - getattr(values, inputs) @ values.weights[layer].T
            torch.testing.assert_close(bias, bias[:1, :1].expand_as(bias))


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"init_values": 0.5}, {"qk_norm": True}], ids=str)
@pytest.mark.parametrize("kind", ["vit", "distilled"])
def test_every_block_conserves_in_every_image(kind, options):
    known, seen = watched(transformer(kind, **options))
    one = torch.ones(4, dtype=torch.float64)
    head = through_heads(known, seen.activations[known.input_of(3)], TARGETS, Rules())
    torch.testing.assert_close(head.sum(dim=(1, 2)), one, rtol=1e-5, atol=1e-5)
    steps = list(walk(known, seen.activations, TARGETS, 0, Rules()))
    assert [step.block for step in steps] == [2, 1, 0]
    for step in steps[:-1]:
        torch.testing.assert_close(step.tokens.sum(dim=(1, 2)), one, rtol=1e-5, atol=1e-5)
    assert steps[-1].tokens is None
    values = block_values(known.blocks[0], seen.activations[known.input_of(0)])
    _, tokens = through_block(values, steps[-2].tokens, EVERY, Rules())
    torch.testing.assert_close(tokens.sum(dim=(1, 2)), one, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_separate_denominators_do_not_conserve():
    known, seen = watched(transformer())
    rules = Rules(shared=False, rescaled=False)
    head = through_heads(known, seen.activations[known.input_of(3)], TARGETS, rules)
    torch.testing.assert_close(head.sum(dim=(1, 2)), torch.full((4,), 2.0, dtype=torch.float64), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_two_heads_share_by_the_magnitude_of_their_logits():
    module = transformer("distilled")
    known, seen = watched(module)
    output = seen.activations[known.input_of(3)]
    normed = module.norm(output)
    logits = [module.head(normed[:, 0]), module.head_dist(normed[:, 1])]
    said = torch.stack([x.gather(1, TARGETS[:, None])[:, 0] for x in logits], dim=1)
    found = through_heads(known, output, TARGETS, Rules()).sum(dim=2)
    torch.testing.assert_close(found, said.abs() / said.abs().sum(dim=1, keepdim=True), rtol=1e-5, atol=1e-5)
    plain = through_heads(known, output, TARGETS, Rules(rescaled=False)).sum(dim=2)
    torch.testing.assert_close(plain, said / said.sum(dim=1, keepdim=True), rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("rules", [Rules(), Rules(shared=False, rescaled=False)], ids=["cgw1", "separate"])
def test_following_only_tokens_with_relevance_changes_nothing(rules):
    known, seen = watched(transformer("distilled"))
    relevance = through_heads(known, seen.activations[known.input_of(3)], TARGETS, rules)
    values = block_values(known.blocks[-1], seen.activations[known.input_of(2)])
    few = through_block(values, relevance, [0, 1], rules)
    everywhere = torch.zeros_like(values.tokens)
    everywhere[:, :2] = relevance
    full = through_block(values, everywhere, EVERY, rules)
    assert not full[0][:, :, 2:].any()
    torch.testing.assert_close(few[0], full[0][:, :, :2])
    torch.testing.assert_close(few[1], full[1])


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("kind", ["vit", "distilled"])
def test_values_that_are_kept_are_those_computed_again(kind, start):
    net = classifier(transformer(kind))
    known, seen = watched(net.module)
    expected = list(walk(known, seen.activations, TARGETS, start, Rules()))
    batch = Batch(net, pictures(4), TARGETS, list("abcd"), 0, Runner(net))
    found = list(walk_once(known, batch, start, Rules()))
    assert [step.block for step in found] == [step.block for step in expected] == list(range(2, start - 1, -1))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.attention, other.attention)
    assert not known.blocks[0]._forward_pre_hooks


def test_linear_layers_in_float32_change_little():
    known, seen = watched(transformer())
    exact, single = (list(walk(known, seen.activations, TARGETS, 0, Rules(single=s))) for s in (False, True))
    for one, other in zip(single, exact, strict=True):
        assert one.attention.dtype == torch.float64
        scale = other.attention.abs().amax()
        assert 0 < (one.attention - other.attention).abs().max() < 1e-5 * scale
