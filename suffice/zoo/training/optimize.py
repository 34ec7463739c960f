"""AdamW with decay where it belongs, and a moving average of the weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from suffice.zoo.training.recipe import Recipe


def optimizer_for(module: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; vectors (norms, biases, scales) and what the module itself excepts (embeddings) are not decayed."""
    from timm.optim import param_groups_weight_decay

    # timm's networks name their embeddings and attention biases here.
    declare: Any = getattr(module, "no_weight_decay", None)
    excepted = declare() if callable(declare) else ()
    groups = param_groups_weight_decay(module, recipe.weight_decay, no_weight_decay_list=excepted)
    devices = {parameter.device for group in groups for parameter in group["params"]}
    cuda = {device.type for device in devices} == {"cuda"}
    # On a GPU its steps are recorded, and what changes between them must be a tensor there.
    rate = torch.tensor(recipe.lr, device=devices.pop()) if cuda else recipe.lr
    return torch.optim.AdamW(groups, lr=rate, fused=cuda, capturable=cuda)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set it for all parameters; in place where it is a tensor."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


class MovingAverage:
    """A copy of a network that follows it slowly (exponential moving average of the weights).

    Not torch's ``AveragedModel``: that one forgets the initial weights at its first step, averages counters too, and
    copies its own counter to the GPU at every step.

    Args:
        module: The network that is trained.
        decay: How much of the copy stays at each step; less in the first steps, so that it forgets the start.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.module = copy.deepcopy(module).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, module: nn.Module, step: int) -> None:
        """Move toward the network after a step (from 0)."""
        decay = min(self.decay, (1 + step) / (10 + step))
        mine: list[Tensor] = []
        theirs: list[Tensor] = []
        for kept, current in zip(self.module.state_dict().values(), module.state_dict().values(), strict=True):
            if kept.is_floating_point():
                mine.append(kept)
                theirs.append(current)
            else:
                kept.copy_(current)
        torch._foreach_lerp_(mine, theirs, 1 - decay)
