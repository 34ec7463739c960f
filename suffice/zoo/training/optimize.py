"""AdamW with decay where it belongs, and a moving average of the weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from suffice.zoo.training.recipe import Recipe


def optimizer_for(module: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; vectors (norms, biases, scales) and what the module itself excepts (embeddings) are not decayed."""
    decayed, others = parameter_groups(module)
    parameters = (*decayed, *others)
    cuda = bool(parameters) and all(p.device.type == "cuda" for p in parameters)
    # On a GPU its steps are recorded, and what changes between them must be a tensor there.
    rate = torch.tensor(recipe.lr, device=parameters[0].device) if cuda else recipe.lr
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=rate, fused=cuda, capturable=cuda)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set it for all parameters; in place where it is a tensor."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def parameter_groups(module: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Parameters that weight decay is for, and those it is not for.

    Example:
        >>> [len(group) for group in parameter_groups(nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)))]
        [1, 3]
    """
    # timm's networks name their embeddings and attention biases here.
    declare: Any = getattr(module, "no_weight_decay", None)
    excepted = set(declare()) if callable(declare) else set()
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            plain = parameter.ndim <= 1 or name.endswith(".bias") or name in excepted
            (others if plain else decayed).append(parameter)
    return decayed, others


class MovingAverage:
    """A copy of a network that follows it slowly.

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
