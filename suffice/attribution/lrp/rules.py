"""What one layer does with the relevance of its outputs: how much each of its inputs gets.

Biases get none. Normalization, activation functions, softmax and dropout hand relevance on as it is, so they need no
function here. Nothing mixes images: the first axis is that of images, and every sum runs within one of them.

Which rules conserve, that is, hand on exactly as much as they were given:

* :func:`linear` with a shared denominator, wherever an output has a positive contribution at all. An output that has
  none loses its relevance.
* :func:`product`, wherever the product is not 0.
* :func:`add`, rescaled or not; unrescaled only wherever the sum is not 0.

:func:`linear` with separate denominators does not: an output that has both kinds of positive contributions hands its
relevance on twice. All this holds up to the small number in :func:`per_unit`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

EPSILON = 1e-9


@dataclass(frozen=True)
class Rules:
    """Which of the rules in circulation to follow: the options of :func:`linear` and of :func:`add`.

    Where ``single``, linear layers are in float32 whatever the rest is in. All that they divide by are sums of positive
    contributions, in which nothing cancels, so little is lost.
    """

    shared: bool = True
    rescaled: bool = True
    single: bool = False

    def linear(self, x: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
        """Relevance of the inputs of a linear layer, in the type of that of its outputs; see :func:`linear`."""
        if not self.single:
            return linear(x, weight, relevance, self.shared)
        return linear(x.float(), weight.float(), relevance.float(), self.shared).to(relevance.dtype)


def per_unit(relevance: Tensor, total: Tensor) -> Tensor:
    """Relevance for each unit of a total of the same shape, 0 where the total is 0.

    The small number in the denominator is added whatever the sign of the total, as in the original.

    Example:
        >>> import torch
        >>> per_unit(torch.ones(3), torch.tensor([2.0, -4.0, 0.0]))
        tensor([ 0.5000, -0.2500,  0.0000])
    """
    denominator = total + EPSILON
    # The total may be just the negative of the small number.
    denominator.masked_fill_(denominator == 0, EPSILON).masked_fill_(total == 0, torch.inf)
    return relevance / denominator


def linear(x: Tensor, weight: Tensor, relevance: Tensor, shared: bool = True) -> Tensor:
    """Relevance of the inputs [..., in] of a linear layer, by their positive contributions (alpha 1, beta 0).

    A contribution is positive where input and weight [out, in] have the same sign. The relevance of the outputs [...,
    out] is divided by the sum of all positive contributions where that is shared; otherwise contributions of positive
    inputs are divided by their own sum, and those of negative inputs by theirs.

    Example:
        >>> import torch
        >>> x, weight = torch.tensor([3.0, -1.0]), torch.tensor([[1.0, -1.0]])
        >>> linear(x, weight, torch.ones(1))
        tensor([0.7500, 0.2500])
        >>> linear(x, weight, torch.ones(1), shared=False)
        tensor([1., 1.])
    """
    positive, negative = (x.clamp(min=0), weight.clamp(min=0)), (x.clamp(max=0), weight.clamp(max=0))
    if shared:  # both kinds by one product each way
        weights = torch.cat([positive[1], negative[1]], dim=1)
        units = per_unit(relevance, F.linear(torch.cat([positive[0], negative[0]], dim=-1), weights))
        of_positive, of_negative = (units @ weights).chunk(2, dim=-1)
    else:
        of_positive, of_negative = (per_unit(relevance, F.linear(*kind)) @ kind[1] for kind in (positive, negative))
    return x * torch.where(x > 0, of_positive, of_negative)


def product(left: Tensor, right: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Relevance of the factors [..., n, d] and [..., d, m] of a matrix product, half of its own [..., n, m] to each.

    Example:
        >>> import torch
        >>> product(torch.tensor([[1.0, 3.0]]), torch.tensor([[1.0], [1.0]]), torch.ones(1, 1))
        (tensor([[0.1250, 0.3750]]), tensor([[0.1250], [0.3750]]))
    """
    units = per_unit(relevance, left @ right) / 2
    return left * (units @ right.transpose(-2, -1)), right * (left.transpose(-2, -1) @ units)


def add(a: Tensor, b: Tensor, relevance: Tensor, rescaled: bool = True) -> tuple[Tensor, Tensor]:
    """Relevance of the terms of a sum, [B, ...] each, in proportion to them.

    Where terms nearly cancel, both get much, one of it negative. Rescaling, image by image, keeps the proportions
    within a term and gives each term as a whole a share of the relevance there is, by the magnitude of what it got.

    Example:
        >>> import torch
        >>> add(torch.tensor([[3.0]]), torch.tensor([[-1.0]]), torch.ones(1, 1), rescaled=False)
        (tensor([[1.5000]]), tensor([[-0.5000]]))
        >>> add(torch.tensor([[3.0]]), torch.tensor([[-1.0]]), torch.ones(1, 1))
        (tensor([[0.7500]]), tensor([[0.2500]]))
    """
    units = per_unit(relevance, a + b)
    parts = a * units, b * units
    if not rescaled:
        return parts
    axes = tuple(range(1, relevance.dim()))
    sums = [part.sum(dim=axes, keepdim=True) for part in parts]
    # part · (|sum| / Σ|sums| · all) / sum, without the division by a sum that may be 0.
    scale = per_unit(relevance.sum(dim=axes, keepdim=True), sums[0].abs() + sums[1].abs())
    return parts[0] * sums[0].sign() * scale, parts[1] * sums[1].sign() * scale
