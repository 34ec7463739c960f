"""Slopes of nonlinear operations between two points: the rules behind DeepLIFT.

A rule gives an operation its value at one point, and in the backward pass a slope by which differences add up: slope
times the difference of operands is the difference of results.

* An elementwise function has the slope of its secant, (f(x) - f(x₀)) / (x - x₀): the published rescale rule.
* Max-pooling gives the difference to the larger of the two maxima's places, as Captum does, shared by windows that
  overlap.
* A product of two operands that both depend on the image has for each the mean of the other: the Shapley value of two
  players.
* Softmax, layer normalization and attention are composed of these: sums, secants and products.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from suffice.errors import AnatomyError

Rule = Callable[["Call", tuple[Any, ...]], Tensor]


@dataclass
class Call:
    """A call of an operation: the operands that may depend on the image, and everything else."""

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    rest: tuple[Any, ...]
    options: dict[str, Any]
    in_place: bool = False

    @classmethod
    def of(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Tell operands from the rest."""
        _, names = RULES[function]
        named = dict(kwargs)
        given = list(args)
        while len(given) < len(names) and names[len(given)] in named:
            given.append(named.pop(names[len(given)]))
        return cls(function, tuple(given[: len(names)]), tuple(given[len(names) :]), named)

    def __call__(self, *operands: Any) -> Any:
        """The same with other operands, which stay as they are even where it works in place."""
        copies = [x.clone() if isinstance(x, Tensor) else x for x in operands]
        result = self.function(*copies, *self.rest, **self.options)
        self.in_place = any(result is copy for copy in copies)
        return result

    def with_slopes(self, before: tuple[Any, ...]) -> Any:
        """The result, with slopes between the operands ``before`` and these; in place where the function is."""
        if not any(_varies(x) for x in self.operands):
            return self.function(*self.operands, *self.rest, **self.options)
        if any(_varies(x) for x in (*self.rest, *self.options.values())):
            raise AnatomyError(
                f"{self.function.__name__} has arguments that depend on the image in ways without a rule"
            )
        result = RULES[self.function][0](self, before)
        return self.operands[0].copy_(result) if self.in_place else result


