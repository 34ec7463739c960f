"""Where the class scores are in whatever a model returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from suffice.errors import OutputError

# Names under which models return their class scores, most telling first.
NAMES = ("logits", "out", "scores", "output", "pred", "predictions")


def class_scores(output: Any) -> Tensor:
    """The class scores in the output of a model.

    Args:
        output: A tensor [N, classes]; a mapping or object (such as a ``ModelOutput`` of transformers) that holds
            one as ``logits`` or under a similar name; or a tuple or list whose first tensor [N, classes] is meant.

    Returns:
        Tensor [N, classes], with its gradient history.

    Raises:
        OutputError: No tensor with two dimensions was found where one should be.

    Example:
        >>> import torch
        >>> class_scores({"loss": torch.tensor(0.0), "logits": torch.zeros(2, 10)}).shape
        torch.Size([2, 10])
    """
    scores = _find(output)
    if scores is None:
        raise OutputError(
            f"The model returned {_describe(output)}. Expected class scores as a tensor [N, classes], or a tuple, "
            f"dict or ModelOutput that holds one (under a name such as {', '.join(NAMES[:3])}). Wrap the model in a "
            "module whose forward returns them."
        )
    return scores


def _find(output: Any) -> Tensor | None:
    if isinstance(output, Tensor):
        return output if output.dim() == 2 else None
    for name in NAMES:
        value = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
        if isinstance(value, Tensor) and value.dim() == 2:
            return value
    if isinstance(output, Mapping):
        matrices = [v for v in output.values() if isinstance(v, Tensor) and v.dim() == 2]
        return matrices[0] if len(matrices) == 1 else None  # several unnamed ones would be a guess
    if isinstance(output, (tuple, list)):
        return next((v for v in output if isinstance(v, Tensor) and v.dim() == 2), None)
    return None


def _describe(output: Any) -> str:
    if isinstance(output, Tensor):
        return f"a tensor of shape {list(output.shape)}"
    if isinstance(output, Mapping):
        return f"a {type(output).__name__} with keys {list(output)}"
    if isinstance(output, (tuple, list)):
        return f"a {type(output).__name__} of {', '.join(_describe(v) for v in output)}"
    return f"an object of type {type(output).__name__}"
