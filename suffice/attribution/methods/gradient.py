"""The gradient of a class with respect to the pixels."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from suffice.attribution.method import method
from suffice.perturb.batch import Batch, Output

Reduction = Literal["sum", "mean", "abs-sum", "sum-abs", "max-abs"]


@method(
    "gradient",
    aliases=("saliency", "vanilla-gradient"),
    reference="Simonyan, Vedaldi, Zisserman, Deep Inside Convolutional Networks, ICLR workshop 2014",
    needs=("gradients",),
    questions=1,
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
        reduction: How the three channels become one: ``"sum"`` and ``"mean"`` keep the sign, ``"sum-abs"`` and
            ``"max-abs"`` take magnitudes first, ``"abs-sum"`` is the magnitude of the sum.
        times: Multiply by the ``"input"`` as the model gets it, which is 0 at the mean color of its normalization; then
            ``reduction="sum"`` is usual. Without it, the unit is that of the model's own inputs: the gradient by the
            pixels of a channel times its std.
        output: Differentiate the ``"logit"`` or the ``"score"``.

    Returns:
        [B, H, W].
    """
    found = batch.gradients(batch.inputs, output)
    return over_channels(found * batch.inputs if times == "input" else found, reduction)


def over_channels(values: Tensor, reduction: Reduction) -> Tensor:
    """One number a pixel, [B, H, W], of one for each channel, [B, 3, H, W]; see :func:`gradient`."""
    if reduction == "sum":
        return values.sum(dim=1)
    if reduction == "mean":
        return values.mean(dim=1)
    if reduction == "abs-sum":
        return values.sum(dim=1).abs()
    return values.abs().sum(dim=1) if reduction == "sum-abs" else values.abs().amax(dim=1)
