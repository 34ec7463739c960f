"""What the search finds in one image, and in many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from torch import Tensor

from suffice.evidence.counting import Counting, Counts, count_subexplanations
from suffice.evidence.diversity import largest_diverse_family
from suffice.perturb.probe import Counters
from suffice.perturb.regions import Grid
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow

    from suffice.evidence.graph import Graph
    from suffice.evidence.settings import Settings
    from suffice.evidence.statistics import Summary

THRESHOLDS = (0.9, 0.8, 0.7, 0.6, 0.5)

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


@dataclass(frozen=True)
class Evidence:
    """What the search found in one image.

    Attributes:
        name: Name of the image.
        index: Its place in what was given.
        target: Class asked about.
        label: Name of that class, or its index as text.
        confidence: Confidence on the whole image.
        baseline_confidence: Confidence on the baseline alone.
        grid: The grid.
        mses: Minimal sufficient explanations in order of discovery: by size of the set found, then by its ratio.
        regions: All regions evaluated below the MSEs, the MSEs among them, [M] or [M, words] int64.
        ratios: Their ratios, [M] float32.
        questions: Distinct masked images that the model was asked about, for the search and for what lies below.
        levels: Largest number of cells that the search went to.
        stopped: What ended the search.
        truncated: Whether the budget ended the evaluation below the MSEs early; counts are lower bounds then.
        settings: Every choice behind these numbers.
    """

    name: str
    index: int
    target: int
    label: str
    confidence: float
    baseline_confidence: float
    grid: Grid
    mses: tuple[MSE, ...]
    regions: Tensor = field(repr=False)
    ratios: Tensor = field(repr=False)
    questions: int
    levels: int
    stopped: Stopped
    truncated: bool
    settings: Settings = field(repr=False)

    @cached_property
    def counts(self) -> Counts:
        """All counts of sub-explanations, in every reading, at every threshold."""
        return count_subexplanations(
            self.grid,
            torch.zeros(len(self.mses), dtype=torch.long),
            self.grid.from_cells(m.cells for m in self.mses),
            torch.zeros(len(self.ratios), dtype=torch.long),
            self.regions,
            self.ratios,
            thresholds=THRESHOLDS,
            expand_at=self.settings.expand_at,
        )[0]

    def subexplanations(self, counting: Counting | None = None) -> dict[float, int]:
        """Number of sub-explanations with a ratio at or above each threshold.

        Args:
            counting: ``"distinct"`` counts each proper subset of any MSE once; ``"per-mse"`` once for each MSE;
                ``"tree"`` once for each order in which cells can be deleted; ``"tree3"`` likewise, but only the
                first three cells of a set are ever deleted, as structured attention graphs are drawn. Default: the
                one of the settings, ``"distinct"`` unless a preset says otherwise.

        Returns:
            Threshold → count, exact however large.
        """
        return self.counts.of(counting or self.settings.counting)

    def depth_profile(self) -> list[float]:
        """Mean ratio after 0, 1, 2, … cells were taken out of an MSE: the compositionality curve of this image.

        The mean is over the evaluated subsets, each once for each MSE; subsets below one whose ratio is under
        ``expand_at`` are not evaluated.
        """
        return self.counts.depth_profile

    def diverse(self, overlap: int = 0) -> list[MSE]:
        """The largest family of MSEs of which any two share at most ``overlap`` cells."""
        chosen = largest_diverse_family([m.cells for m in self.mses], overlap)
        return [self.mses[i] for i in chosen]

    def formula(self) -> str:
        """The MSEs as a logical formula over cells, such as ``(P3 ∧ P10) ∨ (P17 ∧ P24)``."""
        if not self.mses:
            return "⊥"
        return " ∨ ".join("(" + " ∧ ".join(f"P{c}" for c in m.cells) + ")" if m.cells else "⊤" for m in self.mses)

    def graph(self, **options: Any) -> Graph:
        """The structured attention graph below the MSEs; see :func:`suffice.evidence.graph.build_graph`."""
        from suffice.evidence.graph import build_graph

        return build_graph(self, **options)


class EvidenceSet(Sequence[Evidence]):
    """Evidence of many images, by one model.

    Args:
        evidence: One entry an image.
        model: Name of the model.
        family: Its family.
        skipped: Images that could not be read.
        counters: What the probe did.
    """

    def __init__(
        self,
        evidence: Sequence[Evidence],
        model: str,
        family: str,
        skipped: Sequence[Skip] = (),
        counters: Counters | None = None,
    ) -> None:
        self._evidence = tuple(evidence)
        self.model, self.family = model, family
        self.skipped = tuple(skipped)
        self.counters = counters or Counters()

    @overload
    def __getitem__(self, index: int) -> Evidence: ...
    @overload
    def __getitem__(self, index: slice) -> EvidenceSet: ...
    def __getitem__(self, index: int | slice) -> Evidence | EvidenceSet:
        if isinstance(index, slice):
            return EvidenceSet(self._evidence[index], self.model, self.family, self.skipped, self.counters)
        return self._evidence[index]

    def __len__(self) -> int:
        return len(self._evidence)

    def __repr__(self) -> str:
        mses = sum(len(e.mses) for e in self)
        return f"EvidenceSet({len(self)} images, {mses} MSEs, model={self.model!r})"

    def table(self) -> pyarrow.Table:
        """One row an image; see :func:`suffice.evidence.statistics.evidence_table`."""
        from suffice.evidence.statistics import evidence_table

        return evidence_table(self)

    def summary(self) -> Summary:
        """Means, medians and errors over the images; see :func:`suffice.evidence.statistics.summarize`."""
        from suffice.evidence.statistics import summarize

        return summarize(self.table())
