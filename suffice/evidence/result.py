"""Evidence of one image, and of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from torch import Tensor

from suffice.draw import show
from suffice.evidence.counting import Counting, Counts, count_together
from suffice.evidence.diversity import largest_diverse_family
from suffice.evidence.graph import build_graph
from suffice.evidence.set_drawing import to_html
from suffice.evidence.settings import Settings
from suffice.evidence.statistics import Summary, evidence_table, summarize
from suffice.perturb.probe import Counters
from suffice.perturb.regions import Grid
from suffice.results import to_pandas
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow

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
class Evidence:
    """What the search found in one image, and which image that was.

    Attributes:
        mses: Minimal sufficient explanations in order of discovery: by size of the set found, then by its ratio.
        regions: All regions evaluated below the MSEs, the MSEs among them, [M] or [M, words] int64.
        ratios: Their ratios, [M] float32.
        baseline_confidence: Confidence on the baseline alone.
        questions: Distinct masked images that the model was asked about, for the search and for what lies below.
        levels: Largest number of cells that the search went to.
        stopped: What ended the search.
        truncated: Whether the budget ended the evaluation below the MSEs early; counts are lower bounds then.
        name: Name of the image.
        index: Its position in what was given.
        target: Class asked about.
        label: Name of that class, or its index as text.
        confidence: Confidence on the whole image.
        grid: The grid.
        settings: Every choice behind these numbers.
        picture: What the model saw, made smaller: uint8 [3, h, w], at most 128 pixels a side.
        image_id: Content hash of the image, where something random depended on it.
    """

    mses: tuple[MSE, ...]
    regions: Tensor = field(repr=False)
    ratios: Tensor = field(repr=False)
    baseline_confidence: float
    questions: int
    levels: int
    stopped: Stopped
    truncated: bool = False
    name: str
    index: int
    target: int
    label: str
    confidence: float
    grid: Grid
    settings: Settings = field(repr=False)
    picture: Tensor | None = field(default=None, repr=False)
    image_id: str | None = field(default=None, repr=False)

    @cached_property
    def counts(self) -> Counts:
        """All counts of sub-explanations, in every reading, at every threshold."""
        return count_together([self])[0]

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
        return [s / n for s, n in zip(self.counts.depth_ratio_sums, self.counts.depth_counts, strict=True)]

    def diverse(self, overlap: int = 0) -> list[MSE]:
        """The largest family of MSEs of which any two share at most ``overlap`` cells."""
        return [self.mses[i] for i in largest_diverse_family([m.cells for m in self.mses], overlap)]

    def formula(self) -> str:
        """The MSEs as a logical formula over cells, such as ``(P3 ∧ P10) ∨ (P17 ∧ P24)``."""
        terms = ("(" + " ∧ ".join(f"P{c}" for c in m.cells) + ")" if m.cells else "⊤" for m in self.mses)
        return " ∨ ".join(terms) or "⊥"

    graph = build_graph

    def show(self) -> None:
        """Show the graph in the notebook, or in the browser."""
        self.graph().show()

    def _repr_svg_(self) -> str:
        return self.graph().to_svg()


class EvidenceSet(Sequence[Evidence]):
    """Evidence of many images by one model, the images that could not be read, and what the probe did."""

    def __init__(
        self,
        evidence: Sequence[Evidence],
        model: str,
        family: str,
        skipped: Sequence[Skip] = (),
        counters: Counters | None = None,
    ) -> None:
        self._evidence, self.skipped = tuple(evidence), tuple(skipped)
        self.model, self.family, self.counters = model, family, counters or Counters()

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

    def to_arrow(self) -> pyarrow.Table:
        """One row an image; see :func:`suffice.evidence.statistics.evidence_table`."""
        return evidence_table(self)

    def to_pandas(self) -> Any:
        """The table of :meth:`to_arrow` as a data frame; needs pandas."""
        return to_pandas(self.to_arrow())

    def summary(self) -> Summary:
        """Means, medians and standard errors over the images; see :func:`suffice.evidence.statistics.summarize`."""
        return summarize(self.to_arrow())

    def save(self, path: str | Path) -> Path:
        """Write everything to one Parquet file: the table of :meth:`to_arrow`, regions, settings and pictures."""
        from suffice.evidence.storage import save_evidence

        return save_evidence(self, path)

    @classmethod
    def load(cls, path: str | Path) -> EvidenceSet:
        """Read what :meth:`save` wrote."""
        from suffice.evidence.storage import load_evidence

        return load_evidence(path)

    def show(self) -> None:
        """Show the images and their MSEs in the notebook, or in the browser."""
        show(self._repr_html_(), "html")

    _repr_html_ = to_html
