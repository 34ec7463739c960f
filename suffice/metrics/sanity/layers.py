"""The layers of a module, from input to output, as groups of its weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from suffice.errors import OptionError

LISTS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
STATISTICS = ("running_mean", "running_var")


@dataclass(frozen=True)
class Layer:
    """Weights that are randomized together.

    Attributes:
        name: Of the part of the module that gave the layer its name.
        tensors: Full names of its parameters, and of its running statistics.
    """

    name: str
    tensors: tuple[str, ...]


def layers_of(module: nn.Module) -> tuple[Layer, ...]:
    """The layers of a module, from input to output; together they have all of its weights.

    The parts of a module are its children, in the order in which they were defined; lists of parts, and parts that
    hold lists of blocks somewhere, are taken apart, down to single blocks. A part that has nothing but vectors, such as
    a normalization, belongs to the part before it. Parameters that lie beside the parts, such as class tokens and
    position embeddings, belong to the first part, the stem.

    Example:
        >>> net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4, 2))
        >>> for layer in layers_of(net):
        ...     print(layer.name, *layer.tensors)
        0 0.weight 0.bias 1.weight 1.bias 1.running_mean 1.running_var
        4 4.weight 4.bias
    """
    weights = weights_of(module)
    if not any(tensor.numel() for tensor in weights.values()):
        raise OptionError(
            f"{type(module).__name__} has no parameters, so there is nothing to randomize; give a trained network."
        )
    found: list[tuple[str, list[str]]] = []
    beside: list[str] = []  # belongs to a part that has not come yet
    for name, tensors in _parts(module, "", weights):
        if name is None:
            beside += tensors
        elif found and all(weights[tensor].dim() <= 1 for tensor in tensors):
            found[-1][1].extend(tensors)
        else:
            found.append((name, beside + tensors))
            beside = []
    if beside and found:  # after the last part
        found[-1][1].extend(beside)
    elif beside:
        found.append((type(module).__name__, beside))
    return tuple(Layer(name, tuple(tensors)) for name, tensors in found)


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """All that a module has learned, by name: its floating point parameters, shared ones once, and running statistics.

    Other buffers are not learned: indices, masks, tables, constants of the input.
    """
    weights = {name: p.detach() for name, p in module.named_parameters() if p.is_floating_point()}
    for owner, part in module.named_modules():
        own = dict(part.named_buffers(recurse=False))
        if STATISTICS[1] in own:  # frozen normalizations keep weight and bias as buffers too
            prefix = f"{owner}." if owner else ""
            weights |= {prefix + name: buffer for name, buffer in own.items() if buffer.is_floating_point()}
    return weights


def _parts(module: nn.Module, name: str, weights: dict[str, Tensor]) -> Iterator[tuple[str | None, list[str]]]:
    """Parts in order, with their weights; None is the name of weights that lie beside parts."""
    prefix = f"{name}." if name else ""
    within = [tensor for tensor in weights if tensor.startswith(prefix)]
    if name and not (isinstance(module, LISTS) or _holds_blocks(module)):
        if within:
            yield name, within
        return
    of_children = tuple(f"{prefix}{child}." for child, _ in module.named_children())
    beside = [tensor for tensor in within if not tensor.startswith(of_children)]
    if beside:
        yield None, beside
    for child, part in module.named_children():
        yield from _parts(part, prefix + child, weights)


def _holds_blocks(module: nn.Module) -> bool:
    """Whether somewhere in a module there is a list of blocks: of two or more parts that are made of parts."""
    return any(
        isinstance(part, LISTS) and sum(_is_made_of_parts(block) for block in part.children()) > 1
        for part in module.modules()
    )


def _is_made_of_parts(module: nn.Module) -> bool:
    return any(True for part in module.children() for _ in part.parameters())
