"""Whether a module takes what a classifier gives it and returns what its labels say, found out when it is wrapped."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from suffice.errors import OptionError

# How much red, green and blue count in the gray of a picture; as in Pillow, torchvision and ITU-R BT.601.
LUMA = (0.299, 0.587, 0.114)


class GrayInput(nn.Module):
    """Shows color images to a module that takes gray ones, so that everything else can go on in color.

    Images [N, 3, H, W], all channels normalized alike, become [N, 1, H, W] on the way in; gray ones stay as they are.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, images: Tensor) -> object:
        """What the module returns for the gray of some images."""
        if images.shape[1] == 1:
            return self.module(images)
        weights = torch.tensor(LUMA, dtype=images.dtype, device=images.device).view(1, 3, 1, 1)
        return self.module((images * weights).sum(dim=1, keepdim=True))


def check_channels(module: nn.Module, name: str, forward: Callable[[], Tensor]) -> None:
    """Raise an error if a module takes images of other channels; it is tried only where its first convolution looks so.

    Args:
        module: The module.
        name: What errors call it.
        forward: Puts one color image through it.
    """
    given = 1 if isinstance(module, GrayInput) else 3
    channels = next((m.in_channels // m.groups for m in module.modules() if isinstance(m, nn.Conv2d)), given)
    if channels == given:
        return
    try:
        forward()
    except RuntimeError as error:
        remedies = {
            1: "Write mean= and std= with one number each: images are then shown to it in gray.",
            3: "Write mean= and std= with three numbers each; with one, images are shown to it in gray.",
        }
        remedy = remedies.get(channels, "Wrap it in a module that makes its input from red, green and blue.")
        seen = f"{channels} channel{'' if channels == 1 else 's'}"
        raise OptionError(f"{name} takes images of {seen}, and images here have {given}. {remedy}") from error


def check_labels(module: nn.Module, name: str, labels: int, forward: Callable[[], Tensor]) -> None:
    """Raise an error if a module has another number of classes than it has labels; it is tried only where it seems so.

    Args:
        module: The module.
        name: What errors call it.
        labels: Number of its labels.
        forward: Puts one color image through it, for its scores [1, classes].
    """
    last = [m.out_features for m in module.modules() if isinstance(m, nn.Linear)][-1:]
    if last == [labels]:
        return
    try:
        classes = forward().shape[-1]
    except Exception:  # whatever is wrong with it is not about labels, and will be said when it is used
        return
    if classes != labels:
        raise OptionError(
            f"{name} has {classes} classes, and {labels} label{' was' if labels == 1 else 's were'} given; labels= "
            "takes one for each class, in order."
        )
