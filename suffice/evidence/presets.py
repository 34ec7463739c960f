"""Named sets of choices."""

from __future__ import annotations

from typing import Any

from suffice.errors import OptionError
from suffice.evidence.settings import Settings

PRESETS: dict[str, Settings] = {
    "default": Settings(),
}


def presets() -> dict[str, Settings]:
    """All presets by name."""
    return dict(PRESETS)


def settings_of(preset: str | None, changes: dict[str, Any]) -> Settings:
    """The settings of a preset (the defaults if None) with some changed."""
    if preset is not None and preset not in PRESETS:
        raise OptionError(f"There is no preset {preset!r}; there are {', '.join(PRESETS)}.")
    return PRESETS[preset or "default"].changed(**changes)
