"""Random weights in place of trained ones, layer by layer, in a copy of the module."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from suffice.errors import OptionError
from suffice.metrics.sanity.layers import Layer, layers_of, weights_of
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.identity import image_seed

How = Literal["reinitialize", "permute"]

# What normalizations begin with, for those that do not say it themselves.
BEGINNING = {"running_mean": 0.0, "running_var": 1.0, "weight": 1.0, "bias": 0.0}


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

    Args:
        module: The trained module.
        how: See above.
        seed: Seed of the random weights.

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
        self.module = copied(module)
        self._trained = {name: tensor.clone() for name, tensor in weights_of(module).items()}
        self._random = permuted(self._trained, seed) if how == "permute" else reinitialized(module, seed)

    @torch.no_grad()
    def randomize(self, layers: Iterable[Layer]) -> None:
        """Give these layers their random weights, and all others the trained ones."""
        random = {name for layer in layers for name in layer.tensors}
        for name, tensor in weights_of(self.module).items():
            tensor.copy_((self._random if name in random else self._trained)[name])


def copied(module: nn.Module) -> nn.Module:
    """A copy in evaluation mode that has forgotten what it computed from its weights.

    LeViT, for one, remembers its position biases until it is trained again; they would outlive its weights, and with
    gradients they cannot be copied.
    """
    with preserved(module):
        return copy.deepcopy(module.train()).eval()


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
    fresh = copied(module).cpu()
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
