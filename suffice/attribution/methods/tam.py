"""Attention as the transitions of a Markov chain, weighted by integrated gradients."""

from __future__ import annotations

from torch import Tensor

from suffice.attribution.attention_flow import (
    find_path,
    in_pieces,
    integrated_feedback,
    published_start,
    read_attention,
)
from suffice.attribution.method import method
from suffice.attribution.task import Output, Task
from suffice.perturb.baselines import Baseline


@method(
    "tam",
    aliases=("transition-attention-maps",),
    reference="Yuan et al., Explaining Information Flow Inside Vision Transformers Using Markov Chain, 2021",
    needs=("gradients", "attention", "class token"),
)
def tam(
    task: Task,
    *,
    start_layer: int | None = None,
    steps: int = 20,
    baseline: Baseline = "mean",
    output: Output = "logit",
) -> Tensor:
    """How much of each patch reaches the class token, weighted by integrated gradients at the last attention.

    The class token's attention in the last block is carried back, s ← s + s·A with A the mean attention over heads of
    each earlier block. It is multiplied by the gradients at the last attention, averaged over scaled images, clipped at
    0 and averaged over heads. Where the head reads a distillation token as well, the mean of both.

    Args:
        task: The images.
        start_layer: Block where the way back ends, from 0. Default: 4, as published; in models of fewer than 12 blocks
            at the same share of the depth. 0 is what other comparisons use.
        steps: Scaled images, of which the first is the baseline and the last the image.
        baseline: From where images are scaled; ``"mean"`` is zero after normalization, as published.
        output: Differentiate the ``"logit"``, as published, or the ``"score"``.

    Returns:
        [B, h, w], on the grid of the patch tokens.
    """
    start = published_start(task, 4) if start_layer is None else start_layer

    def maps(part: Task) -> Tensor:
        path = find_path(part, "tam", start)
        *earlier, last = read_attention(part, path, lambda attention: attention.mean(dim=1))
        rows = path.rows(last)
        for mixed in reversed(earlier):
            rows = rows + rows @ mixed
        return path.maps(rows * integrated_feedback(part, path, steps, baseline, output))

    return in_pieces(task, maps)
