"""Batch normalization folded into the convolutions that feed it.

In evaluation mode it scales and shifts each channel by fixed numbers, so that a convolution with other weights computes
both at once, exact to rounding. Which convolutions these are is seen in one forward pass: a normalization must receive
the very tensor that a convolution put out, and nothing else may read that tensor, nor the weights of the two. Two more
passes show whether the folded model says the same.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from suffice.perturb.half import at_least_float32
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.outputs import class_scores

Pairs = list[tuple[str, str]]


def foldable(module: nn.Module, inputs: Tensor) -> Pairs:
    """Names of convolutions and the batch normalizations that can be folded into them.

    The model is run once in evaluation mode, on inputs such as one image of noise, and left as it was.

    Example:
        >>> foldable(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), torch.rand(1, 3, 8, 8))
        [('0', '1')]
    """
    convolutions = {name: part for name, part in module.named_modules() if _plain(part) and _is_convolution(part)}
    norms = {name: part for name, part in module.named_modules() if _plain(part) and _is_batch_norm(part)}
    if not convolutions or not norms:
        return []
    made: list[tuple[str, Tensor]] = []
    read: list[tuple[str, Tensor]] = []

    def note_output(name: str, _module: nn.Module, _inputs: Any, output: Tensor) -> None:
        made.append((name, output))
        uses.counts[id(output)] = 0

    def note_input(name: str, _module: nn.Module, args: tuple[Any, ...]) -> None:
        read.append((name, args[0]))

    uses = _Uses()
    numbers = {name: _numbers(part) for name, part in (convolutions | norms).items()}
    uses.counts = dict.fromkeys((id(value) for values in numbers.values() for value in values), 0)
    with ExitStack() as stack, preserved(module), torch.no_grad():
        # Hooks are taken off here: where the model is being preserved already, that ends later.
        for name, part in convolutions.items():
            stack.callback(part.register_forward_hook(partial(note_output, name)).remove)
        for name, part in norms.items():
            stack.callback(part.register_forward_pre_hook(partial(note_input, name)).remove)
        with uses:
            outputs = module(inputs)
        uses.note(outputs)  # the caller reads them
    # Numbers that something else reads as well must stay what they are.
    own = {name for name, values in numbers.items() if all(uses.counts[id(value)] <= 1 for value in values)}
    calls = Counter(name for name, _ in made + read)
    once = {name for name in own if calls[name] == 1}
    by_output = {id(tensor): name for name, tensor in made if name in once and uses.counts[id(tensor)] == 1}
    return [(by_output[id(t)], name) for name, t in read if name in once and id(t) in by_output]


def fold(module: nn.Module, pairs: Pairs) -> None:
    """Fold what :func:`foldable` found, in place in a copy of the model; of the normalizations, activations stay."""
    for convolution_name, norm_name in pairs:
        convolution: Any = module.get_submodule(convolution_name)
        norm: Any = module.get_submodule(norm_name)
        convolution.weight, convolution.bias = fuse_conv_bn_weights(
            convolution.weight,
            convolution.bias,
            norm.running_mean,
            norm.running_var,
            norm.eps,
            norm.weight,
            norm.bias,
            transpose=isinstance(convolution, nn.ConvTranspose2d),
        )
        parent, _, name = norm_name.rpartition(".")
        # timm's normalizations may have an activation of their own, which stays.
        rest = [getattr(norm, part) for part in ("drop", "act") if isinstance(getattr(norm, part, None), nn.Module)]
        setattr(module.get_submodule(parent), name, nn.Sequential(*rest) if rest else nn.Identity())


@torch.no_grad()
def fold_if_exact(module: nn.Module, pairs: Pairs, inputs: Tensor) -> None:
    """Fold in place, unless the model then says something else of these inputs.

    What a forward method asks of its normalization by other ways than a tensor, such as of which class it is, is not
    seen by :func:`foldable`.
    """

    def said() -> Tensor:
        return class_scores(module(at_least_float32(inputs)))

    with preserved(module), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        try:
            expected = said()
            fold(module, pairs)
            found = said()
        except Exception:  # whatever it is: as it was made, the model may do without it
            return
    largest = float(expected.abs().nan_to_num(0.0, posinf=0.0).max())
    if torch.allclose(found, expected, rtol=0.0, atol=0.01 * largest, equal_nan=True):
        fold(module, pairs)


class _Uses(TorchDispatchMode):
    """Counts how often tensors are read by an operation."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[int, int] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.note((args, kwargs))
        return function(*args, **(kwargs or {}))

    def note(self, values: Any) -> None:
        """Count all tensors among nested values."""
        for value in tree_leaves(values):
            if isinstance(value, Tensor) and id(value) in self.counts:
                self.counts[id(value)] += 1


def _numbers(part: nn.Module) -> list[Tensor]:
    return [*part.parameters(), *part.buffers()]


def _plain(part: nn.Module) -> bool:
    """Whether nobody watches a module, who would miss what folding takes away."""
    return not (part._forward_hooks or part._forward_pre_hooks or part._backward_hooks)


def _is_convolution(part: nn.Module) -> bool:
    # Just these: others may do something to their weights first, such as standardizing them.
    return type(part) in (nn.Conv2d, nn.ConvTranspose2d) or _is_of_timm(part, "Conv2dSame")


def _is_batch_norm(part: nn.Module) -> bool:
    known = type(part) is nn.BatchNorm2d or _is_of_timm(part, "BatchNormAct2d")
    return known and getattr(part, "running_mean", None) is not None


def _is_of_timm(part: nn.Module, name: str) -> bool:
    return type(part).__name__ == name and type(part).__module__.startswith("timm.")
