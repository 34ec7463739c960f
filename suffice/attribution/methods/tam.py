"""Attention as the transitions of a Markov chain, weighted by integrated gradients."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.tokens.attention_flow import (
    Steps,
    find_path,
    fuse_heads,
    integrated_feedback,
    published_start,
    read_attention,
)
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output


@method(
    "tam",
    aliases=("transition-attention-maps",),
    reference="Yuan et al., Explaining Information Flow Inside Vision Transformers Using Markov Chain, 2021",
    needs=("gradients", "attention", "class token"),
    questions=lambda net, options: options["steps"] + 1,
)
def tam(
    batch: Batch,
    *,
    start_layer: int | None = None,
    steps: Steps = 20,
    baseline: Baseline = "mean",
    output: Output = "logit",
) -> Tensor:
    """Attention as a Markov chain through the blocks, weighted by integrated gradients.

    The class token's attention in the last block is carried back, s ← s + s·A with A the mean attention over heads of
    each earlier block. It is multiplied by the gradients at the last attention, averaged over scaled images, clipped at
    0 and averaged over heads. Where the head reads a distillation token as well, the mean of both.

    Args:
        batch: The images.
        start_layer: First block, from 0. Default: 4, as in the authors' library and figures; in models of fewer than 12
            blocks at the same share of the depth. 0 is what their script for insertion and deletion uses, and TIS.
        steps: Scaled images, of which the first is the baseline and the last the image.
        baseline: From where images are scaled; ``"mean"`` is zero after normalization, as published.
        output: Differentiate the ``"logit"``, as published, or the ``"score"``.

    Returns:
        [B, h, w], on the grid of the patch tokens.
    """
    start = published_start(batch, 4) if start_layer is None else start_layer

    path = find_path(batch, "tam", start)
    *earlier, last = read_attention(batch, path, partial(fuse_heads, heads="mean"))
    rows = path.rows(last)
    for mixed in reversed(earlier):
        rows = rows + rows @ mixed
    return path.maps(rows * integrated_feedback(batch, path, steps, baseline, output))
