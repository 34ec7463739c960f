"""Relevance in float64, since the rules magnify what rounding leaves.

Relevance is divided by the products of queries and keys, and by the sums of residual connections. Both can be nearly
0, where terms cancel that are a million times as large; what remains of them in float32 is mostly rounding. Rounding in
the model itself counts as much as rounding in the rules, so that both have to be in float64. Nothing cancels in the
rules of linear layers, nor are gradients divided by anything: these can be in float32.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Literal

import torch

from suffice.errors import OptionError
from suffice.perturb.batch import Batch
from suffice.perturb.runner import Runner

Dtype = Literal["float64", "mixed", "tf32", "float32"]


def in_dtype(batch: Batch, dtype: Dtype) -> Batch:
    """The same images for a copy of the model in float64; as they are for ``"float32"``, or where they are so already.

    Example:
        >>> import suffice
        >>> net = suffice.load("zoo/deit", device="cpu")
        >>> batch = Batch(net, torch.rand(1, 3, *net.size), torch.tensor([1]), ["a"], 0, Runner(net))
        >>> in_dtype(batch, "float64").inputs.dtype
        torch.float64
    """
    if dtype == "float32" or batch.net.dtype == torch.float64:
        return batch
    if batch.pixels.device.type == "mps":
        raise OptionError(
            f"{batch.net.name} is on {batch.pixels.device}, which has no float64; write dtype='float32', whose maps "
            "differ between machines, or explain it on the CPU."
        )
    return converted(batch, torch.float64)


def converted(batch: Batch, dtype: torch.dtype) -> Batch:
    """The same images for a copy of the model in another precision."""
    net = copy.copy(batch.net)
    net.module = copy.deepcopy(batch.net.module).to(dtype)
    # Memory that runs out here is noticed by the loop that made the batch.
    runner = Runner(net, batch_size=batch.runner.batch_size, counters=batch.runner.counters)
    # Pixels are normalized as before, in float32: even that rounding counts, and the model is given what it always is.
    return replace(batch, net=net, runner=runner.variant("relevance"))
