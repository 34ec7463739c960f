"""Attention, multiplied through all blocks."""

from __future__ import annotations

from typing import Annotated, Literal

from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.tokens.attention_flow import Heads, find_path, fuse_heads, read_attention, why_in_windows
from suffice.options import Range
from suffice.perturb.batch import Batch
from suffice.perturb.half import at_least_float32

Variant = Literal["chefer", "vit-explain", "tam"]
DISCARD = {"chefer": 0.0, "vit-explain": 0.9, "tam": 0.0}


@method(
    "rollout",
    aliases=("attention-rollout",),
    reference="Abnar, Zuidema, Quantifying Attention Flow in Transformers, ACL 2020",
    needs=("attention",),
    incompatible=why_in_windows,
    questions=1,
)
def rollout(
    batch: Batch,
    *,
    variant: Variant = "chefer",
    start_layer: int = 0,
    heads: Heads = "mean",
    discard: Annotated[float, Range(0, 1, below=True)] | None = None,
) -> Tensor:
    """Attention multiplied through the blocks (attention rollout).

    Does not depend on the class explained. Three readings are in circulation; with A the attention of a block and I the
    identity, which stands for the way around it, they multiply

    * ``"chefer"``: the mean of A over heads, plus I, each row divided by its sum. This is what the paper defines.
    * ``"vit-explain"``: the same after all but the highest entries are set to 0, and with *column* j divided by the sum
      of *row* j, as the code of that name does.
    * ``"tam"``: A + I of each head by itself, each row divided by its sum; the mean over heads is taken at the end.

    Where the head reads a distillation token as well, maps are the mean of both; where it pools over patch tokens, the
    mean over these.

    Args:
        batch: The images.
        variant: The reading.
        start_layer: First block, from 0. Published evaluations of ``"chefer"`` leave out block 0 and start at 1.
        heads: Over heads, the ``"mean"``, as published, ``"max"`` or ``"min"``.
        discard: Share of the lowest entries of each matrix that is set to 0; the first entry, from class token to class
            token, is kept. Default: 0.9 for ``"vit-explain"``, else none.

    Returns:
        [B, h, w], on the grid of the patch tokens.
    """
    share = DISCARD[variant] if discard is None else discard
    per_head = variant == "tam"

    def reduced(attention: Tensor) -> Tensor:
        """What is kept of a block with attention [B, heads, N, N]: [B, N, N], or one for each head."""
        mixed = attention if per_head else fuse_heads(attention, heads)
        return _without_lowest(at_least_float32(mixed), share) if share else mixed

    path = find_path(batch, "rollout", start_layer, pooled=True)
    steps = read_attention(batch, path, reduced)
    rows = path.start(steps[-1])
    if per_head:
        rows = rows[:, None]
    while steps:
        matrix = at_least_float32(steps.pop())
        # Neither the identity is added nor are rows divided in the matrix itself: the vector is much smaller.
        sums = (matrix.sum(dim=-1) + 1).unsqueeze(-2)
        if variant == "vit-explain":
            rows = (rows + rows @ matrix) / sums
        else:
            rows = rows / sums
            rows = rows + rows @ matrix
    return path.maps(fuse_heads(rows, heads) if per_head else rows)


def _without_lowest(matrices: Tensor, share: float) -> Tensor:
    """Matrices [..., N, N] with a share of their lowest entries set to 0, the very first entry kept."""
    flat = matrices.flatten(-2)
    lowest = flat.topk(int(flat.shape[-1] * share), largest=False).indices
    rest = flat.scatter(-1, lowest, 0.0)
    rest[..., 0] = flat[..., 0]
    return rest.view_as(matrices)
