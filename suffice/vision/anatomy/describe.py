"""Find out where a model keeps its tokens, attention, blocks and feature maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from suffice.errors import OptionError
from suffice.vision.anatomy.common import Describe
from suffice.vision.anatomy.generic_cnn import generic_cnn
from suffice.vision.anatomy.known import known_family
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.anatomy.structure import Anatomy, Size, under
from suffice.vision.anatomy.trace import run_blank, undescribed

Test = Callable[[nn.Module], bool]

_registered: list[tuple[Test, Describe]] = []


def describe(module: nn.Module, size: int | tuple[int, int]) -> Anatomy:
    """Find the parts of a model, and how to read their outputs, at one input size.

    The model may be of a known family, hold exactly one such model (after a normalization layer, inside a
    wrapper), or be a plain convolutional model of any make. One blank image is run through it.

    Args:
        module: The model, taking images [N, C, height, width].
        size: Height and width of the images, or one number for both.

    Raises:
        AnatomyError: If the structure is not known or the model cannot process images of that size.

    Example:
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        >>> anatomy = describe(net, 16)
        >>> anatomy.kind, anatomy.target_layer, anatomy.grid(anatomy.target_layer)
        ('cnn', '1', (16, 16))
    """
    height, width = wanted = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise OptionError(f"size is {size}, but height and width of an image are at least 1; write for example 224")
    if found := _recognize(module):
        return found(module, wanted)
    inside = _known_inside(module)
    if len(inside) > 1:
        several = f"{type(module).__name__} holds several models of known families ({', '.join(inside)})"
        raise undescribed(f"{several}, so describe one of them, or the whole by hand")
    if inside:
        ((name, describe_it),) = inside.items()
        part = module.get_submodule(name)
        return under(describe_it(part, _input_size(module, name, wanted)), name, wanted)
    return generic_cnn(module, wanted)


def register_anatomy(test: Test, describe: Describe) -> None:
    """Teach ``describe`` a kind of model. Later registrations come first, all before the built-in ones.

    Args:
        test: Says of any module whether it is of this kind.
        describe: Returns the Anatomy of such a module for an input ``(height, width)``.

    Example:
        >>> from suffice.vision.anatomy import Layout
        >>> class Homemade(nn.Module): ...
        >>> def describe_homemade(module, size):
        ...     layouts = {"body": Layout("nchw", (size[0] // 4, size[1] // 4))}
        ...     return Anatomy("cnn", size, target_layer="body", feature_layers=("body",), layouts=layouts)
        >>> register_anatomy(lambda module: type(module).__name__ == "Homemade", describe_homemade)
        >>> describe(Homemade(), 32).grid("body")
        (8, 8)
    """
    _registered.insert(0, (test, describe))


def _recognize(module: nn.Module) -> Describe | None:
    return next((found for test, found in _registered if test(module)), None) or known_family(module)


def _known_inside(module: nn.Module) -> dict[str, Describe]:
    """The outermost submodules of known families."""
    inside: dict[str, Describe] = {}
    for name, part in module.named_modules():
        if any(name.startswith(f"{outer}.") for outer in inside):
            continue
        if found := _recognize(part):
            inside[name] = found
    return inside


def _input_size(module: nn.Module, name: str, size: Size) -> Size:
    """Height and width of what a submodule is given when the whole model is given an image of ``size``."""
    sizes: list[Size] = []

    def note(_module: nn.Module, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        images = [x for x in (*inputs, *kwargs.values()) if isinstance(x, Tensor) and x.dim() == 4]
        sizes.extend((image.shape[2], image.shape[3]) for image in images[:1])

    with preserved(module), module.get_submodule(name).register_forward_pre_hook(note, with_kwargs=True):
        run_blank(module, size)
    if len(sizes) != 1:
        raise undescribed(f"{name!r} in {type(module).__name__} was given {len(sizes)} images in a pass instead of one")
    return sizes[0]
