"""One forward pass of the model as it is, and what relevance needs to know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from suffice.attribution.lrp.structure import Transformer
from suffice.errors import OptionError
from suffice.perturb.batch import Batch
from suffice.vision.anatomy import record


@dataclass(frozen=True)
class Observed:
    """What was seen in a forward pass.

    Attributes:
        activations: Inputs of blocks and output of the last, by :meth:`Transformer.input_of`, [B, N, C] each.
        gradients: Of the target's logit at the attention after softmax, by number of the block, [B, heads, N, N]
            each.
    """

    activations: Mapping[str, Tensor]
    gradients: Mapping[int, Tensor]


def watch(batch: Batch, transformer: Transformer, start: int, gradients: bool) -> Observed:
    """Run the model once and keep what the walk back to a block needs.

    Args:
        batch: The images.
        transformer: Their model's transformer.
        start: First block whose input to keep.
        gradients: Whether to keep gradients of the logits of the targets at the attention of these blocks.

    Returns:
        What was seen, outside any graph.

    Raises:
        OptionError: The transformer is inside a module that changes its logits.
    """
    depth = len(transformer.blocks)
    layers = [transformer.input_of(number) for number in range(start, depth + 1)]
    whole = [transformer.prefix.removesuffix(".")] if transformer.prefix else []
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
                f"{batch.net.name} changes the logits of the transformer inside it ({name!r}), for which there are no "
                "rules; explain a classifier of the transformer itself, or use a method without relevance."
            )
    activations = {name: seen.activations[name].detach() for name in layers}
    return Observed(activations, dict(zip(numbers, at_attention, strict=True)))
