"""Scores: what was measured, and how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from suffice.metrics.outcome import By, Outcome
from suffice.vision.stream import Skip


@dataclass(frozen=True, eq=False)
class Scores(Outcome):
    """What a metric says of the maps of images, and every choice behind it.

    Besides what an :class:`Outcome` has:

    Attributes:
        metric: Its name.
        higher_is_better: Whether a better map has a higher value.
        protocol: Every choice: metric, protocol, all options, the class asked about, the score, the model.
        targets: The class asked about in each image; None if the model was not asked.
        names: Name of each image.
        skipped: Images that could not be read.
    """

    metric: str = ""
    higher_is_better: bool = True
    protocol: dict[str, Any] = field(default_factory=dict)
    targets: Tensor | None = None
    names: Sequence[str] = ()
    skipped: Sequence[Skip] = field(default=(), repr=False)

    def __repr__(self) -> str:
        by = self.protocol.get("protocol")
        number = f"{self.mean:.4f} ± {self.standard_error:.4f}"
        return f"Scores({self.metric!r}, protocol={by!r}, mean={number}, n={len(self)})"

    @property
    def reported(self) -> float:
        """The number that the protocol reports for all images: the mean, or the area under the median curve."""
        if self.protocol.get("aggregate") == "median" and self.curves is not None:
            return float(self.curves.areas(self.curves.median))
        return self.mean

    def normalized(self, by: By = "set") -> Scores:
        """See :meth:`Outcome.normalized`."""
        return replace(super().normalized(by), protocol={**self.protocol, "normalize": by})
