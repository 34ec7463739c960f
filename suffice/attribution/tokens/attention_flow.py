"""Attention, followed through the blocks of a transformer from the tokens that its head reads back to the patches.

What is wanted is always one row (or few) of a product of matrices, one a block. So only these rows are carried from the
last block to the first: a vector times a matrix, where the product would be a matrix times a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.options import Range
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output
from suffice.perturb.half import at_least_float32
from suffice.vision import Classifier
from suffice.vision.anatomy import record

Heads = Literal["mean", "max", "min"]
Steps = Annotated[int, Range(2)]  # both ends of the way count

# Start layers were chosen for models of this depth.
PUBLISHED_DEPTH = 12
IN_WINDOWS = "its blocks do not see all tokens as one sequence, so attention is cut into windows or regrouped"


@dataclass(frozen=True)
class TokenPath:
    """Consecutive blocks in which every token can look at every other, and the tokens at both ends.

    Example:
        >>> path = TokenPath("rollout", "a model", ("b0",), ("b0.attn",), read=(0,), prefix=1, grid=(2, 2))
        >>> path.start(torch.zeros(3, 5, 5)).tolist()[0]
        [[1.0, 0.0, 0.0, 0.0, 0.0]]
        >>> path.maps(torch.arange(5.0).view(1, 1, 5))
        tensor([[[1., 2.],
                 [3., 4.]]])
    """

    method: str  # whose path it is, for messages
    model: str  # its name, for messages
    blocks: tuple[str, ...]  # names, from the first to the last
    attention: tuple[str, ...]  # names of the modules that compute their attention
    read: tuple[int, ...]  # tokens that the head reads, where the path begins
    prefix: int  # tokens before the patch tokens
    grid: tuple[int, int]  # rows and columns of the patch tokens

    @property
    def tokens(self) -> int:
        """Number of tokens N, the prefix included."""
        return self.prefix + self.grid[0] * self.grid[1]

    def rows(self, matrices: Tensor) -> Tensor:
        """Rows [..., Q, N] of matrices [..., N, N] that belong to the tokens the head reads."""
        return matrices[..., list(self.read), :]

    def start(self, like: Tensor) -> Tensor:
        """Rows [B, Q, N] of the identity, in float32 at least, for as many images as ``like`` [B, ...] has."""
        dtype = torch.promote_types(like.dtype, torch.float32)
        rows = self.rows(torch.eye(self.tokens, dtype=dtype, device=like.device))
        return rows.expand(len(like), -1, -1)

    def maps(self, rows: Tensor) -> Tensor:
        """Maps [B, h, w] from rows [B, Q, N]: their mean, at the patches."""
        return rows.mean(dim=1)[:, self.prefix :].unflatten(1, self.grid)

    def checked(self, attention: Tensor, images: int) -> Tensor:
        """The attention of one block, if it is that of all tokens to all tokens, [B, heads, N, N]."""
        if attention.dim() != 4 or (len(attention), *attention.shape[2:]) != (images, self.tokens, self.tokens):
            raise OptionError(
                f"{self.method} does not fit {self.model}: attention of shape {list(attention.shape)} was seen where "
                f"[{images}, heads, {self.tokens}, {self.tokens}] was expected, from every token to every token; "
                "windows, and fewer queries than keys, cannot be followed; a later block may do."
            )
        return attention


def why_in_windows(net: Classifier) -> str | None:
    """Why attention cannot be followed whatever block it is entered at; None where that depends on the block."""
    blocks = net.anatomy.blocks
    return IN_WINDOWS if blocks and net.anatomy.layout(blocks[-1]).form != "tokens" else None


def find_path(batch: Batch, method: str, start: int = 0, stop: int | None = None, *, pooled: bool = False) -> TokenPath:
    """The blocks from ``start`` to before ``stop``, if attention can be followed through them; an error says why not.

    Where a method is defined for heads that are ``pooled`` over the patch tokens, the path begins at each of these, and
    maps are means over them.
    """
    net, anatomy = batch.net, batch.net.anatomy
    depth = len(anatomy.blocks)

    def incompatibility(reason: str) -> OptionError:
        return OptionError(f"{method} does not fit {net.name}: {reason}.")

    if not anatomy.read_tokens and not pooled:
        raise incompatibility("it starts from a class token, and the head of this model reads none")
    if not 0 <= start < depth:
        raise OptionError(f"start_layer={start}; {net.name} has {depth} blocks, from 0 to {depth - 1}.")
    blocks = anatomy.blocks[start:stop]
    layouts = [anatomy.layout(block) for block in blocks]
    last = layouts[-1]
    if any(layout.form != "tokens" for layout in layouts):
        raise incompatibility(IN_WINDOWS)
    if differing := [number for number, layout in enumerate(layouts, start) if layout != last]:
        here, there = (f"{g[0]}×{g[1]}" for g in (anatomy.grid(anatomy.blocks[differing[-1]]), last.grid))
        raise incompatibility(
            f"block {differing[-1]} sees {here} patch tokens and the last {there}, and attention cannot be followed "
            f"through the change; start_layer={differing[-1] + 1} begins after it"
        )
    count = last.prefix + last.grid[0] * last.grid[1]
    return TokenPath(
        method=method,
        model=net.name,
        blocks=blocks,
        attention=anatomy.attention[start:stop],
        read=anatomy.read_tokens or tuple(range(last.prefix, count)),
        prefix=last.prefix,
        grid=last.grid,
    )


def find_block(batch: Batch, method: str, layer: int) -> TokenPath:
    """The path through one block alone, counted from 0, or from the end where negative."""
    depth = len(batch.net.anatomy.blocks)
    if not -depth <= layer < depth:
        raise OptionError(
            f"layer={layer}; {batch.net.name} has {depth} blocks, from 0 to {depth - 1} (or -1 for the last)."
        )
    return find_path(batch, method, layer % depth, layer % depth + 1)


def published_start(batch: Batch, published: int) -> int:
    """A start layer that was chosen for 12 blocks; in shallower models, at the same share of the depth."""
    depth = len(batch.net.anatomy.blocks)
    return published if depth >= PUBLISHED_DEPTH else published * depth // PUBLISHED_DEPTH


def read_attention(batch: Batch, path: TokenPath, reduce: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """What a function makes of each block's attention [B, heads, N, N], in one forward without gradients.

    Attention of all heads and blocks takes more memory than all else, so each is reduced as soon as it is there. It is
    in the precision of the model.
    """
    module = batch.runner.module
    kept: dict[str, Tensor] = {}
    with ExitStack() as stack:
        seen = stack.enter_context(record(module, attention=path.attention))

        def hook(name: str, *_: Any) -> None:
            attention = path.checked(seen.attention[name], len(batch))
            kept[name] = reduce(attention)
            seen.attention[name] = attention.new_empty(0)  # seen, but not kept

        for name in path.attention:
            handle = module.get_submodule(name).register_forward_hook(partial(hook, name))
            stack.callback(handle.remove)
        batch.runner.logits(batch.inputs)
    return [kept[name] for name in path.attention]


def attention_and_gradients(batch: Batch, path: TokenPath, output: Output) -> Iterator[tuple[Tensor, Tensor]]:
    """Attention of each block and the gradients there, [B, heads, N, N] each, from the last block to the first.

    One forward, and one backward pass that ends at the first block's attention. Together they are what takes most
    memory, so they are kept in the precision of the model, made float32 one block at a time, and then let go.
    """
    with record(batch.runner.module, attention=path.attention, gradients=True) as seen:
        gradients = seen.gradients(batch.outputs(batch.inputs, output))
    for name in reversed(path.attention):
        attention = path.checked(seen.attention.pop(name).detach(), len(batch))
        yield at_least_float32(attention), at_least_float32(gradients.attention.pop(name))


def integrated_feedback(batch: Batch, path: TokenPath, steps: int, baseline: Baseline, output: Output) -> Tensor:
    """Gradients at the last attention, averaged on the way from a baseline, clipped at 0, averaged over heads.

    Rows [B, Q, N] of the tokens that the head reads; the steps are points on the way, both its ends included. The graph
    starts at the last attention, so that nothing before it is differentiated or kept.
    """
    last = path.attention[-1]
    hidden = batch.net.normalize(batch.baseline(baseline))
    points = torch.linspace(0, 1, steps).to(hidden)

    def along(versions: range) -> Tensor:
        alpha = points[versions.start : versions.stop, None, None, None, None]
        inputs = (hidden + alpha * (batch.inputs - hidden)).flatten(0, 1)
        with record(batch.runner.module, attention=[last], gradients=True) as seen:
            gradients = seen.gradients(batch.outputs(inputs, output))
        return at_least_float32(path.rows(path.checked(gradients.attention[last], len(inputs))))

    return batch.mean_over(steps, along).relu().mean(dim=1)


def fuse_heads(values: Tensor, heads: Heads) -> Tensor:
    """Values [B, heads, ...] of all heads as one, [B, ...], in float32 at least.

    Example:
        >>> fuse_heads(torch.tensor([[[1.0, 2.0], [3.0, 0.0]]]), "max")
        tensor([[3., 2.]])
    """
    if heads == "mean":
        return values.mean(dim=1, dtype=torch.promote_types(values.dtype, torch.float32))  # without another copy
    return at_least_float32(values.amax(dim=1) if heads == "max" else values.amin(dim=1))
