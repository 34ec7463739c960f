"""Where the class token looks."""

from __future__ import annotations

from torch import Tensor

from suffice.attribution.attention_flow import Heads, find_block, fuse_heads, in_pieces, read_attention
from suffice.attribution.method import method
from suffice.attribution.task import Task


@method(
    "raw-attention",
    aliases=("attention", "class token"),
    reference="Chefer, Gur, Wolf, Transformer Interpretability Beyond Attention Visualization, CVPR 2021 (baseline)",
    needs=("attention", "class token"),
)
def raw_attention(task: Task, *, layer: int = -1, heads: Heads = "mean") -> Tensor:
    """How much the class token attends to each patch, in one block.

    Does not depend on the class explained. Where the head reads a distillation token as well, the mean of both.

    Args:
        task: The images.
        layer: The block, from 0, or from the end where negative.
        heads: The ``"mean"``, ``"max"`` or ``"min"`` over the block's heads.

    Returns:
        [B, h, w], on the grid of the block's patch tokens.
    """

    def maps(part: Task) -> Tensor:
        path = find_block(part, "raw-attention", layer)
        (rows,) = read_attention(part, path, lambda attention: fuse_heads(path.rows(attention), heads))
        return path.maps(rows)

    return in_pieces(task, maps)
