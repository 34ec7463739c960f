"""Feature maps, projected on what they have most in common."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.attribution.channels import precise
from suffice.attribution.method import method
from suffice.perturb.batch import Batch


@method(
    "eigen-cam",
    aliases=("eigencam",),
    reference="Muhammad, Yeasin, Eigen-CAM, IJCNN 2020",
    needs=("feature maps",),
    questions=1,
)
def eigen_cam(batch: Batch, *, layer: str | None = None, centered: bool = False, positive: bool = True) -> Tensor:
    """Feature maps projected on their first principal component; the same for every class.

    A singular vector has no sign of its own: with it, its negative is one too. The map is oriented so that its value of
    largest magnitude is positive, since what stands out usually is small beside its surroundings. One forward.

    Args:
        batch: The images; their targets do not matter.
        layer: Whose feature maps (or tokens) to read; default: the last with spatial detail.
        centered: Subtract each channel's mean first, as pytorch-grad-cam does (whose maps have the sign that its
            library happens to return); the paper does not.
        positive: Set negative values to 0, as is usual for CAMs.

    Returns:
        [B, h, w] at the resolution of the layer.
    """
    anatomy = batch.net.anatomy
    name = layer or anatomy.target_layer
    maps = anatomy.maps(name, batch.activations([name])[name])
    found = _first_component(maps.to(precise(maps.device)), centered)
    return found.relu() if positive else found


def _first_component(maps: Tensor, centered: bool) -> Tensor:
    """Projection of the places of maps [B, C, h, w] on their first right singular vector, [B, h, w]."""
    places = maps.flatten(2).mT  # [B, h·w, C]
    if centered:
        places = places - places.mean(dim=1, keepdim=True)
    if places.shape[1] <= places.shape[2]:  # eigenvectors of the smaller of the two products tell both
        values, vectors = torch.linalg.eigh(places @ places.mT)
        found = vectors[:, :, -1] * values[:, -1:].clamp(min=0).sqrt()
    else:
        vectors = torch.linalg.eigh(places.mT @ places).eigenvectors
        found = (places @ vectors[:, :, -1:])[:, :, 0]
    upside_down = found.amin(dim=1, keepdim=True).abs() > found.amax(dim=1, keepdim=True)
    return found.where(~upside_down, -found).unflatten(1, maps.shape[2:])
