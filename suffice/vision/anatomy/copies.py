"""A copy of a module to work on, so that the user's own is never changed."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from suffice.vision.anatomy.preserve import preserved


def working_copy(module: nn.Module) -> nn.Module:
    """A copy in evaluation mode, without checkpoints of gradients, that has forgotten what it made of its weights."""
    with preserved(module):
        copied = copy.deepcopy(module, _copies_of_computed(module))
    forget_computed(copied)
    return copied


def forget_computed(module: nn.Module) -> None:
    """Let go of what a module keeps of its weights from one forward in evaluation mode to the next, as LeViT does.

    Otherwise it would go on with what it made of weights that have changed since, or of another precision. Older
    versions of timm let go on their way to training only.
    """
    module.train()
    module.eval()


def _copies_of_computed(module: nn.Module) -> dict[int, Any]:
    """Copies, by identity, of tensors computed with gradients, as weight_norm and caches keep them: torch has none."""
    kept = (value for part in module.modules() for value in tree_leaves(vars(part)))
    return {id(value): value.detach().clone() for value in kept if isinstance(value, Tensor) and not value.is_leaf}
