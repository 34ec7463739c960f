"""Relevance of the last block's attention."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from suffice.attribution.lrp.rules import Rules
from suffice.attribution.lrp.structure import known_transformer, why_unknown
from suffice.attribution.lrp.walk import walk
from suffice.attribution.method import method
from suffice.perturb.batch import Batch

RuleSet = Literal["separate", "cgw1"]
RULES = {"separate": Rules(shared=False, rescaled=False), "cgw1": Rules()}


@method(
    "partial-lrp",
    reference="Voita et al., Analyzing Multi-Head Self-Attention, ACL 2019; for ViT as in Chefer, Gur, Wolf, CVPR 2021",
    needs=("attention", "relevance"),
    incompatible=why_unknown,
    questions=1,
)
def partial_lrp(batch: Batch, *, rules: RuleSet = "separate", gradient_weighted: bool = False) -> Tensor:
    """Relevance (LRP) of the class token's attention in the last block.

    The positive part, in the mean over heads, of the row of the token that the head reads; where it reads two, as in
    DeiT distilled, the mean of their rows. One forward, and the last block once more; relevance is followed for those
    tokens alone.

    Args:
        batch: The images.
        rules: ``"separate"``, as published: positive and negative inputs of a linear layer have denominators of their
            own, and sums are not rescaled. ``"cgw1"``: those of ``cgw1``, as the copy that comes with BT uses.
        gradient_weighted: Multiply the relevance by the gradient of the logit before taking the positive part, an
            ablation in the original.

    Returns:
        [B, h, w], one value a token.
    """
    transformer = known_transformer(batch.net, "partial-lrp")
    last = len(transformer.blocks) - 1
    activations, at_attention = transformer.watch(batch, last, gradients=gradient_weighted)
    (step,) = walk(transformer, activations, batch.targets, last, RULES[rules])
    found = step.attention
    if gradient_weighted:
        found = found * at_attention[last][:, :, step.rows]
    return transformer.maps(found.relu().mean(dim=(1, 2)))
