"""Attention, weighted by its gradient and its relevance, and multiplied through the blocks."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.attribution.lrp.float64 import Dtype, in_dtype
from suffice.attribution.lrp.rules import Rules
from suffice.attribution.lrp.structure import known_transformer, why_unknown
from suffice.attribution.lrp.walk import walk, walk_once
from suffice.attribution.method import method
from suffice.errors import OptionError
from suffice.perturb import Runner
from suffice.perturb.batch import Batch


@method(
    "cgw1",
    aliases=("chefer1", "t-attr"),
    reference="Chefer, Gur, Wolf, Transformer Interpretability Beyond Attention Visualization, CVPR 2021",
    needs=("gradients", "attention", "relevance"),
    incompatible=why_unknown,
    questions=lambda net, options: 2 if options["dtype"] in ("mixed", "tf32") and net.dtype == torch.float32 else 1,
)
def cgw1(batch: Batch, *, start_layer: int = 0, row_normalized: bool = False, dtype: Dtype = "float64") -> Tensor:
    """Attention relevance times gradient, multiplied through the blocks (transformer attribution).

    Each block has a matrix: the identity, for what skips the attention, plus the mean over heads of the positive part
    of relevance times gradient. The map is the row of the token that the head reads in the product of all matrices;
    where it reads two, as in DeiT distilled, the mean of their rows.

    One forward, one backward, and for the relevance about five forwards' worth of matrix products. Relevance is divided
    by sums that can be nearly 0, which magnifies rounding: in float32, as in the original, maps of trained networks
    differ from those in float64 by up to a tenth of their maximum, and so between machines. In float64 they do not,
    but remain as sensitive to the pixels themselves.

    Args:
        batch: The images.
        start_layer: First block whose matrix counts, from 0. The published evaluations on ImageNet use 1.
        row_normalized: Divide each row of a block's matrix by its sum, as the copy of this method that comes with TAM
            does.
        dtype: Of the model and of the relevance. ``"float64"`` takes about twice as long as ``"float32"``, which is as
            the original, on CPUs, and much longer on GPUs that are slow at it. ``"mixed"`` has in float64 what can
            cancel, and gradients and the rules of linear layers in float32; ``"tf32"`` is the same but lets GPUs round
            to 10 bits within products in float32.

    Returns:
        [B, h, w], one value a token.
    """
    own = known_transformer(batch.net, "cgw1")
    if not isinstance(start_layer, int) or not 0 <= start_layer < len(own.blocks):
        raise OptionError(f"start_layer={start_layer!r}; {batch.net.name} has blocks 0 to {len(own.blocks) - 1}.")

    exact, rules = in_dtype(batch, dtype), Rules(single=dtype in ("mixed", "tf32"))
    transformer = known_transformer(exact.net, "cgw1")
    with Runner(batch.net, precision="tf32" if dtype == "tf32" else "fp32").arithmetic():
        if rules.single and batch.net.dtype == torch.float32:  # gradients by the module itself
            _, at_attention = own.watch(batch, start_layer, gradients=True)
            steps = walk_once(transformer, exact, start_layer, rules)
        else:
            activations, at_attention = transformer.watch(exact, start_layer, gradients=True)
            steps = walk(transformer, activations, batch.targets, start_layer, rules)
        row: Tensor | None = None
        for step in steps:
            gradients = at_attention[step.block][:, :, step.rows]
            matrix = (gradients * step.attention).relu().mean(dim=1)
            if row is None:  # the last block: only the rows of tokens that are read have relevance, and only they count
                row = matrix.new_zeros(matrix.shape[0], matrix.shape[2])
                row[:, step.rows] = 1 / len(transformer.read)
            if row_normalized:
                row[:, step.rows] = row[:, step.rows] / (1 + matrix.sum(dim=2))
            # Row by matrix, not matrix by matrix: of the product only this row is read.
            row = row + torch.einsum("bq,bqk->bk", row[:, step.rows], matrix)
    assert row is not None, "a transformer without blocks"
    return transformer.maps(row)
