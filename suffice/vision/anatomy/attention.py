"""See attention matrices as they are computed, whichever library computes them.

Fused kernels never hand out the matrix, and flags that turn them off differ between libraries and versions. So the
calls themselves are intercepted: a function mode is active while the model runs, and inside the attention modules of
interest it computes scaled dot product attention step by step, keeps what softmax returns, and does the work of
``nn.MultiheadAttention``. The matrix kept is the very one that the output is computed from, so gradients reach it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from suffice.errors import AnatomyError

_SOFTMAX = (torch.softmax, torch.Tensor.softmax, F.softmax, torch.special.softmax)
_MULTI_HEAD_ARGUMENTS = inspect.signature(F.multi_head_attention_forward)

Keep = Callable[[str, Tensor], Tensor]


def computes_attention(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call computes attention; softmax does when it is over the last axis of at least three: the keys."""
    if func in (F.scaled_dot_product_attention, F.multi_head_attention_forward):
        return True
    if func not in _SOFTMAX:
        return False
    scores = args[0] if args else kwargs["input"]
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    return scores.dim() >= 3 and axis in (-1, scores.dim() - 1)


@dataclass
class _Running:
    """An attention module whose forward pass is under way."""

    name: str
    module: nn.Module
    batch: int  # images, or windows of images, that it was given
    computed: int = 0


class AttentionCapture(TorchFunctionMode):
    """Hands each attention matrix computed inside the modules of interest to ``keep``; uses what comes back.

    ``keep`` is called with the module's name and the matrix [N, heads, queries, keys] after softmax ([N*windows, heads,
    queries, keys] for windowed attention). What it returns takes the matrix's place in the computation.
    """

    def __init__(self, keep: Keep) -> None:
        super().__init__()
        self._keep = keep
        self._stack: list[_Running] = []

    def entering(self, name: str, module: nn.Module, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note that a module of interest starts; call from a forward pre-hook."""
        tensors = [x for x in (*inputs, *kwargs.values()) if isinstance(x, Tensor)]
        self._stack.append(_Running(name, module, tensors[0].shape[0] if tensors else 0))

    def leaving(self) -> None:
        """Note that the module that started last is done; call from a forward hook."""
        self._stack.pop()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Take over calls that compute attention inside a module of interest; pass on all others."""
        kwargs = kwargs or {}
        if not self._stack or not computes_attention(func, args, kwargs):
            return func(*args, **kwargs)
        running = self._stack[-1]
        running.computed += 1
        if running.computed > 1:
            several = (
                f"{running.name!r} ({type(running.module).__name__}) computes several attention matrices in one pass"
            )
            raise AnatomyError(f"{several}; ask for a module inside it that computes one")
        if func is F.scaled_dot_product_attention:
            return self._scaled_dot_product(*args, **kwargs)
        if func is F.multi_head_attention_forward:
            return self._multi_head(_MULTI_HEAD_ARGUMENTS.bind(*args, **kwargs))
        # What the module does with the matrix is its own business, in-place changes included.
        return self._kept(func(*args, **kwargs)).clone()

    def _kept(self, weights: Tensor) -> Tensor:
        """Hand over the matrix in the form [N, heads, queries, keys]; what comes back, in its own form."""
        running = self._stack[-1]
        if weights.dim() == 4:
            return self._keep(running.name, weights)
        if weights.dim() == 5 and _is_nest(running.module):
            # [N, heads, image blocks, queries, keys]: image blocks are windows.
            n, windows = weights.shape[0], weights.shape[2]
            kept = self._keep(running.name, weights.transpose(1, 2).flatten(0, 1))
            return kept.unflatten(0, (n, windows)).transpose(1, 2)
        if weights.dim() == 3:
            # One head, or heads folded into the batch as with torch.bmm.
            heads = getattr(running.module, "num_heads", 1)
            if weights.shape[0] == running.batch * heads:
                return self._keep(running.name, weights.unflatten(0, (running.batch, heads))).flatten(0, 1)
        raise AnatomyError(
            f"{running.name!r} ({type(running.module).__name__}) computes attention of shape {tuple(weights.shape)}, "
            "where heads cannot be told from images and windows; expected [N, heads, queries, keys]"
        )

    def _scaled_dot_product(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """What ``F.scaled_dot_product_attention`` computes, step by step."""
        if dropout_p > 0:
            drops = f"{self._stack[-1].name!r} drops attention at random in evaluation mode"
            raise AnatomyError(f"{drops}, so it is not defined; pass dropout_p=0, not {dropout_p}, when not training")
        if enable_gqa:
            groups = query.shape[-3] // key.shape[-3]
            key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
        # Like the fused kernels: scores and softmax in single precision at least.
        precise = torch.promote_types(query.dtype, torch.float32)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        scores = (query.to(precise) * scale) @ key.to(precise).transpose(-2, -1)
        if is_causal:
            visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
            scores = scores.masked_fill(~visible, float("-inf"))
        if attn_mask is not None:
            hides = attn_mask.dtype == torch.bool
            scores = scores.masked_fill(~attn_mask, float("-inf")) if hides else scores + attn_mask
        if is_causal or attn_mask is not None:
            # A query that may look at nothing gets zeros, not NaN.
            blind = (scores == float("-inf")).all(-1, keepdim=True)
            weights = scores.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)
        else:
            weights = scores.softmax(-1)
        return self._kept(weights.to(value.dtype)) @ value

    def _multi_head(self, bound: inspect.BoundArguments) -> tuple[Tensor, Tensor | None]:
        """What ``F.multi_head_attention_forward`` computes for plain attention without masks.

        Written out because the weights it returns may be a by-product that gradients do not reach.
        """
        bound.apply_defaults()
        given = bound.arguments
        extras = ("attn_mask", "key_padding_mask", "bias_k", "bias_v", "static_k", "static_v")
        unusual = [name for name in extras if given[name] is not None]
        unusual += [name for name in ("add_zero_attn", "use_separate_proj_weight") if given[name]]
        query, key, value = given["query"], given["key"], given["value"]
        if query.dim() != 3:
            unusual.append("input without a batch axis")
        if unusual:
            used = f"{self._stack[-1].name!r} uses nn.MultiheadAttention with {', '.join(unusual)}"
            raise AnatomyError(f"{used}; only plain batched attention can be recorded")
        heads, bias = given["num_heads"], given["in_proj_bias"]
        biases = (None, None, None) if bias is None else bias.chunk(3)
        # Sequences come first here: [length, N, C].
        q, k, v = (
            F.linear(x, weight, b).unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)
            for x, weight, b in zip((query, key, value), given["in_proj_weight"].chunk(3), biases, strict=True)
        )
        weights = self._kept(((q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)).softmax(-1))
        mixed = (weights @ v).permute(2, 0, 1, 3).flatten(2)
        output = F.linear(mixed, given["out_proj_weight"], given["out_proj_bias"])
        if not given["need_weights"]:
            return output, None
        return output, weights.mean(1) if given["average_attn_weights"] else weights


def _is_nest(module: nn.Module) -> bool:
    return any(cls.__module__ == "timm.models.nest" for cls in type(module).__mro__)
