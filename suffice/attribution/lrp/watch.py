"""One forward pass of the model as it is, and what relevance needs to know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from suffice.attribution.lrp.structure import Transformer
from suffice.attribution.masking.batches import in_batches
from suffice.attribution.task import Task
from suffice.errors import OptionError
from suffice.vision.anatomy import record


@dataclass(frozen=True)
class Seen:
    """What was seen in a forward pass.

    Attributes:
        activations: Inputs of blocks and output of the last, by :meth:`Transformer.input_of`, [B, N, C] each.
        gradients: Of the target's logit at the attention after softmax, by number of the block, [B, heads, N, N]
            each.
    """

    activations: Mapping[str, Tensor]
    gradients: Mapping[int, Tensor]


def watch(task: Task, transformer: Transformer, start: int, gradients: bool) -> Seen:
    """Run the model once and keep what the walk back to a block needs.

    Args:
        task: The images.
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
    attention = [task.net.anatomy.attention[number] for number in numbers]
    with record(task.net.module, [*layers, *whole], attention, gradients) as seen:
        logits = task.net.logits(task.inputs)
        slopes: tuple[Tensor, ...] = ()
        if gradients:
            said = logits.gather(1, task.targets[:, None]).sum()
            # Not seen.gradients, which would keep those of all activations too.
            slopes = torch.autograd.grad(said, [seen.attention[name] for name in attention])
    for name in whole:
        if not torch.equal(seen.activations[name].float(), logits):
            raise OptionError(
                f"{task.net.name} changes the logits of the transformer inside it ({name!r}), for which there are no "
                "rules; explain a classifier of the transformer itself, or use a method without relevance."
            )
    return Seen({name: seen.activations[name].detach() for name in layers}, dict(zip(numbers, slopes, strict=True)))


def in_parts(task: Task, explain: Callable[[Task], Tensor]) -> Tensor:
    """Maps of all images, as many at once as memory allows.

    Args:
        task: The images.
        explain: From some of the images to their maps [B, h, w].

    Returns:
        [B, h, w].
    """

    def work(rows: slice) -> Tensor:
        part = replace(task, pixels=task.pixels[rows], targets=task.targets[rows], ids=task.ids[rows])
        return explain(part)

    return torch.cat(list(in_batches(task.forwarder, len(task), work)))
