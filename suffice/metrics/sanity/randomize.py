"""Random weights in place of trained ones, layer by layer from input to output, in a copy of the module."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from suffice.errors import OptionError
from suffice.vision.anatomy.copies import working_copy
from suffice.vision.identity import image_seed

How = Literal["reinitialize", "permute"]

LISTS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
# What normalizations begin with, for those that do not say it themselves.
BEGINNING = {"running_mean": 0.0, "running_var": 1.0, "weight": 1.0, "bias": 0.0}


@dataclass(frozen=True)
class Layer:
    """Weights that are randomized together: the full names of parameters and running statistics."""

    name: str
    tensors: tuple[str, ...]


class Randomizer:
    """A copy of a module whose layers can be randomized and restored; the module itself is never touched.

    All random weights are drawn once, each tensor from its own seed. So a layer gets the same random weights whichever
    other layers are randomized, on whichever device.

    * ``"reinitialize"``: the weights that a module has before training, by the ``reset_parameters`` of its parts. For
      normalizations this means ones and zeros, also for running statistics. What no part resets (class tokens, position
      embeddings, layer scales) is drawn from a normal distribution with the mean and the standard deviation of the
      trained values.
    * ``"permute"``: the trained values of each tensor in random order, running statistics included. What has a single
      value, or only equal ones, stays the same.

    Attributes:
        module: The copy.
        layers: Its layers, from input to output.

    Example:
        >>> trained = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
        >>> random = Randomizer(trained, "permute", seed=0)
        >>> random.randomize(random.layers[1:])
        >>> [bool((a == b).all()) for a, b in zip(trained.parameters(), random.module.parameters())]
        [True, True, False, False]
    """

    def __init__(self, module: nn.Module, how: How = "reinitialize", seed: int = 0) -> None:
        if how not in get_args(How):
            raise OptionError(f"how={how!r}; it can be 'reinitialize' or 'permute'.")
        self.layers = layers_of(module)
        self.module = working_copy(module)
        self._trained = {name: tensor.clone() for name, tensor in weights_of(module).items()}
        self._random = permuted(self._trained, seed) if how == "permute" else reinitialized(module, seed)

    @torch.no_grad()
    def randomize(self, layers: Iterable[Layer]) -> None:
        """Give these layers their random weights, and all others the trained ones."""
        random = {name for layer in layers for name in layer.tensors}
        for name, tensor in weights_of(self.module).items():
            tensor.copy_((self._random if name in random else self._trained)[name])


def permuted(weights: dict[str, Tensor], seed: int) -> dict[str, Tensor]:
    """The values of each tensor in random order."""
    shuffled = {}
    for name, tensor in weights.items():
        order = torch.randperm(tensor.numel(), generator=torch.Generator().manual_seed(image_seed(seed, name)))
        shuffled[name] = tensor.flatten()[order.to(tensor.device)].view(tensor.shape)
    return shuffled


@torch.no_grad()
def reinitialized(module: nn.Module, seed: int) -> dict[str, Tensor]:
    """Weights as they are before training; see :class:`Randomizer`."""
    fresh = working_copy(module).cpu()
    trained = {name: tensor.clone() for name, tensor in weights_of(fresh).items()}
    weights = weights_of(fresh)
    for tensor in weights.values():
        tensor.fill_(torch.nan)  # what is still NaN afterwards was reset by nobody
    for name, part in fresh.named_modules():
        reset = getattr(part, "reset_parameters", None)
        if callable(reset) and _takes_nothing(reset):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(image_seed(seed, name))
                reset()
    for name, tensor in weights.items():
        if tensor.isfinite().all():
            continue
        old, own = trained[name].double(), name.rpartition(".")[2]
        if own in BEGINNING and name not in dict(fresh.named_parameters()):
            tensor.fill_(BEGINNING[own])
        else:
            generator = torch.Generator().manual_seed(image_seed(seed, name))
            noise = torch.randn(old.shape, generator=generator, dtype=torch.float64)
            tensor.copy_(old.mean() + old.std(correction=0) * noise)
    return weights


def _takes_nothing(function: object) -> bool:
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


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
    found = found or [(type(module).__name__, [])]
    found[-1][1].extend(beside)  # what came after the last part
    return tuple(Layer(name, tuple(tensors)) for name, tensors in found)


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """All that a module has learned, by name: its floating point parameters, shared ones once, and running statistics.

    Other buffers are not learned: indices, masks, tables, constants of the input.
    """
    weights = {name: p.detach() for name, p in module.named_parameters() if p.is_floating_point()}
    for owner, part in module.named_modules():
        own = dict(part.named_buffers(recurse=False))
        if "running_var" in own:  # frozen normalizations keep weight and bias as buffers too
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

    def made_of_parts(block: nn.Module) -> bool:
        return any(True for part in block.children() for _ in part.parameters())

    return any(isinstance(part, LISTS) and sum(map(made_of_parts, part.children())) > 1 for part in module.modules())
