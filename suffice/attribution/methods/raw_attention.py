"""Where the class token looks."""

from __future__ import annotations

from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.tokens.attention_flow import Heads, find_block, fuse_heads, read_attention
from suffice.perturb.batch import Batch


@method(
    "raw-attention",
    aliases=("attention", "class token"),
    reference="Chefer, Gur, Wolf, Transformer Interpretability Beyond Attention Visualization, CVPR 2021 (baseline)",
    needs=("attention", "class token"),
    questions=1,
)
def raw_attention(batch: Batch, *, layer: int = -1, heads: Heads = "mean") -> Tensor:
    """Attention of the class token to the patches in one block.

    Does not depend on the class explained. Where the head reads a distillation token as well, the mean of both.

    Args:
        batch: The images.
        layer: The block, from 0, or from the end where negative.
        heads: The ``"mean"``, ``"max"`` or ``"min"`` over the block's heads.

    Returns:
        [B, h, w], on the grid of the block's patch tokens.
    """
    path = find_block(batch, "raw-attention", layer)
    (rows,) = read_attention(batch, path, lambda attention: fuse_heads(path.rows(attention), heads))
    return path.maps(rows)
