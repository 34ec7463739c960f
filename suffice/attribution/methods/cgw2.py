"""Attention, weighted by its gradient, multiplied through all blocks."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.tokens.attention_flow import attention_and_gradients, find_path, why_in_windows
from suffice.perturb.batch import Batch, Output


@method(
    "cgw2",
    aliases=("chefer2", "gae"),
    reference="Chefer, Gur, Wolf, Generic Attention-Model Explainability, ICCV 2021",
    needs=("gradients", "attention"),
    incompatible=why_in_windows,
    questions=1,
)
def cgw2(
    batch: Batch, *, start_layer: int = 0, clip: Literal["heads", "mean"] = "heads", output: Output = "logit"
) -> Tensor:
    """Attention times gradient, multiplied through the blocks (generic attention explainability).

    Each block contributes I + Ā, where Ā is the mean over heads of attention times its gradient, clipped at 0. The map
    is the row of the class token in the product of all. Where the head reads a distillation token as well, it is the
    mean of both rows; where it pools over patch tokens, the mean of theirs.

    Args:
        batch: The images.
        start_layer: First block, from 0; published: all.
        clip: Clip each of the ``"heads"`` before their mean is taken, as published, or the ``"mean"``.
        output: Differentiate the ``"logit"``, as published, or the ``"score"``.

    Returns:
        [B, h, w], on the grid of the patch tokens.
    """
    path = find_path(batch, "cgw2", start_layer, pooled=True)
    rows = path.start(batch.inputs)
    for attention, gradients in attention_and_gradients(batch, path, output):
        speaks = attention * gradients
        mixed = speaks.relu_().mean(dim=1) if clip == "heads" else speaks.mean(dim=1).relu_()
        rows = rows + rows @ mixed
    return path.maps(rows)
