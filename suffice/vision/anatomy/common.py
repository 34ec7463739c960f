"""Descriptions that models of several libraries share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from torch import nn

from suffice.vision.anatomy.structure import Anatomy, Layout, Size
from suffice.vision.anatomy.trace import output_shapes, undescribed

Names = tuple[str, ...]
Norms = tuple[str | None, ...]
Shape = tuple[int, ...]
Describe = Callable[[nn.Module, Size], Anatomy]


def children(module: nn.Module, container: str) -> Names:
    """Names of the children of a container such as ``blocks``, in order."""
    return tuple(f"{container}.{name}" for name, _ in module.get_submodule(container).named_children())


def each(blocks: Iterable[str], part: str) -> Names:
    """The name of the same part of each block."""
    return tuple(f"{block}.{part}" for block in blocks)


def grid_of(shape: Shape) -> Size:
    """Rows and columns of a [N, C, h, w] output of a convolution."""
    if len(shape) != 4:
        raise undescribed(f"a map [N, C, h, w] was expected but the output has shape {shape}")
    return shape[2], shape[3]


def half_up(grid: Size) -> Size:
    """The grid after merging two by two, odd edges rounded up."""
    return (grid[0] + 1) // 2, (grid[1] + 1) // 2


def same_layout(layout: Layout, shapes: Mapping[str, Shape], names: Iterable[str]) -> dict[str, Layout]:
    """The layout for each of the named layers, after checking it against the shape that was seen."""
    layouts = dict.fromkeys(names, layout)
    for name in layouts:
        if not layout.fits(shapes[name]):
            raise undescribed(f"layer {name!r} put out shape {shapes[name]}, which is not {layout}")
    return layouts


def norms_before(norms: Norms, attention: Names, shapes: Mapping[str, Shape]) -> Norms:
    """The norms, None where one comes after the attention ("post-norm"): the order of execution tells."""
    order = list(shapes)
    return tuple(
        norm if norm and order.index(norm) < order.index(attn) else None
        for norm, attn in zip(norms, attention, strict=True)
    )


def one_sequence(
    module: nn.Module,
    size: Size,
    blocks: Names,
    attention: Names,
    norms: Norms,
    *,
    patches: str,
    final: str,
    prefix: int = 1,
    read: tuple[int, ...] = (0,),
) -> Anatomy:
    """A plain transformer: one sequence of tokens on one grid, which the convolution ``patches`` cuts."""
    named = [name for name in (*blocks, *attention, *norms, final) if name]
    shapes = output_shapes(module, size, [patches, *named])
    norms = norms_before(norms, attention, shapes)
    if not read:
        # When the head pools over patch tokens, each token of the pooled layer has a direct share in the
        # logit, as the positions of a ResNet's last stage have: CAM there is what the original CAM is.
        target = blocks[-1] if isinstance(module.get_submodule(final), nn.Identity) else final
    elif norms[-1] is not None:
        # Patch tokens after the last attention have gradient zero when only prefix tokens are read.
        target = norms[-1]
    elif len(blocks) > 1:
        target = blocks[-2]
    else:
        raise undescribed(f"{type(module).__name__} has one block and no layer before its attention to read")
    layouts = same_layout(Layout("tokens", grid_of(shapes[patches]), prefix), shapes, named)
    return Anatomy("transformer", size, target, blocks, layouts, prefix, read, blocks, attention, norms)


def channels_last(module: nn.Module, size: Size, stages: Names, blocks: Names) -> Anatomy:
    """Swin of timm and torchvision: [N, h, w, C] everywhere but inside the attention; V2 normalizes after it."""
    attention, norms = each(blocks, "attn"), each(blocks, "norm1")
    shapes = output_shapes(module, size, [*stages, *blocks, *attention, *norms, "norm"])
    before = norms_before(norms, attention, shapes)
    # Axes 1 and 2 are rows and columns by definition. timm's attention is left out: it is given windows.
    layouts = {name: Layout("nhwc", (shape[1], shape[2])) for name, shape in shapes.items() if len(shape) == 4}
    # The final norm is what the head averages over positions.
    target = before[-1] or "norm"
    return Anatomy("transformer", size, target, stages, layouts, blocks=blocks, attention=attention, norms=before)


def convolutional(module: nn.Module, size: Size, layers: Names, target: str | None = None) -> Anatomy:
    """A convolutional model, all of whose named layers put out [N, C, h, w]; the target is the last unless given."""
    target = target or layers[-1]
    layouts: dict[str, Layout] = {}
    for name, shape in output_shapes(module, size, [*layers, target]).items():
        if len(shape) != 4:
            raise undescribed(f"layer {name!r} put out shape {shape} instead of [N, C, h, w]")
        layouts[name] = Layout("nchw", (shape[2], shape[3]))
    return Anatomy("cnn", size, target, layers, layouts)


def stages_in(container: str, which: slice = slice(None)) -> Describe:
    """How to describe a convolutional model whose stages are children of one container."""
    return lambda module, size: convolutional(module, size, children(module, container)[which])


def resnet(module: nn.Module, size: Size) -> Anatomy:
    """ResNet, ResNet-D, ResNeXt, Wide ResNet and all that share their stages."""
    stages = tuple(f"layer{i}" for i in range(1, 5) if hasattr(module, f"layer{i}"))
    return convolutional(module, size, stages, target=children(module, stages[-1])[-1])


def vgg(module: nn.Module, size: Size) -> Anatomy:
    """VGG with and without batch normalization: the activations before each pooling."""
    pools = nn.MaxPool2d | nn.AvgPool2d
    names = children(module, "features")
    layers = tuple(before for before, name in pairwise(names) if isinstance(module.get_submodule(name), pools))
    if not layers:
        raise undescribed(f"'features' of {type(module).__name__} has no pooling")
    return convolutional(module, size, layers)
