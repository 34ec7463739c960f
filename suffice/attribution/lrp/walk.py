"""Relevance on its way from the logits of a transformer to the attention of its blocks.

Relevance needs to know what each block computes. Either the model runs once, as it is, and only the inputs of its
blocks are kept; on the way back each block computes its inner values once more, so that memory is that of one block,
not of all: :func:`walk`. Or all are computed once and kept: :func:`walk_once`.

The last block is only followed for the tokens that the head reads: no others have relevance there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from suffice.attribution.lrp import rules
from suffice.attribution.lrp.rules import Rules
from suffice.attribution.lrp.structure import Transformer
from suffice.perturb.batch import Batch

Rows = slice | list[int]
EVERY = slice(None)


@dataclass(frozen=True)
class Step:
    """What is known after the relevance has passed a block.

    Attributes:
        block: Number of the block.
        rows: Query tokens that ``attention`` is about; no others have relevance.
        attention: Relevance of the attention matrix, [B, heads, rows, N].
        tokens: Relevance of the block's input, [B, N, C]; None where the walk ends at this block's attention.
    """

    block: int
    rows: Rows
    attention: Tensor
    tokens: Tensor | None


@torch.no_grad()
def walk(
    transformer: Transformer, activations: Mapping[str, Tensor], targets: Tensor, start: int, chosen: Rules
) -> Iterator[Step]:
    """Relevance of the attention of each block, last block first.

    Args:
        transformer: The transformer.
        activations: Inputs of the blocks from ``start`` on and output of the last block by
            :meth:`Transformer.input_of`, [B, N, C] each.
        targets: Class whose logit has relevance 1, [B] int64.
        start: Number of the block at whose attention the walk ends.
        chosen: Rules to follow.

    Yields:
        One step a block, from the last down to ``start``.
    """

    def values(number: int) -> BlockValues:
        return block_values(transformer.blocks[number], activations[transformer.input_of(number)])

    output = activations[transformer.input_of(len(transformer.blocks))]
    yield from walk_back(transformer, output, values, targets, start, chosen)


@torch.no_grad()
def walk_once(transformer: Transformer, batch: Batch, start: int, chosen: Rules) -> Iterator[Step]:
    """The same for images; every block is computed once, and its values are kept until relevance comes by."""
    tokens, kept = transformer.embedded(batch), list[BlockValues]()
    for number, block in enumerate(transformer.blocks):
        if number < start:
            tokens = block(tokens)
        else:
            kept.append(block_values(block, tokens, chosen.single))
            tokens = kept[-1].output
    yield from walk_back(transformer, tokens, lambda _: kept.pop(), batch.targets, start, chosen)


@torch.no_grad()
def walk_back(
    transformer: Transformer,
    output: Tensor,
    values: Callable[[int], BlockValues],
    targets: Tensor,
    start: int,
    chosen: Rules,
) -> Iterator[Step]:
    """The same, from the output [B, N, C] of the last block, and from the number of a block to its values."""
    relevance = through_heads(transformer, output, targets, chosen)
    rows: Rows = list(transformer.read)
    for number in reversed(range(start, len(transformer.blocks))):
        to_attention, to_tokens = through_block(values(number), relevance, rows, chosen, further=number > start)
        yield Step(number, rows, to_attention, to_tokens)
        if to_tokens is not None:
            relevance, rows = to_tokens, EVERY


def through_heads(transformer: Transformer, output: Tensor, targets: Tensor, chosen: Rules) -> Tensor:
    """Relevance of the tokens that the head reads.

    Two heads are two terms of a sum: the logits are the mean of theirs.

    Args:
        transformer: The transformer.
        output: Of the last block, [B, N, C].
        targets: Class whose logit has relevance 1, [B] int64.
        chosen: Rules to follow.

    Returns:
        [B, tokens read, C].
    """
    pooled = transformer.pooled(output)
    logits = [_precise(head(x)) / len(pooled) for head, x in zip(transformer.heads, pooled, strict=True)]
    relevance = torch.zeros_like(logits[0]).scatter_(1, targets[:, None], 1)
    parts: tuple[Tensor, ...] = (relevance,)
    if len(logits) == 2:
        parts = rules.add(logits[0], logits[1], relevance, chosen.rescaled)
    found = [
        chosen.linear(_precise(x), _precise(head.weight), part)
        for x, head, part in zip(pooled, transformer.heads, parts, strict=True)
    ]
    return torch.stack(found, dim=1)


@dataclass(frozen=True)
class BlockValues:
    """What a block computes on the way from its input to its output.

    A block's layer scale is part of the weights of the layer before it: what a network computes, and so what its
    inputs contribute, does not depend on where that factor is written down.

    Attributes:
        tokens: Input of the block, [B, N, C].
        normed: Input of the layer that makes queries, keys and values, [B, N, C].
        query: [B, heads, N, d].
        key: [B, heads, N, d].
        value: [B, heads, N, d].
        attention: After softmax, [B, heads, N, N].
        mixed: Input of the output projection, [B, N, heads·d].
        attended: What attention adds to the tokens, [B, N, C].
        normed_again: Input of the MLP, [B, N, C].
        hidden: Input of the MLP's second layer, [B, N, hidden].
        processed: What the MLP adds to the tokens, [B, N, C].
        weights: Of the four linear layers: ``qkv``, ``proj``, ``fc1``, ``fc2``.
    """

    tokens: Tensor
    normed: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    attention: Tensor
    mixed: Tensor
    attended: Tensor
    normed_again: Tensor
    hidden: Tensor
    processed: Tensor
    weights: Mapping[str, Tensor]

    @property
    def output(self) -> Tensor:
        """Of the block, [B, N, C]."""
        return self.tokens + self.attended + self.processed


def block_values(block: Any, tokens: Tensor, single: bool = False) -> BlockValues:
    """What a block of timm's VisionTransformer computes, by its own layers.

    Args:
        block: The block.
        tokens: Its input, [B, N, C].
        single: Keep the inputs of linear layers in float32, as :class:`Rules` may want them.

    Returns:
        All values, in single precision at least.
    """
    attention, mlp = block.attn, block.mlp
    kept = Tensor.float if single else _precise
    normed = block.norm1(tokens)
    query, key, value = attention.qkv(normed).unflatten(2, (3, attention.num_heads, -1)).permute(2, 0, 3, 1, 4)
    query, key = attention.q_norm(query), attention.k_norm(key)
    weights = (_precise(query) * attention.scale @ _precise(key).transpose(2, 3)).softmax(dim=3)
    mixed = (weights.to(value.dtype) @ value).transpose(1, 2).flatten(2)
    if hasattr(attention, "norm"):  # newer versions of timm can normalize here
        mixed = attention.norm(mixed)
    attended = block.ls1(attention.proj(mixed))
    normed_again = block.norm2(tokens + attended)
    hidden = mlp.norm(mlp.act(mlp.fc1(normed_again)))
    processed = block.ls2(mlp.fc2(hidden))
    return BlockValues(
        tokens=_precise(tokens),
        normed=kept(normed),
        query=_precise(query),
        key=_precise(key),
        value=_precise(value),
        attention=weights,
        mixed=kept(mixed),
        attended=_precise(attended),
        normed_again=kept(normed_again),
        hidden=kept(hidden),
        processed=_precise(processed),
        weights={
            "qkv": _precise(attention.qkv.weight),
            "proj": _scaled(attention.proj.weight, block.ls1),
            "fc1": _precise(mlp.fc1.weight),
            "fc2": _scaled(mlp.fc2.weight, block.ls2),
        },
    )


def through_block(
    values: BlockValues, relevance: Tensor, rows: Rows, chosen: Rules, further: bool = True
) -> tuple[Tensor, Tensor | None]:
    """Relevance of a block's attention and of its input.

    Args:
        values: What the block computed.
        relevance: Of some tokens of its output, [B, rows, C]; the others have none.
        rows: Which tokens.
        chosen: Rules to follow.
        further: Whether the relevance of the block's input is wanted.

    Returns:
        Of the attention [B, heads, rows, N], and of the input [B, N, C] or None.
    """
    weights = values.weights
    attended = values.attended[:, rows]
    tokens = values.tokens[:, rows]

    kept, branch = rules.add(tokens + attended, values.processed[:, rows], relevance, chosen.rescaled)
    branch = chosen.linear(values.hidden[:, rows], weights["fc2"], branch)
    branch = chosen.linear(values.normed_again[:, rows], weights["fc1"], branch)

    kept, branch = rules.add(tokens, attended, kept + branch, chosen.rescaled)
    branch = chosen.linear(values.mixed[:, rows], weights["proj"], branch)
    branch = branch.unflatten(2, (values.value.shape[1], -1)).transpose(1, 2)
    to_attention, to_value = rules.product(values.attention[:, :, rows], values.value, branch)
    if not further:
        return to_attention, None

    to_query, to_key = rules.product(values.query[:, :, rows], values.key.transpose(2, 3), to_attention)
    parts = torch.zeros(3, *values.value.shape, dtype=to_value.dtype, device=to_value.device)
    parts[0, :, :, rows], parts[1], parts[2] = to_query, to_key.transpose(2, 3), to_value
    parts = parts.permute(1, 3, 0, 2, 4).flatten(2)
    found = chosen.linear(values.normed, weights["qkv"], parts)
    found[:, rows] += kept
    return to_attention, found


def _precise(tensor: Tensor) -> Tensor:
    """In single precision at least: relevance is divided by small numbers."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _scaled(weight: Tensor, scale: Any) -> Tensor:
    gamma = getattr(scale, "gamma", None)
    return _precise(weight) if gamma is None else _precise(weight) * _precise(gamma)[:, None]
