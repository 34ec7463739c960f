"""Feature maps, every place of which is weighted by its own gradient."""

from __future__ import annotations

from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.methods.grad_cam import maps_and_gradients
from suffice.perturb.batch import Batch, Output


@method(
    "hires-cam",
    aliases=("hirescam",),
    reference="Draelos, Carin, Use HiResCAM instead of Grad-CAM, arXiv 2020",
    needs=("gradients", "feature maps"),
    questions=1,
)
def hires_cam(batch: Batch, *, layer: str | None = None, positive: bool = True, output: Output = "logit") -> Tensor:
    """Feature maps times their gradients, place by place.

    Where only linear layers (pooling by means included) follow the feature maps, the numbers of a map add up, before
    negative ones are dropped, to the logit less the biases: a place is high only if it raised the logit. One forward
    and one backward.

    Args:
        batch: The images.
        layer: Whose feature maps (or tokens) to read; default: the last with spatial detail.
        positive: Set negative values to 0, as is usual for CAMs; False shows what speaks against the class, too.
        output: Differentiate the ``"logit"`` or the ``"score"``.

    Returns:
        [B, h, w] at the resolution of the layer.
    """
    maps, gradients = maps_and_gradients(batch, layer, output)
    total = (gradients * maps).sum(dim=1)
    return total.relu() if positive else total
