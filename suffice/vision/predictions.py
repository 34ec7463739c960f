"""What a classifier says of whole images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from suffice.vision.stream import Skip


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
        """The name of the predicted class of each image; its index as text where names are not known."""
        return [self.label(i) for i in self.targets.tolist()]

    def label(self, target: int) -> str:
        """The name of one class."""
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
