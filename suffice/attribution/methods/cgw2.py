"""Attention, weighted by its gradient, multiplied through all blocks."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from suffice.attribution.attention_flow import attention_and_gradients, find_path, in_pieces, why_in_windows
from suffice.attribution.method import method
from suffice.attribution.task import Output, Task
from suffice.errors import OptionError


@method(
    "cgw2",
    aliases=("chefer2", "gae"),
    reference="Chefer, Gur, Wolf, Generic Attention-Model Explainability, ICCV 2021",
    needs=("gradients", "attention"),
    incompatible=why_in_windows,
)
def cgw2(
    task: Task, *, start_layer: int = 0, clip: Literal["heads", "mean"] = "heads", output: Output = "logit"
) -> Tensor:
    """How much of each patch reaches the class token through attention that speaks for the class.

    Each block contributes I + Ā, where Ā is the mean over heads of attention times its gradient, clipped at 0. The map
    is the row of the class token in the product of all. Where the head reads a distillation token as well, it is the
    mean of both rows; where it pools over patch tokens, the mean of theirs.

    Args:
        task: The images.
        start_layer: First block, from 0; published: all.
        clip: Clip each of the ``"heads"`` before their mean is taken, as published, or the ``"mean"``.
        output: Differentiate the ``"logit"``, as published, or the ``"score"``.

    Returns:
        [B, h, w], on the grid of the patch tokens.
    """
    if clip not in ("heads", "mean"):
        raise OptionError(f"clip={clip!r}; it can be 'heads' or 'mean'.")

    def maps(part: Task) -> Tensor:
        path = find_path(part, "cgw2", start_layer, pooled=True)
        rows = path.start(part.inputs)
        for attention, slopes in reversed(attention_and_gradients(part, path, output)):
            speaks = attention * slopes
            mixed = speaks.relu().mean(dim=1) if clip == "heads" else speaks.mean(dim=1).relu()
            rows = rows + rows @ mixed
        return path.maps(rows)

    return in_pieces(task, maps)
