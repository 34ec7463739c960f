"""Attention of the class token, each head weighted by the gradient that reaches it."""

from __future__ import annotations

from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.tokens.attention_flow import attention_and_gradients, find_block
from suffice.perturb.batch import Batch, Output


@method(
    "attention-grad-cam",
    aliases=("attention-gradcam",),
    reference="Chefer, Gur, Wolf, Transformer Interpretability Beyond Attention Visualization, CVPR 2021 (baseline)",
    needs=("gradients", "attention", "class token"),
    questions=1,
)
def attention_grad_cam(batch: Batch, *, layer: int = -1, positive: bool = True, output: Output = "logit") -> Tensor:
    """Attention of the class token in one block, heads weighted by their gradients.

    Not to be confused with ``grad-cam``, which weights the channels of tokens. Where the head reads a distillation
    token as well, each of both tokens has its own weights, and the mean of both is taken before clipping.

    Args:
        batch: The images.
        layer: The block, from 0, or from the end where negative; published: the last.
        positive: Set negative values to 0, as published.
        output: Differentiate the ``"logit"``, as published, or the ``"score"``.

    Returns:
        [B, h, w], on the grid of the block's patch tokens.
    """
    path = find_block(batch, "attention-grad-cam", layer)
    ((attention, gradients),) = attention_and_gradients(batch, path, output)
    weights = path.rows(gradients)[..., path.prefix :].mean(dim=-1, keepdim=True)
    found = path.maps((weights * path.rows(attention)).mean(dim=1))
    return found.relu() if positive else found
