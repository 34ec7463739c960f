"""What the descriptions of several libraries share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from torch import nn

from suffice.errors import AnatomyError
from suffice.vision.anatomy.structure import Anatomy, Layout
from suffice.vision.anatomy.trace import HOW_TO_REGISTER, output_shapes

Size = tuple[int, int]


@dataclass(frozen=True)
class Family:
    """A class of models, by where it is defined, and how to describe its instances.

    The class is looked up among modules that are already imported: whoever holds an instance has imported its
    class, and nobody else should pay for the import.
    """

    home: str
    name: str
    describe: Callable[[nn.Module, Size], Anatomy]

    def recognizes(self, module: nn.Module) -> bool:
        """Whether the module is an instance of the class, or of one derived from it."""
        cls = getattr(sys.modules.get(self.home), self.name, None)
        return cls is not None and isinstance(module, cls)


def children(module: nn.Module, container: str) -> tuple[str, ...]:
    """Names of the children of a container such as ``blocks``, in order.

    Example:
        >>> children(nn.Sequential(nn.Sequential(nn.ReLU(), nn.ReLU())), "0")
        ('0.0', '0.1')
    """
    return tuple(f"{container}.{name}" for name, _ in module.get_submodule(container).named_children())


def same_layout(layout: Layout, shapes: Mapping[str, tuple[int, ...]], skip: tuple[str, ...] = ()) -> dict[str, Layout]:
    """The layout for each layer, after checking it against the shape that was seen.

    Raises:
        AnatomyError: If a shape cannot have that layout.
    """
    kept = {name: shape for name, shape in shapes.items() if name not in skip}
    for name, shape in kept.items():
        if not layout.fits(shape):
            raise AnatomyError(
                f"layer {name!r} put out shape {shape}, which is not {layout.form} on a grid of "
                f"{layout.grid} with {layout.prefix} prefix tokens; {HOW_TO_REGISTER}"
            )
    return dict.fromkeys(kept, layout)


def half_up(grid: tuple[int, int]) -> tuple[int, int]:
    """The grid after merging two by two, odd edges rounded up.

    Example:
        >>> half_up((7, 4))
        (4, 2)
    """
    return (grid[0] + 1) // 2, (grid[1] + 1) // 2


def convolutional(module: nn.Module, size: Size, layers: tuple[str, ...], target: str) -> Anatomy:
    """The anatomy of a convolutional model, all of whose named layers put out [N, C, h, w]."""
    shapes = output_shapes(module, size, [*layers, target])
    layouts: dict[str, Layout] = {}
    for name, shape in shapes.items():
        if len(shape) != 4:
            raise AnatomyError(f"layer {name!r} put out shape {shape} instead of [N, C, h, w]; {HOW_TO_REGISTER}")
        layouts[name] = Layout("nchw", (shape[2], shape[3]))
    return Anatomy("cnn", size, target_layer=target, feature_layers=layers, layouts=layouts)


def last_activations_before_pools(module: nn.Module, container: str) -> tuple[str, ...]:
    """Names of the layers right before each pooling of a plain sequence, as in VGG.

    Example:
        >>> net = nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)))
        >>> last_activations_before_pools(net, "0")
        ('0.1',)
    """
    names = children(module, container)
    layers = tuple(
        before
        for before, name in pairwise(names)
        if isinstance(module.get_submodule(name), nn.MaxPool2d | nn.AvgPool2d)
    )
    if not layers:
        raise AnatomyError(f"{container!r} of {type(module).__name__} has no pooling; {HOW_TO_REGISTER}")
    return layers
