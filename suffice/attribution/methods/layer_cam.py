"""Feature maps, every place of which is weighted by its own positive gradient."""

from __future__ import annotations

from torch import Tensor

from suffice.attribution.method import method
from suffice.attribution.methods.grad_cam import maps_and_gradients
from suffice.perturb.batch import Batch, Output


@method(
    "layer-cam",
    aliases=("layercam",),
    reference="Jiang et al., LayerCAM, IEEE Transactions on Image Processing 2021",
    needs=("gradients", "feature maps"),
    questions=1,
)
def layer_cam(batch: Batch, *, layer: str | None = None, positive: bool = True, output: Output = "logit") -> Tensor:
    """Feature maps times their positive gradients, place by place.

    Unlike the mean gradients of Grad-CAM, these say something at early layers too, whose maps are finer; ``layer``
    names one. One forward and one backward.

    Args:
        batch: The images.
        layer: Whose feature maps (or tokens) to read; default: the last with spatial detail.
        positive: Set negative values to 0, as published; there are some only where feature maps are negative.
        output: Differentiate the ``"logit"`` or the ``"score"``.

    Returns:
        [B, h, w] at the resolution of the layer.
    """
    maps, gradients = maps_and_gradients(batch, layer, output)
    total = (gradients.relu() * maps).sum(dim=1)
    return total.relu() if positive else total