class Through(torch.autograd.Function):
    """A value whose gradient goes to something else of the same shape."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, other: Tensor) -> Tensor:
        """The value."""
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        """The gradient, for the other."""
        return None, gradient


def secant(function: Callable[[Tensor], Tensor], x: Tensor, x0: Tensor) -> Tensor:
    """An elementwise function with the slope of its secant."""
    here = x.detach()
    with torch.no_grad():
        value, step = function(here), here - x0
        near = _near(here, x0)
        slope = (value - function(x0)) / step.masked_fill(near, 1)
    if near.any():
        with torch.enable_grad():
            middle = ((here + x0) / 2).requires_grad_()
            (tangent,) = torch.autograd.grad(function(middle).sum(), middle)
        slope = torch.where(near, tangent, slope)
    return Through.apply(value, slope * x)


def product(function: Callable[[Any, Any], Tensor], a: Any, b: Any, a0: Any, b0: Any) -> Tensor:
    """A function linear in each of two operands, each with the mean of the other as its slope."""
    if not (_varies(a) and _varies(b)):
        return function(a, b)
    here, there = a.detach(), b.detach()
    with torch.no_grad():
        value = function(here, there)
    linear = function(a, (there + b0) / 2) + function((here + a0) / 2, b)
    return Through.apply(value, linear)


def _near(x: Tensor, x0: Tensor) -> Tensor:
    """Where two points are no base for a secant: rounding would decide it. There the tangent between them is taken."""
    return (x - x0).abs() <= 8 * torch.finfo(x.dtype).eps * torch.maximum(x.abs(), x0.abs())


def _varies(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _elementwise(call: Call, before: tuple[Any, ...]) -> Tensor:
    return secant(call, call.operands[0], before[0])


def _product(call: Call, before: tuple[Any, ...]) -> Tensor:
    return product(call, *call.operands, *before)


def _einsum(call: Call, before: tuple[Any, ...]) -> Tensor:
    if len(call.rest):
        raise AnatomyError("einsum of three operands or more has no rule")
    equation = call.operands[0]
    return product(lambda a, b: torch.einsum(equation, a, b), *call.operands[1:], *before[1:])


def _division(call: Call, before: tuple[Any, ...]) -> Tensor:
    above, below = call.operands
    if not _varies(below):
        return call(above, below)
    inverse = secant(torch.reciprocal, below, before[1])
    return product(operator.mul, above, inverse, before[0], before[1].reciprocal())


def _max_pool(call: Call, before: tuple[Any, ...]) -> Tensor:
    pool = F.adaptive_max_pool2d if call.function in _ADAPTIVE else F.max_pool2d
    x, x0 = call.operands[0], before[0]
    options = {name: value for name, value in call.options.items() if name != "return_indices"}
    with torch.no_grad():
        value, at = pool(x.detach(), *call.rest, **options, return_indices=True)
        value0, at0 = pool(x0, *call.rest, **options, return_indices=True)
        place = torch.where(value >= value0, at, at0).flatten(-2)
        here, there = (t.flatten(-2).gather(-1, place) for t in (x.detach(), x0))
        near = _near(here, there)
        slope = ((value - value0).flatten(-2) / (here - there).masked_fill(near, 1)).masked_fill(near, 1)
    linear = slope * x.flatten(-2).gather(-1, place)
    return Through.apply(value, linear.view_as(value))


def softmax(x: Tensor, x0: Tensor, dim: int) -> Tensor:
    """Exponentials times the inverse of their sum."""
    # The same for both, so that it cancels.
    shift = torch.maximum(x.detach().amax(dim, keepdim=True), x0.amax(dim, keepdim=True))
    above, above0 = secant(torch.exp, x - shift, x0 - shift), (x0 - shift).exp()
    below, below0 = above.sum(dim, keepdim=True), above0.sum(dim, keepdim=True)
    return product(operator.mul, above, secant(torch.reciprocal, below, below0), above0, below0.reciprocal())


def _softmax(call: Call, before: tuple[Any, ...]) -> Tensor:
    dim = call.rest[0] if call.rest else call.options["dim"]
    dtype = call.options.get("dtype") or call.operands[0].dtype
    return softmax(call.operands[0].to(dtype), before[0].to(dtype), dim)


def _layer_norm(call: Call, before: tuple[Any, ...]) -> Tensor:
    given = dict(zip(("normalized_shape", "weight", "bias", "eps"), call.rest, strict=False)) | call.options
    shape, weight, bias = given["normalized_shape"], given.get("weight"), given.get("bias")
    dims = tuple(range(-len(shape), 0))
    found = _normalized(call.operands[0], before[0], dims, given.get("eps", 1e-5))
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def _group_norm(call: Call, before: tuple[Any, ...]) -> Tensor:
    given = dict(zip(("num_groups", "weight", "bias", "eps"), call.rest, strict=False)) | call.options
    groups = (given["num_groups"], -1)
    x, x0 = call.operands[0].unflatten(1, groups).flatten(2), before[0].unflatten(1, groups).flatten(2)
    found = _normalized(x, x0, (-1,), given.get("eps", 1e-5)).view_as(call.operands[0])
    weight, bias = (
        None if t is None else t.view(-1, *[1] * (found.dim() - 2)) for t in (given.get("weight"), given.get("bias"))
    )
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def _normalized(x: Tensor, x0: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    """What deviates from the mean, times the inverse of its standard deviation."""
    (centered, spread), (centered0, spread0) = (_moments(v, v0, dims) for v, v0 in ((x, x0), (x0, x0)))

    def inverse(variance: Tensor) -> Tensor:
        return (variance + eps).rsqrt()

    return product(operator.mul, centered, secant(inverse, spread, spread0), centered0, inverse(spread0))


def _moments(x: Tensor, x0: Tensor, dims: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    centered = x - x.mean(dims, keepdim=True)
    squares = secant(torch.square, centered, x0 - x0.mean(dims, keepdim=True)) if _varies(x) else centered.square()
    return centered, squares.mean(dims, keepdim=True)


def _attention(call: Call, before: tuple[Any, ...]) -> Tensor:
    given = dict(zip(("attn_mask", "dropout_p", "is_causal"), call.rest, strict=False)) | call.options
    mask, scale = given.get("attn_mask"), given.get("scale")
    if (
        given.get("is_causal")
        or given.get("enable_gqa")
        or given.get("dropout_p")
        or (mask is not None and mask.dtype == torch.bool)
    ):
        raise AnatomyError("attention that hides keys, shares them among queries or drops them at random has no rule")
    (q, k, v), (q0, k0, v0) = call.operands, before
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = product(torch.matmul, q * scale, k.mT, q0 * scale, k0.mT)
    scores0 = (q0 * scale) @ k0.mT
    if mask is not None:
        scores, scores0 = scores + mask, scores0 + mask
    return product(torch.matmul, softmax(scores, scores0, -1), v, scores0.softmax(-1), v0)


def _called(*names: str) -> list[Callable[..., Any]]:
    """Functions of these names, in place or not, wherever torch has them."""
    places = (torch, torch.Tensor, F, torch.special)
    every = (getattr(place, name + end, None) for place in places for name in names for end in ("", "_"))
    return [function for function in every if function is not None]


_FUNCTIONS = (
    "abs", "celu", "clamp", "clamp_max", "clamp_min", "clip", "elu", "erf", "exp", "expm1", "expit", "gelu",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log", "log1p", "logsigmoid", "mish", "pow",
    "prelu", "reciprocal", "relu", "relu6", "rsqrt", "selu", "sigmoid", "silu", "softplus", "softshrink",
    "softsign", "sqrt", "square", "tanh", "tanhshrink", "threshold", "__rdiv__", "__rtruediv__",
)  # fmt: skip
_ADAPTIVE = frozenset(_called("adaptive_max_pool2d"))
RULES: dict[Callable[..., Any], tuple[Rule, tuple[str, ...]]] = {
    **dict.fromkeys(_called(*_FUNCTIONS), (_elementwise, ("input",))),
    **dict.fromkeys(_called("mul", "multiply", "matmul", "bmm", "mm"), (_product, ("input", "other"))),
    **dict.fromkeys(_called("div", "divide", "true_divide"), (_division, ("input", "other"))),
    **dict.fromkeys(_called("max_pool2d", "adaptive_max_pool2d"), (_max_pool, ("input",))),
    **dict.fromkeys(_called("softmax"), (_softmax, ("input",))),
    torch.einsum: (_einsum, ("equation", "first", "second")),
    F.layer_norm: (_layer_norm, ("input",)),
    F.group_norm: (_group_norm, ("input",)),
    F.scaled_dot_product_attention: (_attention, ("query", "key", "value")),
}
"""What has a rule: the rule, and the names of the operands that may depend on the image."""
