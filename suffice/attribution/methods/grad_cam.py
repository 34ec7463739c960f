"""Feature maps, weighted by the gradients that reach them."""

from __future__ import annotations

from torch import Tensor

from suffice.attribution.method import method
from suffice.perturb.batch import Batch, Output
from suffice.perturb.half import at_least_float32
from suffice.vision.anatomy import record


@method(
    "grad-cam",
    aliases=("gradcam",),
    reference="Selvaraju et al., Grad-CAM, ICCV 2017",
    needs=("gradients", "feature maps"),
    questions=1,
)
def grad_cam(batch: Batch, *, layer: str | None = None, positive: bool = True, output: Output = "logit") -> Tensor:
    """Feature maps weighted by their mean gradients.

    Args:
        batch: The images.
        layer: Whose feature maps (or tokens) to read; default: the last with spatial detail, see
            :class:`suffice.vision.Anatomy`.
        positive: Set negative values to 0, as published.
        output: Differentiate the ``"logit"`` or the ``"score"``.

    Returns:
        [B, h, w] at the resolution of the layer.
    """
    maps, gradients = maps_and_gradients(batch, layer, output)
    return _weighted(maps, gradients.mean(dim=(2, 3)), positive)


@method(
    "grad-cam++",
    aliases=("gradcam++", "grad-cam-plus-plus"),
    reference="Chattopadhyay et al., Grad-CAM++, WACV 2018",
    needs=("gradients", "feature maps"),
    questions=1,
)
def grad_cam_plus_plus(
    batch: Batch, *, layer: str | None = None, positive: bool = True, output: Output = "logit"
) -> Tensor:
    """Feature maps weighted by their positive gradients, each position with a weight of its own.

    The weights of places are those of the exponential of the output, whose higher derivatives are powers of the
    gradient.

    Args:
        batch: The images.
        layer: Whose feature maps (or tokens) to read.
        positive: Set negative values to 0, as published.
        output: Differentiate the ``"logit"`` or the ``"score"``.

    Returns:
        [B, h, w] at the resolution of the layer.
    """
    maps, gradients = maps_and_gradients(batch, layer, output)
    # The square of the gradient cancels. What is left needs no small number against division by zero, which would
    # decide everything where gradients are small.
    denominator = 2 + maps.sum(dim=(2, 3), keepdim=True) * gradients
    weights = (gradients.relu() / denominator).where((gradients > 0) & (denominator != 0), 0).sum(dim=(2, 3))
    return _weighted(maps, weights, positive)


def maps_and_gradients(batch: Batch, layer: str | None, output: Output) -> tuple[Tensor, Tensor]:
    """Feature maps of a layer and the gradients there, [B, C, h, w] each."""
    anatomy = batch.net.anatomy
    name = layer or anatomy.target_layer
    # The graph starts at the layer, so the backward pass ends there.
    with record(batch.runner.module, activations=[name], gradients=True) as seen:
        gradients = seen.gradients(batch.outputs(batch.inputs, output))
    found = (seen.activations[name].detach(), gradients.activations[name])
    maps, at_maps = (at_least_float32(anatomy.maps(name, values)) for values in found)
    return maps, at_maps


def _weighted(maps: Tensor, weights: Tensor, positive: bool) -> Tensor:
    total = (weights[:, :, None, None] * maps).sum(dim=1)
    return total.relu() if positive else total
