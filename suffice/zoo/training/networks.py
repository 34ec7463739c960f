"""Untrained networks by name."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from suffice.errors import OptionError, UnknownModel
from suffice.plugins import did_you_mean


def hints(name: str) -> tuple[bool, bool]:
    """Whether a network is one to be trained with a teacher, and whether with modern augmentation.

    Args:
        name: One of the zoo's architectures, or ``"timm/NAME"``.

    Returns:
        Distilled, augmented; both False for timm's.

    Raises:
        UnknownModel: There is no such architecture.
    """
    if name.startswith("timm/"):
        return False, False
    architecture = _architecture(name)
    return bool(architecture.distilled), bool(architecture.augmented)


def build_network(name: str, *, classes: int, size: tuple[int, int], seed: int = 0) -> nn.Module:
    """Make a network with random weights; the same seed makes the same weights.

    Args:
        name: One of the zoo's architectures, or ``"timm/NAME"``.
        classes: Number of classes.
        size: Height and width of the images.
        seed: Of the weights. The caller's generators are left as they were.

    Returns:
        The network, on the CPU.

    Raises:
        UnknownModel: With close names.
        OptionError: The network cannot be made for images of that size.

    Example:
        >>> net = build_network("timm/resnet10t", classes=5, size=(32, 32))
        >>> net(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 5])
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if name.startswith("timm/"):
            return _from_timm(name.removeprefix("timm/"), classes, size)
        _architecture(name)
        from suffice.zoo.architectures import build

        return build(name, num_classes=classes, size=_square(size, name))


def _from_timm(name: str, classes: int, size: tuple[int, int]) -> nn.Module:
    import timm

    if not timm.is_model(name):
        from suffice.vision.models import unknown_model

        raise unknown_model(f"timm has no model {name!r}.", name, timm.list_models(), "timm")
    config = timm.get_pretrained_cfg(name)
    # Networks with position embeddings or windows must be told; the others take images of any size.
    fixed = config is not None and config.fixed_input_size
    options: dict[str, Any] = {"img_size": size} if fixed else {}
    try:
        return timm.create_model(name, pretrained=False, num_classes=classes, **options)
    except (AssertionError, ValueError, RuntimeError, TypeError) as error:  # each network has its own complaint
        raise OptionError(f"timm/{name} cannot be made for images of {size[0]}×{size[1]}: {error}") from error


def _architecture(name: str) -> Any:
    from suffice.zoo.architectures import ARCHITECTURES

    if name not in ARCHITECTURES:
        near = did_you_mean(name, ARCHITECTURES)
        raise UnknownModel(
            f"There is no architecture {name!r}.{near} The zoo has {', '.join(ARCHITECTURES)}; timm's are timm/NAME."
        )
    return ARCHITECTURES[name]


def _square(size: tuple[int, int], name: str) -> int:
    if size[0] != size[1]:
        raise OptionError(f"The images are {size[0]}×{size[1]}; {name} takes square ones.")
    return size[0]
