"""The gradient of a class with respect to the pixels."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.reduce import Reduction, over_channels
from suffice.perturb.batch import Batch, Output


@method(
    "gradient",
    aliases=("saliency", "vanilla-gradient"),
    reference="Simonyan, Vedaldi, Zisserman, Deep Inside Convolutional Networks, ICLR workshop 2014",
    needs=("gradients",),
)
def gradient(
    batch: Batch,
    *,
    reduction: Reduction = "max-abs",
    times: Literal["nothing", "input"] = "nothing",
    output: Output = "logit",
) -> Tensor:
    """Gradient of the class score with respect to the pixels (saliency map).

    Args:
        batch: The images.
        reduction: How the three channels become one; see :func:`suffice.attribution.reduce.over_channels`.
        times: Multiply by the normalized ``"input"``; then ``reduction="sum"`` is usual.
        output: Differentiate the ``"logit"`` or the ``"score"``.

    Returns:
        [B, H, W].
    """
    found = batch.gradients(batch.inputs, output)
    return over_channels(found * batch.inputs if times == "input" else found, reduction)
