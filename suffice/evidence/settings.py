"""Every choice behind a search, in one place, and the named sets of choices."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from suffice.errors import OptionError
from suffice.evidence.counting import COUNTINGS, Counting

Search = Literal["paper", "sag"]
Minimal = Literal["single", "subset"]
Passing = Literal["all", "beam"]


@dataclass(frozen=True)
class Settings:
    """Every choice behind a search.

    Attributes:
        grid: Cells a side.
        threshold: A set suffices when its ratio is at least this.
        strict: The ratio must be above the threshold, not just at it.
        beam_width: Sets kept at each level.
        search: ``"paper"``: every cell outside a set is a candidate, no seed map. ``"sag"``: only the ``candidates``
            most salient cells by a seed map are, as in the implementation of structured attention graphs.
        candidates: Cells tried for each set of the beam with ``search="sag"``.
        passing: Which candidates of a level may become explanations: ``"all"`` that suffice, or only those within the
            ``"beam"``, the ``beam_width`` best.
        minimal: ``"single"``: no single cell can go. ``"subset"``: no proper subset suffices.
        subset_budget: With ``minimal="subset"``: most subsets to evaluate for one image.
        max_mses: Stop after the level at which there are more MSEs than this.
        max_size: Do not look at sets of more cells than this; None for no limit. An image with few MSEs would be
            searched up to the whole grid, and pruning large sets is costly.
        max_questions: Do not begin a level that could take the image's questions beyond this.
        expand_at: Sets below an MSE with at least this ratio are expanded.
        expanded_mses: How many MSEs, in order of discovery, to look below; None for all, 0 for none.
        counting: The reading in which sub-explanations are reported; all are computed.
        max_regions: Most regions to evaluate below the MSEs of one image; counts are marked as truncated beyond.
        baseline: What shows where cells are hidden.
        cells: ``"hard"`` or ``"soft"``.
        seed: Seed of everything random.
        beam_off_by_one: As the implementation of structured attention graphs: the beam holds one set more.
        repeated_sets: As there: a set reached in two ways fills two places of the beam.
        noise_defect: As there: the seed map's noise falls on the red channel only, twice as strong.
    """

    grid: int = 7
    threshold: float = 0.9
    strict: bool = False
    beam_width: int = 5
    search: Search = "paper"
    candidates: int = 15
    passing: Passing = "all"
    minimal: Minimal = "single"
    subset_budget: int = 20_000
    max_mses: int | None = 10
    max_size: int | None = 18
    max_questions: int | None = None
    expand_at: float = 0.5
    expanded_mses: int | None = None
    counting: Counting = "distinct"
    max_regions: int = 50_000
    baseline: Any = "blur"
    cells: Literal["hard", "soft"] = "hard"
    seed: int = 0
    beam_off_by_one: bool = False
    repeated_sets: bool = False
    noise_defect: bool = False

    def __post_init__(self) -> None:
        choices = {
            "search": ("paper", "sag"), "passing": ("all", "beam"), "minimal": ("single", "subset"),
            "counting": COUNTINGS,
        }  # fmt: skip
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise OptionError(f"{name}={getattr(self, name)!r}; it can be {' or '.join(map(repr, allowed))}.")
        for name in ("threshold", "expand_at"):
            if not 0 < getattr(self, name) <= 1:
                raise OptionError(f"{name}={getattr(self, name)}; it is a ratio above 0 and at most 1.")
        for name in ("beam_width", "candidates"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name}={getattr(self, name)}; it must be 1 or more.")

    @property
    def width(self) -> int:
        """Sets that the beam really holds."""
        return self.beam_width + self.beam_off_by_one

    def changed(self, **changes: Any) -> Settings:
        """These settings with some changed; an unknown name is an error that lists those there are."""
        known = [f.name for f in fields(self)]
        for name in changes:
            if name not in known:
                raise OptionError(f"There is no setting {name!r}; there are {', '.join(known)}.")
        return replace(self, **changes)
