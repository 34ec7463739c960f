"""DeepLIFT's rescale rule: gradients through slopes between an image and a reference, instead of tangents at the image.

The model runs twice. While it sees the reference, what goes into every nonlinear operation is kept, in the order of the
calls; while it sees the image, each of these operations is replaced by one with the same value and a slope of its own
(:mod:`suffice.attribution.slopes`). What is left for the backward pass is linear, so that contributions add up to the
difference of the outputs; whether it really is linear is checked on the graph. As calls are intercepted, not modules,
it makes no difference whether an activation is a module, a function, in place, or used again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from suffice.attribution.slopes import RULES, Call
from suffice.errors import AnatomyError
from suffice.perturb.batch import Batch, Output, require_gradient
from suffice.vision.anatomy.preserve import preserved

# What autograd calls operations that are linear in whatever is differentiated.
_LINEAR = {
    "Add", "Alias", "AsStrided", "AvgPool2D", "AdaptiveAvgPool2D", "MkldnnAdaptiveAvgPool2D", "Cat", "Clone",
    "ConstantPadNd", "Copy", "CopySlices", "Expand", "Flip", "Gather", "IndexSelect", "Index", "Mean", "Neg",
    "Permute", "PixelShuffle", "PixelUnshuffle", "ReflectionPad2D", "Repeat", "ReplicationPad2D", "ReshapeAlias",
    "Roll", "Select", "Slice", "Split", "SplitWithSizes", "Squeeze", "Stack", "Sub", "Rsub", "Sum", "T", "ToCopy",
    "Transpose", "Unbind", "UnsafeSplit", "UnsafeView", "Unsqueeze", "UpsampleBicubic2D", "UpsampleBilinear2D",
    "UpsampleNearest2D", "View", "AccumulateGrad", "Through",
}  # fmt: skip
# Products, and which of their operands may be differentiated together with no other.
_PRODUCTS = {"Mul": (0, 1), "Mm": (0, 1), "Bmm": (0, 1), "Addmm": (1, 2), "Baddbmm": (1, 2), "Mv": (0, 1)}
_PRODUCTS |= {"Convolution": (0, 1), "MkldnnConvolution": (0, 1), "CudnnConvolution": (0, 1), "Linear": (0, 1)}
_NORMS = ("NativeBatchNorm", "CudnnBatchNorm", "MiopenBatchNorm")


def contributions(batch: Batch, reference: Tensor, output: Output = "logit") -> tuple[Tensor, Tensor]:
    """Contributions of each number of the inputs to the difference that the image makes to the output.

    Args:
        batch: The images.
        reference: What they are compared with, normalized, [B, 3, H, W].
        output: The ``"logit"`` or the ``"score"``.

    Returns:
        Contributions [B, 3, H, W], and the differences of outputs to which they add up, [B].
    """
    reference = reference.to(batch.inputs.dtype)
    frozen = preserved(batch.runner.module, frozen=True)  # only what depends on the image may be in the graph
    with frozen, torch.inference_mode(False), torch.enable_grad():
        with torch.no_grad(), _Watch() as watch:
            before = batch.outputs(reference, output)
        leaf = batch.inputs.detach().requires_grad_()
        with _Rescale(watch.calls):
            now = batch.outputs(leaf.clone(), output)  # a copy: in-place operations may not change a leaf
        require_gradient(now, batch.net)
        _require_linear(now.grad_fn)
        (multipliers,) = torch.autograd.grad(now.sum(), leaf)
    return multipliers * (batch.inputs - reference), now.detach() - before


class _Watch(TorchFunctionMode):
    """Keeps the operands of every call that has a rule."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in RULES:
            # Copies: what follows may work in place.
            operands = Call.of(func, args, kwargs).operands
            self.calls.append((func, tuple(x.clone() if isinstance(x, Tensor) else x for x in operands)))
        return func(*args, **kwargs)


class _Rescale(TorchFunctionMode):
    """Gives every call that has a rule its slopes, by the operands that it had for the reference."""

    def __init__(self, calls: list[tuple[Callable[..., Any], tuple[Any, ...]]]) -> None:
        super().__init__()
        self._calls: Iterator[tuple[Callable[..., Any], tuple[Any, ...]]] = iter(calls)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func not in RULES:
            return func(*args, **kwargs)
        call = Call.of(func, args, kwargs)
        same, before = next(self._calls, (None, ()))
        if same is not func or [_shape(x) for x in before] != [_shape(x) for x in call.operands]:
            raise AnatomyError(
                "the model goes another way for the image than for its baseline, so they cannot be paired"
            )
        return call.with_slopes(before)


def _shape(operand: Any) -> Any:
    return operand.shape if isinstance(operand, Tensor) else None


def _require_linear(start: Any) -> None:
    """Raise an error where something in a graph is not linear in what is differentiated."""
    left, done = [start], set()
    while left:
        node = left.pop()
        if node is None or node in done:
            continue
        done.add(node)
        inputs = [parent for parent, _ in node.next_functions]
        left += inputs
        name = node.name().rpartition("::")[2].partition("Backward")[0]
        if name in _PRODUCTS:
            linear = sum(inputs[i] is not None for i in _PRODUCTS[name]) < 2
        elif name == "Div":
            linear = len(inputs) < 2 or inputs[1] is None
        elif name in _NORMS:
            linear = not node._saved_training
        else:
            linear = name in _LINEAR
        if not linear:
            advice = "integrated-gradients has no such limits"
            raise AnatomyError(f"it computes {name}, which the rescale rule is not defined for here; {advice}")
