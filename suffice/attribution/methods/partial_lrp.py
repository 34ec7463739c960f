"""Relevance of the last block's attention."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from suffice.attribution.lrp.rules import Rules
from suffice.attribution.lrp.structure import Transformer, known_transformer, why_unknown
from suffice.attribution.lrp.walk import walk
from suffice.attribution.lrp.watch import in_parts, watch
from suffice.attribution.method import method
from suffice.attribution.task import Task
from suffice.errors import OptionError

RuleSet = Literal["separate", "cgw1"]
RULES = {"separate": Rules(shared=False, rescaled=False), "cgw1": Rules()}


@method(
    "partial-lrp",
    reference="Voita et al., Analyzing Multi-Head Self-Attention, ACL 2019; for ViT as in Chefer, Gur, Wolf, CVPR 2021",
    needs=("attention", "relevance"),
    incompatible=why_unknown,
)
def partial_lrp(task: Task, *, rules: RuleSet = "separate", gradient_weighted: bool = False) -> Tensor:
    """Relevance of the attention that the class token pays in the last block.

    The positive part, in the mean over heads, of the row of the token that the head reads; where it reads two, as in
    DeiT distilled, the mean of their rows. One forward, and the last block once more; relevance is followed for those
    tokens alone.

    Args:
        task: The images.
        rules: ``"separate"``, as published: positive and negative inputs of a linear layer have denominators of their
            own, and sums are not rescaled. ``"cgw1"``: those of ``cgw1``, as the copy that comes with BT uses.
        gradient_weighted: Multiply the relevance by the gradient of the logit before taking the positive part, an
            ablation in the original.

    Returns:
        [B, h, w], one value a token.
    """
    if rules not in RULES:
        raise OptionError(f"rules={rules!r}; they can be {' or '.join(map(repr, RULES))}.")
    transformer = known_transformer(task.net, "partial-lrp")

    def explain(part: Task) -> Tensor:
        return _maps(part, transformer, RULES[rules], gradient_weighted)

    return in_parts(task, explain)


def _maps(task: Task, transformer: Transformer, rules: Rules, gradient_weighted: bool) -> Tensor:
    """Maps of as many images as fit at once, [B, h, w]."""
    last = len(transformer.blocks) - 1
    seen = watch(task, transformer, last, gradients=gradient_weighted)
    (step,) = walk(transformer, seen.activations, task.targets, last, rules)
    found = step.attention
    if gradient_weighted:
        found = found * seen.gradients[last][:, :, step.rows]
    row = found.relu().mean(dim=(1, 2))
    grid = task.net.anatomy.token_grid
    assert grid is not None, "a transformer without tokens"
    return row[:, -grid[0] * grid[1] :].unflatten(1, grid)
