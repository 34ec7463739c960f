"""What the search finds in one image, before anything is known about the image itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from suffice.evidence.diversity import largest_diverse_family

Stopped = Literal["beam empty", "max_mses", "max_size", "max_questions", "nothing needed", "no confidence"]


@dataclass(frozen=True)
class MSE:
    """A minimal sufficient explanation.

    Attributes:
        cells: Its cells, ascending, row-major.
        ratio: Confidence on it alone / confidence on the whole image.
        certified: With ``minimal="subset"``: whether every proper subset was shown to fail, within the budget. With
            ``minimal="single"``: True, no single cell can go.
    """

    cells: tuple[int, ...]
    ratio: float
    certified: bool = True

    def __len__(self) -> int:
        return len(self.cells)


@dataclass(frozen=True, eq=False, kw_only=True)
class Finding:
    """Minimal sufficient explanations and what lies below them.

    Attributes:
        mses: Minimal sufficient explanations in order of discovery: by size of the set found, then by its ratio.
        regions: All regions evaluated below the MSEs, the MSEs among them, [M] or [M, words] int64.
        ratios: Their ratios, [M] float32.
        baseline_confidence: Confidence on the baseline alone.
        questions: Distinct masked images that the model was asked about, for the search and for what lies below.
        levels: Largest number of cells that the search went to.
        stopped: What ended the search.
        truncated: Whether the budget ended the evaluation below the MSEs early; counts are lower bounds then.
    """

    mses: tuple[MSE, ...]
    regions: Tensor = field(repr=False)
    ratios: Tensor = field(repr=False)
    baseline_confidence: float
    questions: int
    levels: int
    stopped: Stopped
    truncated: bool = False

    def diverse(self, overlap: int = 0) -> list[MSE]:
        """The largest family of MSEs of which any two share at most ``overlap`` cells."""
        return [self.mses[i] for i in largest_diverse_family([m.cells for m in self.mses], overlap)]

    def formula(self) -> str:
        """The MSEs as a logical formula over cells, such as ``(P3 ∧ P10) ∨ (P17 ∧ P24)``."""
        terms = ("(" + " ∧ ".join(f"P{c}" for c in m.cells) + ")" if m.cells else "⊤" for m in self.mses)
        return " ∨ ".join(terms) or "⊥"
