"""The parts of a vision transformer for which there are rules, or why there are none; and what was seen of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from suffice.errors import AnatomyError, OptionError
from suffice.perturb.batch import Batch
from suffice.vision import Classifier
from suffice.vision.anatomy import record

KNOWN = "VisionTransformer (ViT, DeiT) and VisionTransformerDistilled (DeiT distilled) of timm, read by their tokens"


@dataclass(frozen=True)
class Transformer:
    """A transformer whose every part from the blocks to the logits has a rule."""

    module: Any  # timm's VisionTransformer or VisionTransformerDistilled
    prefix: str  # its name in the classifier's module with a dot after it, empty where it is that module
    blocks: tuple[nn.Module, ...]  # first to last
    read: tuple[int, ...]  # tokens that the head reads
    heads: tuple[nn.Linear, ...]  # the layer that reads each of them; logits are their mean
    grid: tuple[int, int]  # rows and columns of the patch tokens, which come last

    def input_of(self, block: int) -> str:
        """Name of the layer whose output is the input of a block; that of the last block's output for ``depth``."""
        return f"{self.prefix}norm_pre" if block == 0 else f"{self.prefix}blocks.{block - 1}"

    def pooled(self, output: Tensor) -> list[Tensor]:
        """What each head reads of the last block's output [B, N, C], [B, C] each."""
        normed = self.module.norm(output)
        if len(self.heads) > 1:
            return [normed[:, token] for token in self.read]
        return [self.module.fc_norm(normed[:, self.read[0]])]

    def watch(self, batch: Batch, start: int, gradients: bool) -> tuple[dict[str, Tensor], dict[int, Tensor]]:
        """Run the model once, as it is, and keep what relevance needs to know on its way back to a block.

        Returns inputs of the blocks from ``start`` on and the output of the last, by :meth:`input_of`, [B, N, C] each;
        and, where wanted, gradients of the target's logit at their attention, by number, [B, heads, N, N] each.
        """
        depth = len(self.blocks)
        layers = [self.input_of(number) for number in range(start, depth + 1)]
        whole = [self.prefix.removesuffix(".")] if self.prefix else []
        numbers = range(start, depth) if gradients else range(0)
        attention = [batch.net.anatomy.attention[number] for number in numbers]
        with record(batch.net.module, [*layers, *whole], attention, gradients) as seen:
            logits = batch.runner.logits_with_graph(batch.inputs)
            at_attention: tuple[Tensor, ...] = ()
            if gradients:
                scores = logits.gather(1, batch.targets[:, None]).sum()
                # Not seen.gradients, which would keep those of all activations too.
                at_attention = torch.autograd.grad(scores, [seen.attention[name] for name in attention])
        for name in whole:
            if not torch.equal(seen.activations[name].float(), logits.float()):
                raise OptionError(
                    f"{batch.net.name} changes the logits of the transformer inside it ({name!r}), for which there are "
                    "no rules; explain a classifier of the transformer itself, or use a method without relevance."
                )
        activations = {name: seen.activations[name].detach() for name in layers}
        return activations, dict(zip(numbers, at_attention, strict=True))

    @torch.no_grad()
    def embedded(self, batch: Batch) -> Tensor:
        """Input of the first block, [B, N, C]; the model runs no further."""

        def stop(block: nn.Module, tokens: tuple[Tensor, ...]) -> None:
            raise _ReachedError(tokens[0])

        hook = self.blocks[0].register_forward_pre_hook(stop)
        try:
            batch.runner.logits_with_graph(batch.inputs)
        except _ReachedError as reached:
            return reached.tokens
        finally:
            hook.remove()
        raise OptionError(f"{batch.net.name} does not run its first block.")

    def maps(self, row: Tensor) -> Tensor:
        """Maps [B, h, w] from one number a token [B, N], at the patches."""
        return row[:, -self.grid[0] * self.grid[1] :].unflatten(1, self.grid)


