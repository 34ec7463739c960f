"""Evidence of one image, and of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from torch import Tensor

from suffice.draw import show
from suffice.evidence.counting import Counting, Counts, count_together
from suffice.evidence.diversity import largest_diverse_family
from suffice.evidence.files.statistics import Summary, summarize
from suffice.evidence.files.subexplanations import subexplanation_table
from suffice.evidence.files.table import evidence_table
from suffice.evidence.graph.graph import build_graph
from suffice.evidence.graph.set_drawing import to_html
from suffice.evidence.settings import Settings
from suffice.perturb.probe import Counters
from suffice.perturb.regions import Grid
from suffice.results import to_pandas
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow

Stopped = Literal[
    "beam empty",
    "max_mses",
    "max_size",
    "max_questions",
    "nothing needed",
    "no confidence",
    "not a number",
    "whole fails",
]
Way = Literal["beam", "deletion"]


@dataclass(frozen=True)
class MSE:
    """A minimal sufficient explanation.

    Attributes:
        cells: Its cells, ascending, row-major.
        ratio: Confidence on it alone / confidence on the whole image.
        certified: Whether every proper subset was shown to fail; else the weaker: no single cell can go.
        margin: How far the ratio lies above the threshold; None where ratios are not what must be kept.
        found: By which way it was found: by the ``"beam"`` that grows from single cells, or by ``"deletion"`` from the
            whole image, where the beam found nothing.
        asked: Distinct masked images of its picture that had been asked about when it was found.
        second_ratio: Its ratio over the ``second_baseline``, where there is one.
        under: With ``stability=True``: small change → its ratio to the whole changed image.
        stays: With ``stability=True``: small change → whether it still suffices.
    """

    cells: tuple[int, ...]
    ratio: float
    certified: bool = False
    margin: float | None = None
    found: Way = "beam"
    asked: int = 0
    second_ratio: float | None = None
    under: Mapping[str, float] | None = None
    stays: Mapping[str, bool] | None = None

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def minimality(self) -> str:
        """What is known of it, in words."""
        return "no proper subset suffices" if self.certified else "no single cell can go"


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What the search found in one image, and which image that was.

    Attributes:
        mses: Minimal sufficient explanations in order of discovery: by size of the set found, then by its ratio. Unless
            ``minimal="single"``, none contains another.
        regions: All regions evaluated below the MSEs, the MSEs among them, [M] or [M, words] int64.
        ratios: Their ratios, [M] float32.
        baseline_confidence: Confidence on the baseline alone.
        questions: Distinct masked images that the model was asked about, for the search and for what lies below; those
            asked once more in fp32 are counted in ``spent``.
        levels: Largest number of cells that the search went to.
        stopped: What ended the search.
        truncated: Whether the budget ended the evaluation below the MSEs early; counts are lower bounds then.
        spent: Questions by what asked them, but for those about the baseline and the whole image: ``"levels"``,
            ``"pruning"``, ``"deletion"``, ``"mending"``, ``"certifying"``, ``"below"``; and ``"confirming"``, those
            asked once more in fp32.
        mended: MSEs of a search in another precision that were none in fp32, and were mended.
        contrastive: With ``contrastive=True``: sets that are enough alone, and without which the rest is not.
        necessary: With ``necessary=True``: smallest sets without which the rest of the image is not enough.
        refined: With ``refine=(14, 28)``: cells a side → what is left of each MSE on that grid.
        name: Name of the image.
        index: Its position in what was given.
        target: Class asked about.
        label: Name of that class, or its index as text.
        confidence: Confidence on the whole image.
        grid: The grid.
        settings: Every choice behind these numbers.
        picture: What the model saw, made smaller: uint8 [3, h, w], at most 128 pixels a side.
        image_id: Content hash of the image.
    """

    mses: tuple[MSE, ...]
    regions: Tensor = field(repr=False)
    ratios: Tensor = field(repr=False)
    baseline_confidence: float
    questions: int
    levels: int
    stopped: Stopped
    truncated: bool = False
    spent: Mapping[str, int] = field(default_factory=dict, repr=False)
    mended: int = 0
    contrastive: tuple[MSE, ...] | None = None
    necessary: tuple[tuple[int, ...], ...] | None = None
    refined: Mapping[int, tuple[MSE, ...]] = field(default_factory=dict, repr=False)
    name: str
    index: int
    target: int
    label: str
    confidence: float
    grid: Grid
    settings: Settings = field(repr=False)
    picture: Tensor | None = field(default=None, repr=False)
    image_id: str | None = field(default=None, repr=False)

    @property
    def meaningful(self) -> bool:
        """Whether anything can be said of the image: whether there was a search, or nothing is needed."""
        return self.stopped not in ("no confidence", "not a number", "whole fails")

    @property
    def baseline_ratio(self) -> float:
        """Confidence on the baseline alone / confidence on the whole image; NaN where that is next to nothing."""
        enough = 0 < self.confidence >= self.settings.min_confidence and self.stopped != "not a number"
        return self.baseline_confidence / self.confidence if enough else float("nan")

    @property
    def coverage(self) -> float:
        """Share of the cells that lie in some MSE."""
        return len({cell for mse in self.mses for cell in mse.cells}) / self.grid.cells

    @property
    def stability(self) -> float | None:
        """Share of MSEs that stay sufficient under a small change, over all changes; None if not asked for."""
        kept = [stays for m in self.mses for stays in (m.stays or {}).values()]
        return sum(kept) / len(kept) if kept else None

    @property
    def why(self) -> str:
        """What ended the search, in a sentence."""
        chosen, found = self.settings, f"{len(self.mses)} found"
        limit = f"a ratio {'>' if chosen.strict else '≥'} {chosen.threshold:g}"
        kept = {
            "ratio": limit,
            "top-1": f"{self.label} as the top class",
            "both": f"{self.label} as the top class and {limit}",
        }[chosen.keeps]
        by_deletion = ", then by deletion from the whole image" if any(m.found == "deletion" for m in self.mses) else ""
        return {
            "beam empty": f"{found}: nothing was left to enlarge{by_deletion}.",
            "max_mses": f"{found}, stopped at the limit: more than max_mses={chosen.max_mses}.",
            "max_size": f"{found}, stopped at sets of max_size={chosen.max_size} cells{by_deletion}.",
            "max_questions": f"{found}, stopped before a level that could take more than max_questions="
            f"{chosen.max_questions}.",
            "nothing needed": f"The baseline alone already keeps {self.baseline_ratio:.0%} of the confidence.",
            "no confidence": f"No evidence: the model's confidence in {self.label} is {self.confidence:.2g}, and ratios"
            f" to less than min_confidence={chosen.min_confidence} mean nothing.",
            "whole fails": f"No evidence: the whole image itself does not keep {kept}.",
            "not a number": "No evidence: the model returns NaN or infinity for the whole image.",
        }[self.stopped]

    def found_within(self, questions: int) -> int | None:
        """How many MSEs the first so many questions of the search found: a count that models can be compared by.

        None where a limit ended the search before it had asked so many: more might have been found.
        """
        if not self.meaningful:
            return None
        asked = self.questions - sum(self.spent.get(what, 0) for what in ("certifying", "below"))
        limited = {
            "max_mses": asked < questions,
            "max_size": asked < questions,
            "max_questions": questions > (self.settings.max_questions or 0),
        }
        return None if limited.get(self.stopped) else sum(m.asked <= questions for m in self.mses)

    @property
    def exhaustive_mses(self) -> int | None:
        """With ``exhaustive=k``: the number of all MSEs of at most k cells; None where not all were looked for."""
        most = self.settings.exhaustive
        ended = self.stopped in ("beam empty", "nothing needed") or self.levels >= most
        if not (most and ended and self.meaningful):
            return None
        return sum(len(m) <= most for m in self.mses)

    @property
    def why_not_necessary(self) -> str | None:
        """Why there are no necessary sets, in a sentence; None where there are some, or none were asked for."""
        if self.necessary is None or self.necessary:
            return None
        if not self.meaningful:
            return self.why
        if any(not m.cells for m in self.mses):
            return "No set is necessary: the baseline alone is enough."
        return "No set was proven to be necessary within the rounds that are tried."

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
    """Evidence of many images by one model, the images that could not be read, and what the probe did.

    Attributes:
        model: Name of the model.
        family: Its family.
        skipped: Images that could not be read.
        counters: What the runner did.
        about: All that has to be known to find the same again: hash of the weights, preprocessing, settings, precision,
            versions; see :func:`suffice.evidence.files.provenance.search_provenance`. Empty for sets made by hand.
    """

    def __init__(
        self,
        evidence: Sequence[Evidence],
        model: str,
        family: str,
        skipped: Sequence[Skip] = (),
        counters: Counters | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self._evidence, self.skipped = tuple(evidence), tuple(skipped)
        self.model, self.family, self.counters = model, family, counters or Counters()
        self.about = dict(about or {})

    @overload
    def __getitem__(self, index: int) -> Evidence: ...
    @overload
    def __getitem__(self, index: slice) -> EvidenceSet: ...
    def __getitem__(self, index: int | slice) -> Evidence | EvidenceSet:
        if isinstance(index, slice):
            return EvidenceSet(self._evidence[index], self.model, self.family, self.skipped, self.counters, self.about)
        return self._evidence[index]

    def __len__(self) -> int:
        return len(self._evidence)

    def __repr__(self) -> str:
        mses = sum(len(e.mses) for e in self)
        return f"EvidenceSet({len(self)} images, {mses} MSEs, model={self.model!r})"

    def to_arrow(self) -> pyarrow.Table:
        """One row an image; see :func:`suffice.evidence.files.table.evidence_table`."""
        return evidence_table(self)

    def to_pandas(self) -> Any:
        """The table of :meth:`to_arrow` as a data frame; needs pandas."""
        return to_pandas(self.to_arrow())

    def subexplanations(self) -> pyarrow.Table:
        """One row for each region evaluated in or below an MSE.

        See :func:`suffice.evidence.files.subexplanations.subexplanation_table`.
        """
        return subexplanation_table(self)

    def summary(self) -> Summary:
        """Means, medians, standard errors over the images; see :func:`~suffice.evidence.files.statistics.summarize`."""
        return summarize(self.to_arrow())

    def save(self, path: str | Path, *, regions: bool = True) -> Path:
        """Write everything to one Parquet file; see :func:`suffice.evidence.files.storage.save_evidence`.

        Args:
            path: The file.
            regions: Also the regions below the MSEs; without them the file is smaller, and graphs show MSEs only.
        """
        from suffice.evidence.files.storage import save_evidence

        return save_evidence(self, path, regions=regions)

    @classmethod
    def load(cls, path: str | Path) -> EvidenceSet:
        """Read what :meth:`save` wrote; that of a study is :meth:`suffice.Study.evidence`."""
        from suffice.evidence.files.storage import load_evidence

        return load_evidence(path)

    def show(self) -> None:
        """Show the images and their MSEs in the notebook, or in the browser."""
        show(self._repr_html_(), "html")

    _repr_html_ = to_html
