"""The look of charts: type, grid and colors, light and dark; and which color, shape and line a model has everywhere.

Families have a color, the same in every chart and on light and dark ground. Models of a family share it, and differ by
their shape, their line and their place, so that nothing is told by color alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from suffice.draw.palettes import EMPTY, FAINT, HAIRLINE, INK, QUIET, RAMP
from suffice.draw.svg import SANS
from suffice.vision.families import CONVNEXT, DISTILLED, NEWER_CNN, OLDER_CNN, TRANSFORMER

# At least 3:1 on white and on the dark ground; told apart with normal vision and with each kind of color blindness.
FAMILY_COLORS = {
    OLDER_CNN: "#c28a00",
    NEWER_CNN: "#c23b10",
    CONVNEXT: "#1f9e73",
    TRANSFORMER: "#2a72c8",
    DISTILLED: "#b25aa5",
}
OTHER_COLORS = ("#2b97b0", "#8a6d4f", "#7f9130", "#7a68d8", "#d0587a")
NO_FAMILY = "#7b8794"
SERIES_COLORS = (*FAMILY_COLORS.values(), *OTHER_COLORS)  # of what has no family, such as methods, in their order

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (5, 2, 2, 2, 2, 2), (12, 4), (3, 5))

DARK_GROUND = "#14181d"
DARK = {
    "#fff": DARK_GROUND,
    "#ffffff": DARK_GROUND,
    INK: "#e7ebf0",
    QUIET: "#b3bdc8",
    FAINT: "#8d98a5",
    HAIRLINE: "#39424d",
    EMPTY: "#222931",
}
DIVERGING = ("#b4571f", "#e3a477", "#ece9e4", "#7fb0d3", "#1f5f99")  # below, at, above the middle


def family_color(family: str | None) -> str:
    """The color of a family: those of the papers have fixed ones, others one that follows from their name.

    Example:
        >>> family_color("transformer"), family_color(None)
        ('#2a72c8', '#7b8794')
        >>> family_color("mixer") == family_color("mixer")
        True
    """
    if not family:
        return NO_FAMILY
    if family in FAMILY_COLORS:
        return FAMILY_COLORS[family]
    return OTHER_COLORS[int(sha256(family.encode()).hexdigest(), 16) % len(OTHER_COLORS)]


@dataclass(frozen=True)
class Looks:
    """The color, shape and line of each of some names.

    Attributes:
        names: In the order in which they are drawn: those of a family together.
        colors: One for each name.
        shapes: Likewise, as Vega calls them.
        dashes: Likewise, lengths of dashes and gaps.
    """

    names: tuple[str, ...]
    colors: tuple[str, ...]
    shapes: tuple[str, ...]
    dashes: tuple[tuple[int, ...], ...]

    @classmethod
    def of_models(cls, families: Mapping[str, str | None]) -> Looks:
        """Looks of models by their families; the families come in the order of their first models.

        Example:
            >>> looks = Looks.of_models({"vgg": "older-cnn", "deit": "transformer", "resnet": "older-cnn"})
            >>> looks.names, looks.shapes
            (('vgg', 'resnet', 'deit'), ('circle', 'square', 'circle'))
        """
        names: list[str] = []
        places: list[int] = []
        for family in dict.fromkeys(families.values()):
            own = [model for model, of in families.items() if of == family]
            names += own
            places += range(len(own))
        return cls._of(names, [family_color(families[name]) for name in names], places)

    @classmethod
    def of_series(cls, names: Iterable[str]) -> Looks:
        """Looks of what has no family, in its order: a color each, and with more names than colors other shapes."""
        listed = list(dict.fromkeys(names))
        return cls._of(
            listed, [SERIES_COLORS[i % len(SERIES_COLORS)] for i in range(len(listed))], list(range(len(listed)))
        )

    @classmethod
    def _of(cls, names: Sequence[str], colors: Sequence[str], places: Sequence[int]) -> Looks:
        shapes = [SHAPES[place % len(SHAPES)] for place in places]
        return cls(tuple(names), tuple(colors), tuple(shapes), tuple(DASHES[p % len(DASHES)] for p in places))

    def color(self, name: str) -> str:
        """The color of one of them."""
        return self.colors[self.names.index(name)]


def chart_config(dark: bool = False) -> dict[str, Any]:
    """The configuration of Vega-Lite charts: one type, a quiet grid, nothing that is not data."""
    ink, quiet, line = (DARK[c] if dark else c for c in (INK, QUIET, HAIRLINE))
    return {
        "background": DARK_GROUND if dark else "#ffffff",
        "font": SANS,
        "padding": 8,
        "view": {"stroke": None},
        "axis": {
            "labelColor": quiet, "titleColor": quiet, "gridColor": line, "domainColor": line, "tickColor": line,
            "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8,
            "labelLimit": 220, "gridOpacity": 0.8, "labelFont": SANS, "titleFont": SANS,
        },
        "legend": {
            "labelColor": ink, "titleColor": quiet, "labelFontSize": 12, "titleFontSize": 12, "labelLimit": 170,
            "titleFontWeight": "normal", "symbolSize": 90, "symbolStrokeWidth": 2, "labelFont": SANS, "titleFont": SANS,
            "rowPadding": 4, "columnPadding": 14,
        },
        "header": {"labelColor": ink, "titleColor": quiet, "labelFontSize": 12, "labelFont": SANS, "titleFont": SANS},
        "title": {"color": ink, "fontSize": 14, "anchor": "start", "font": SANS, "subtitleColor": quiet},
        "text": {"color": ink, "fontSize": 12, "font": SANS},
        "rule": {"color": quiet},
        "line": {"strokeWidth": 2.2, "strokeJoin": "round"},
        "point": {"size": 90, "filled": True},
        "range": {"ramp": list(RAMP), "heatmap": list(RAMP), "diverging": list(DIVERGING)},
    }  # fmt: skip


def darkened(markup: str) -> str:
    """A drawing of :mod:`suffice.draw` on dark ground: the same with ink and ground exchanged; pictures stay.

    Example:
        >>> darkened('<rect fill="#fff"/><text fill="#1b2430">a</text>')
        '<rect fill="#14181d"/><text fill="#e7ebf0">a</text>'
    """
    for light, dark in DARK.items():
        markup = markup.replace(f'"{light}"', f'"{dark}"')
    return markup
