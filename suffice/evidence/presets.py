"""Named sets of choices."""

from __future__ import annotations

from typing import Any

from suffice.errors import OptionError
from suffice.evidence.settings import Settings

# The papers leave open how many candidates a set gets, which explanations are expanded, how cells are cut out and what
# is counted. These are the choices that came closest to their rows for ResNet-50; docs/findings.md has the others.
PRESETS: dict[str, Settings] = {
    "default": Settings(),
    "cvpr2024": Settings(search="sag", candidates=10),
    "preprint": Settings(search="sag", candidates=10, cells="soft", strict=True, expanded_mses=3, counting="per-mse"),
}


def presets() -> dict[str, Settings]:
    """All presets by name.

    ``"cvpr2024"`` and ``"preprint"`` come closest to what the two papers on comparing how networks decide report for
    ResNet-50.

    Example:
        >>> sorted(presets())
        ['cvpr2024', 'default', 'preprint']
    """
    return dict(PRESETS)


def settings_of(preset: str | None, changes: dict[str, Any]) -> Settings:
    """The settings of a preset (the defaults if None) with some changed."""
    if preset is not None and preset not in PRESETS:
        raise OptionError(f"There is no preset {preset!r}; there are {', '.join(PRESETS)}.")
    return PRESETS[preset or "default"].changed(**changes)
