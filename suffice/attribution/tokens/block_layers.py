"""Layers of a transformer's block by what they are, whatever its library calls them."""

from __future__ import annotations

from typing import Literal, get_args

from suffice.errors import OptionError
from suffice.vision.anatomy import Anatomy
from suffice.vision.anatomy.trace import trace
from suffice.vision.classifier import Classifier

BlockLayer = Literal["attention-input", "attention-output", "attention-residual", "block-output"]
BLOCK_LAYERS: tuple[BlockLayer, ...] = get_args(BlockLayer)


def last_wide_block(anatomy: Anatomy) -> int:
    """Number of the last block; where the grid shrinks on the way, of the last one before the last grid.

    Example:
        >>> import suffice
        >>> last_wide_block(suffice.load("zoo/deit").anatomy)
        3
    """
    grids = [anatomy.grid(block) for block in anatomy.blocks]
    return max((i for i, grid in enumerate(grids) if grid != grids[-1]), default=len(grids) - 1)


def block_layer(net: Classifier, which: BlockLayer) -> str:
    """Name of one of the layers of the block of :func:`last_wide_block`, as ``record`` takes it.

    Args:
        net: The classifier.
        which: ``"attention-input"``, what its attention is given: the output of the normalization before it, or the
            block's input where there is none. ``"attention-output"``, what its attention puts out.
            ``"attention-residual"``, that added to the block's input. ``"block-output"``, what the block puts out.

    Example:
        >>> import suffice
        >>> [block_layer(suffice.load("zoo/deit"), which) for which in BLOCK_LAYERS]
        ['blocks.3.norm1', 'blocks.3.attn', 'blocks.3.norm2:input', 'blocks.3']
    """
    anatomy = net.anatomy
    if not anatomy.blocks:
        raise OptionError(
            f"layer={which!r} does not fit {net.name}, which has no transformer blocks; leave layer out, or write the "
            f"name of a layer, such as layer={anatomy.target_layer!r}."
        )
    number = last_wide_block(anatomy)
    block = anatomy.blocks[number]
    if which == "block-output":
        return block
    if which == "attention-input":
        return anatomy.norms[number] or f"{block}:input"
    found = _attention_output(net, number) if which == "attention-output" else _second_norm(net, number)
    if found is None:
        raise OptionError(
            f"layer={which!r} does not fit {net.name}: its block {block!r} has no such layer that can be read as a "
            f"map; write layer='attention-input' or layer='block-output', or the name of a layer."
        )
    return found


def _attention_output(net: Classifier, number: int) -> str | None:
    """The attention itself, or where it works in windows the layer that its output goes through in its own place."""
    attention, block = net.anatomy.attention[number], net.anatomy.blocks[number]
    if attention in net.anatomy.layouts and attention != block:
        return attention
    inside = dict(net.module.get_submodule(block).named_children())
    return next((f"{block}.{path}" for path in ("drop_path1", "drop_path") if path in inside), None)


def _second_norm(net: Classifier, number: int) -> str | None:
    """Input of the normalization that follows the attention in a block that also normalizes before it."""
    block, attention = net.anatomy.blocks[number], net.anatomy.attention[number]
    if net.anatomy.norms[number] is None or attention == block:
        return None
    parts = [f"{block}.{name}" for name, _ in net.module.get_submodule(block).named_children()]
    order = [name for name, _ in trace(net.module, net.size, parts)]
    later = order[order.index(attention) + 1 :]
    norms = [name for name in later if "norm" in type(net.module.get_submodule(name)).__name__.lower()]
    return f"{norms[0]}:input" if norms else None
