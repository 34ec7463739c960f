"""What the tokens perceive of each other, and what the class gives back: BT-H by heads, BT-T by tokens."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from suffice.attribution.method import method
from suffice.attribution.tokens.attention_flow import (
    Steps,
    TokenPath,
    attention_and_gradients,
    find_path,
    fuse_heads,
    integrated_feedback,
    published_start,
    read_attention,
    why_in_windows,
)
from suffice.errors import OptionError
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output
from suffice.vision.anatomy.attention import AttentionCapture
from suffice.vision.anatomy.trace import first_tensor

# Arguments, by position and by name.
Call = tuple[tuple[Any, ...], dict[str, Any]]

REFERENCE = "Chen et al., Beyond Intuition: Rethinking Token Attributions inside Transformers, TMLR 2023"


@method(
    "bt-h",
    reference=REFERENCE,
    needs=("gradients", "attention"),
    incompatible=why_in_windows,
    questions=lambda net, options: options["steps"] + 1,
)
def bt_h(
    batch: Batch,
    *,
    start_layer: int | None = None,
    steps: Steps = 20,
    baseline: Baseline = "mean",
    output: Output = "logit",
) -> Tensor:
    """Attention through the blocks with heads weighted by importance, times integrated gradients.

    A head's importance in a block is the mean magnitude of Aᵀ·G, attention times its gradient, as a share of that of
    all heads. Where the model's head reads a distillation token as well as the class token, the map is the mean of
    both; where it pools over patch tokens, the mean over these.

    Args:
        batch: The images.
        start_layer: As for ``tam``; default: 3, the paper's layer 4 of 12 counted from 1.
        steps: As for ``tam``.
        baseline: As for ``tam``.
        output: Differentiate the ``"logit"``, as published, or the ``"score"``.

    Returns:
        [B, h, w], on the grid of the patch tokens.
    """
    start = published_start(batch, 3) if start_layer is None else start_layer
    path = find_path(batch, "bt-h", start, pooled=True)
    rows = path.start(batch.inputs)
    for attention, gradients in attention_and_gradients(batch, path, output):
        importance = (attention.transpose(-2, -1) @ gradients).abs().mean(dim=(-2, -1))
        total = importance.sum(dim=1, keepdim=True)
        share = (importance / total).where(total > 0, 0.0)
        rows = rows + rows @ torch.einsum("bh,bhqk->bqk", share, attention)
    return path.maps(rows * integrated_feedback(batch, path, steps, baseline, output))


@method(
    "bt-t",
    reference=REFERENCE,
    needs=("gradients", "attention"),
    incompatible=why_in_windows,
    questions=lambda net, options: options["steps"] + 1,
)
def bt_t(
    batch: Batch,
    *,
    start_layer: int | None = None,
    steps: Steps = 20,
    baseline: Baseline = "mean",
    output: Output = "logit",
) -> Tensor:
    """Attention through the blocks with tokens weighted by their values, times integrated gradients.

    What a token brings to a block's attention is the length of its values, after the output projection and without its
    bias, relative to the length of the token as it enters the block. Heads are averaged, and so are maps as for
    ``bt-h``.

    Args:
        batch: The images.
        start_layer: As for ``tam``; default: 6, the paper's layer 7 of 12 counted from 1.
        steps: As for ``tam``.
        baseline: As for ``tam``.
        output: Differentiate the ``"logit"``, as published, or the ``"score"``.

    Returns:
        [B, h, w], on the grid of the patch tokens.
    """
    start = published_start(batch, 6) if start_layer is None else start_layer
    path = find_path(batch, "bt-t", start, pooled=True)
    mixed, brought = _attention_and_brought(batch, path)
    rows = path.start(batch.inputs)
    for attention, share in zip(reversed(mixed), reversed(brought), strict=True):
        # All factors are 0 or more, so the published magnitude of the rows is the rows.
        rows = rows + (rows @ attention) * share[:, None]
    return path.maps(rows * integrated_feedback(batch, path, steps, baseline, output))


def _attention_and_brought(batch: Batch, path: TokenPath) -> tuple[list[Tensor], list[Tensor]]:
    """Mean attention over heads [B, N, N] of each block, and what each token brings to it [B, N]."""
    module = batch.runner.module
    lengths: dict[str, Tensor] = {}
    calls: dict[str, Call] = {}

    def note_length(block: str, _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tokens = first_tensor((*args, *kwargs.values()))
        assert tokens is not None, f"{block} was called without a tensor"
        lengths[block] = tokens.norm(dim=-1)

    def note_call(attention: str, _module: nn.Module, *call: Any) -> None:
        calls[attention] = call

    with ExitStack() as stack:
        for names, note in ((path.blocks, note_length), (path.attention, note_call)):
            for name in names:
                noting = partial(note, name)
                handle = module.get_submodule(name).register_forward_pre_hook(noting, with_kwargs=True)
                stack.callback(handle.remove)
        mixed = read_attention(batch, path, partial(fuse_heads, heads="mean"))

    brought: list[Tensor] = []
    for block, attention in zip(path.blocks, path.attention, strict=True):
        attend = partial(_attend_to_self, module.get_submodule(attention), attention, calls.pop(attention))
        nothing = attend(0.0)
        values = attend(1.0) - nothing
        # Blocks are built alike, so the first speaks for all. Far away, and beyond zero, no activation looks linear.
        if not brought and ((attend(-100.0) - nothing) / -100 - values).norm() > 1e-2 * values.norm():
            raise OptionError(
                f"bt-t does not fit {path.model}: more than a linear projection follows the attention in {attention}, "
                "so that values have no length after it."
            )
        brought.append((values.norm(dim=-1) / lengths[block]).where(lengths[block] > 0, 0.0))
    return mixed, brought


def _attend_to_self(module: nn.Module, name: str, call: Call, weight: float) -> Tensor:
    """What an attention module puts out where each token attends to itself alone, with this weight.

    With weight 1, less what comes out with weight 0, that is each token's values of all heads after the output
    projection and without its bias, whatever the module's layers are called.
    """

    def own(_name: str, weights: Tensor) -> Tensor:
        return weight * torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device).expand_as(weights)

    args, kwargs = call
    capture = AttentionCapture(own)
    with capture:
        capture.entering(name, module, args, kwargs)
        found = first_tensor(module(*args, **kwargs))
    assert found is not None, f"{name} puts out no tensor"
    return found