class _ReachedError(Exception):
    def __init__(self, tokens: Tensor) -> None:
        self.tokens = tokens


def known_transformer(net: Classifier, method: str) -> Transformer:
    """The parts of a classifier's transformer; an error for the method that asks names a part without a rule."""
    found = _examine(net)
    if isinstance(found, str):
        raise OptionError(f"{method} does not fit {net.name}: {found}. It has rules for {KNOWN}.")
    return found


def why_unknown(net: Classifier) -> str | None:
    """Why there are no rules for a classifier; None where there are."""
    found = _examine(net)
    return found if isinstance(found, str) else None


def _examine(net: Classifier) -> Transformer | str:
    from timm.models.deit import VisionTransformerDistilled
    from timm.models.vision_transformer import VisionTransformer

    try:
        anatomy = net.anatomy
    except AnatomyError as error:
        return f"its anatomy is not known ({error})"
    parts = [(name, part) for name, part in net.module.named_modules() if isinstance(part, VisionTransformer)]
    parts = [(f"{name}." if name else "", part) for name, part in parts]
    inside = [(prefix, part) for prefix, part in parts if anatomy.blocks[:1] == (f"{prefix}blocks.0",)]
    if not anatomy.blocks:
        return f"{_called(net.module)} has no transformer blocks"
    if not inside:
        block = net.module.get_submodule(anatomy.blocks[0])
        return f"there are no rules for {_called(net.module)} with its {_called(block)}"
    ((prefix, module),) = inside
    distilled = isinstance(module, VisionTransformerDistilled)
    own = VisionTransformerDistilled if distilled else VisionTransformer
    for step in ("forward", "forward_features", "forward_head", "pool"):
        if not _runs(module, step, getattr(own, step)):
            return f"{_called(module)} has a {step} of its own, for which there are no rules"
    if not anatomy.read_tokens:
        return f"its head pools over tokens (global_pool={module.global_pool!r}) instead of reading a class token"
    heads = (module.head, module.head_dist) if distilled else (module.head,)
    for head in heads:
        if type(head) is not nn.Linear:
            return f"its head is a {_called(head)}, not a linear layer"
    for number, block in enumerate(module.blocks):
        if unknown := _unknown_in(block):
            return f"in its block {number}, {unknown}"
    assert anatomy.token_grid is not None, "a transformer without tokens"
    return Transformer(module, prefix, tuple(module.blocks), anatomy.read_tokens, heads, anatomy.token_grid)


def _unknown_in(block: Any) -> str | None:
    """The part of a block for which there is no rule, in words."""
    from timm.layers import LayerScale, Mlp
    from timm.models.vision_transformer import Attention, Block

    for name, kind in (("", Block), ("attn", Attention), ("mlp", Mlp)):
        part = block.get_submodule(name)
        if not _runs(part, "forward", kind.forward):
            return f"there are no rules for {_called(part)}"
    attention, mlp = block.attn, block.mlp
    if getattr(attention, "gate", None) is not None:
        return "attention is gated, for which there is no rule"
    for layer in (attention.qkv, attention.proj, mlp.fc1, mlp.fc2):
        if type(layer) is not nn.Linear:
            return f"a layer is {_called(layer)}, not a linear layer"
    for layer in (block.ls1, block.ls2):
        if not isinstance(layer, nn.Identity | LayerScale):
            return f"there are no rules for {_called(layer)} after a branch"
    return None


def _runs(module: Any, step: str, function: Callable[..., Any]) -> bool:
    """Whether a method of a module is just this function, neither overridden in its class nor replaced on it."""
    return getattr(getattr(module, step, None), "__func__", None) is function


def _called(module: Any) -> str:
    kind = type(module)
    library = kind.__module__.partition(".")[0]
    return f"{kind.__name__} of {library}" if library in ("timm", "torchvision", "transformers") else kind.__name__
