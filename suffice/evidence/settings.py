"""Every choice behind a search, and the named sets of choices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from suffice.errors import OptionError
from suffice.evidence.counting import Counting
from suffice.options import Count, Range, check_fields
from suffice.perturb.masks import Cells

Search = Literal["paper", "sag"]
Minimal = Literal["single", "subset"]
Passing = Literal["all", "beam"]
Ratio = Annotated[float, Range(0, 1, above=True)]
Limit = Annotated[int, Range(0)]


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
    beam_width: Count = 5
    search: Search = "paper"
    candidates: Count = 15
    passing: Passing = "all"
    minimal: Minimal = "single"
    subset_budget: Limit = 20_000
    max_mses: Limit | None = 10
    max_size: Limit | None = 18
    max_questions: Limit | None = None
    expand_at: Ratio = 0.5
    expanded_mses: Limit | None = None
    counting: Counting = "distinct"
    max_regions: Limit = 50_000
    baseline: Any = "blur"
    cells: Cells = "hard"
    seed: int = 0
    beam_off_by_one: bool = False
    repeated_sets: bool = False
    noise_defect: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

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
        return vars(self) | ({} if isinstance(self.baseline, str) else {"baseline": "custom"})


# The papers leave open how many candidates a set gets, which explanations are expanded, how cells are cut out and what
# is counted. These are the choices that came closest to their rows for ResNet-50; docs/findings.md has the others.
PRESETS = {
    "default": Settings(),
    "cvpr2024": Settings(search="sag", candidates=10),
    "preprint": Settings(search="sag", candidates=10, cells="soft", strict=True, expanded_mses=3, counting="per-mse"),
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
