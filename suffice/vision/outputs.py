"""What a model says: where the class scores are in whatever it returns, and what it predicts of whole images."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from suffice.errors import OutputError, SufficeWarning
from suffice.vision.stream import Skip

# Names under which models return their class scores, most telling first.
NAMES = ("logits", "out", "scores", "output", "pred", "predictions")


def class_scores(output: Any) -> Tensor:
    """The class scores [N, classes] in the output of a model, with their gradient history.

    It may be a tensor; a mapping or object (such as a ``ModelOutput`` of transformers) that holds one as ``logits`` or
    under a similar name; or a tuple or list whose first tensor of two dimensions is meant.
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


def warn_of_nan(scores: Tensor, name: str) -> None:
    """Warn where scores of images [N, classes] are no numbers: nothing that is found with them means anything."""
    broken = int(scores.isnan().any(dim=1).sum())
    if broken:
        warnings.warn(
            f"{name} says NaN of {broken} of {len(scores)} images: there are broken numbers among its weights, or its "
            "precision cannot hold what it computes.",
            SufficeWarning,
            stacklevel=3,
        )


@dataclass(frozen=True)
class Predictions:
    """Predictions, one row an image.

    Attributes:
        scores: Scores of all classes [N, classes], float32.
        index: Position of each row's image in what was given [N]; rows of skipped images are absent.
        names: Name of each image.
        class_labels: Name of each class, where known.
        skipped: Images that could not be read, with the reason.
    """

    scores: Tensor
    index: Tensor
    names: Sequence[str]
    class_labels: Sequence[str] | None = None
    skipped: Sequence[Skip] = field(default_factory=list)

    @property
    def targets(self) -> Tensor:
        """The predicted class of each image [N], int64."""
        return self.scores.argmax(dim=1)

    @property
    def confidences(self) -> Tensor:
        """The score of the predicted class [N], float32."""
        return self.scores.amax(dim=1)

    @property
    def labels(self) -> list[str]:
        """The name of the predicted class of each image."""
        return [self.label(i) for i in self.targets.tolist()]

    def label(self, target: int) -> str:
        """The name of one class; its index as text where names are not known."""
        return self.class_labels[target] if self.class_labels else str(target)

    def top(self, k: int = 5) -> list[list[tuple[int, str, float]]]:
        """For each image its ``k`` best classes as (index, label, score), best first."""
        scores, targets = self.scores.topk(min(k, self.scores.shape[1]), dim=1)
        return [
            [(t, self.label(t), s) for t, s in zip(row_targets, row_scores, strict=True)]
            for row_targets, row_scores in zip(targets.tolist(), scores.tolist(), strict=True)
        ]

    def __len__(self) -> int:
        return len(self.scores)
