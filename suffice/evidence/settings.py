"""Every choice behind a search, and the named sets of choices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import Annotated, Any, Literal

from suffice.errors import OptionError
from suffice.evidence.counting import Counting
from suffice.options import Amount, Count, Range, Share, check_fields
from suffice.perturb.masks import Cells

Search = Literal["paper", "sag"]
Minimal = Literal["single", "subset"]
Passing = Literal["all", "beam"]
Keeps = Literal["ratio", "top-1", "both"]
Confirm = Literal["doubtful", "all", "none"]
Ratio = Annotated[float, Range(0, 1, above=True)]
Limit = Annotated[int, Range(0)]
MOST_SETS = 300_000  # that an exhaustive search of an image may ask about: 4 of 49 cells


@dataclass(frozen=True)
class Settings:
    """Every choice behind a search; :func:`suffice.find_evidence` takes each by its name, and says what it means.

    Example:
        >>> Settings(grid=5).changed(beam_width=3).beam_width
        3
    """

    grid: Count = 7
    threshold: Ratio = 0.9
    strict: bool = False
    keeps: Keeps = "ratio"
    above_baseline: bool = False
    min_confidence: Share = 0.01
    beam_width: Count = 5
    search: Search = "paper"
    candidates: Count = 15
    passing: Passing = "all"
    exhaustive: Limit = 0
    prefer_disjoint: bool = False
    beam_noise: Amount = 0.0
    deletion_orders: Limit = 4
    minimal: Minimal = "subset"
    certify: Limit | None = 6
    subset_budget: Limit = 20_000
    confirm: Confirm = "doubtful"
    max_mses: Limit | None = 10
    max_size: Count | None = 18
    max_questions: Count | None = None
    expand_at: Ratio = 0.5
    expanded_mses: Limit | None = None
    counting: Counting = "distinct"
    max_regions: Limit = 50_000
    baseline: Any = "blur"
    second_baseline: Any = None
    cells: Cells = "hard"
    stability: bool = False
    contrastive: bool = False
    necessary: bool = False
    refine: tuple[Count, ...] = ()
    seed: int = 0
    beam_off_by_one: bool = False
    repeated_sets: bool = False
    noise_defect: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        sets = sum(comb(self.grid**2, size) for size in range(self.exhaustive + 1))
        if sets > MOST_SETS:
            raise OptionError(
                f"exhaustive={self.exhaustive} means {sets:,} questions an image on a {self.grid}×{self.grid} grid; "
                f"at most {MOST_SETS:,} are asked."
            )
        if self.max_size is not None and self.exhaustive > self.max_size:
            raise OptionError(f"exhaustive={self.exhaustive} is more than max_size={self.max_size}.")

    @property
    def width(self) -> int:
        """Sets that the beam really holds."""
        return self.beam_width + self.beam_off_by_one

    def changed(self, **changes: Any) -> Settings:
        """These settings with some changed; an unknown name is an error that lists those there are."""
        if unknown := [name for name in changes if name not in vars(self)]:
            raise OptionError(f"There is no setting {unknown[0]!r}; there are {', '.join(vars(self))}.")
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values for JSON; a baseline that is not a name becomes ``"custom"``."""
        baselines = {name: getattr(self, name) for name in ("baseline", "second_baseline")}
        named = {name: b if b is None or isinstance(b, str) else "custom" for name, b in baselines.items()}
        return vars(self) | named | {"refine": list(self.refine)}


# The papers leave open how many candidates a set gets, which explanations are expanded, how cells are cut out and what
# is counted. These are the choices that came closest to their rows for ResNet-50; the notebook in docs has the others.
# They call an explanation minimal when no single cell can go, and do not look for one where the beam finds none.
_PAPERS = Settings(search="sag", candidates=10, minimal="single", deletion_orders=0)
PRESETS = {
    "default": Settings(),
    "cvpr2024": _PAPERS,
    "preprint": replace(_PAPERS, cells="soft", strict=True, expanded_mses=3, counting="per-mse"),
}


def preset(name: str) -> Settings:
    """A named set of choices: ``"default"``, or ``"cvpr2024"`` and ``"preprint"``, closest to those papers' ResNet-50.

    Example:
        >>> preset("cvpr2024").changed(grid=5).candidates
        10
    """
    if name not in PRESETS:
        raise OptionError(f"There is no preset {name!r}; there are {', '.join(PRESETS)}.")
    return PRESETS[name]


def list_presets() -> list[str]:
    """List the names of the presets.

    Example:
        >>> list_presets()
        ['cvpr2024', 'default', 'preprint']
    """
    return sorted(PRESETS)


def settings_of(settings: Settings | str | None, given: dict[str, Any]) -> Settings:
    """The settings meant by a call that takes either ``settings=`` or each choice by its name, not both.

    ``given`` has all choices by name, as given or by default.
    """
    if settings is None:
        return Settings(**given)
    chosen = settings if isinstance(settings, Settings) else preset(settings)
    defaults = vars(PRESETS["default"])
    both = [n for n, v in given.items() if type(v) is not type(defaults[n]) or v != defaults[n]]
    if both:
        changes = ", ".join(f"{n}={given[n] if isinstance(given[n], (int, float)) else '…'}" for n in both)
        start = f'preset("{settings}")' if isinstance(settings, str) else "settings"
        raise OptionError(f"{', '.join(both)} and settings= were given; write settings={start}.changed({changes}).")
    return chosen
