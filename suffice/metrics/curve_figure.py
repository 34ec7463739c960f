"""Mean curves of metrics as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suffice.draw import document, shortened, tag, text
from suffice.draw.palettes import FAINT, HAIRLINE, INK, QUIET
from suffice.metrics.outcome import Curves, Outcome

# Okabe and Ito's colors, told apart with any color vision.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
DASHES = (None, "7 4", "2 3")  # a ninth curve has the color of the first and another line
WIDTH, HEIGHT = 440.0, 280.0
LEFT, TOP, BELOW = 52.0, 58.0, 52.0
BESIDE, LABELS, ENTRY = 30.0, 188.0, 38.0  # from the curves to their names; room for these; height of one
SLACK = 0.02  # a band may stand out by so much before there is another tick for it
STEPS = (0.05, 0.1, 0.2, 0.25, 0.5, 1.0)  # between ticks, times a power of ten


@dataclass(frozen=True)
class _Frame:
    """Where numbers are in the picture."""

    low: float
    high: float
    step: float

    @classmethod
    def around(cls, values: Sequence[float]) -> _Frame:
        """From 0 to 1, or as far as the values go, with four ticks or more."""
        low, high = min([-SLACK, *values]) + SLACK, max([1.0 + SLACK, *values]) - SLACK
        power = 10 ** math.floor(math.log10(high - low))
        step = max(s * power for s in STEPS if (high - low) / (s * power) >= 4)
        return cls(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step)

    @property
    def ticks(self) -> list[float]:
        return [self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)]

    def across(self, share: float) -> float:
        return LEFT + share * WIDTH

    def down(self, value: float) -> float:
        return TOP + HEIGHT * (self.high - value) / (self.high - self.low)


def curve_figure(
    outcomes: Mapping[str, Outcome], *, across: str = "share that was moved", up: str = "score of the class"
) -> str:
    """Mean curves over images, with one standard error to both sides.

    An SVG document of the outcomes that have curves, with the name and the value of each beside it; ``across`` and
    ``up`` say what positions and heights are.
    """
    curves = {name: outcome.curves for name, outcome in outcomes.items() if outcome.curves is not None}
    bands = {name: _band(curve) for name, curve in curves.items()}
    frame = _Frame.around([edge for band in bands.values() for _, low, _, high in band for edge in (low, high)])
    parts = _axes(frame, across, up)
    for row, (name, band) in enumerate(bands.items()):
        parts += [*_curve(frame, band, row), *_entry(name, outcomes[name], row)]
    images = max((len(curve.y) for curve in curves.values()), default=0)
    heading = f"Mean over {images} images, with one standard error to both sides" if images != 1 else "One image"
    parts.append(text(LEFT, 24, heading, 13, INK, font_weight=600))
    title = f"{', '.join(curves)}: mean of {up} over {images} image{'' if images == 1 else 's'}"
    height = max(TOP + HEIGHT + BELOW, TOP + len(curves) * ENTRY)
    return document(LEFT + WIDTH + BESIDE + LABELS, height, *parts, title=title)


def draw_on_axes(outcomes: Mapping[str, Outcome], axes: Any, *, across: str, up: str) -> None:
    """The same on axes of matplotlib."""
    for row, (name, outcome) in enumerate(outcomes.items()):
        if outcome.curves is None:
            continue
        color, dash = COLORS[row % len(COLORS)], ("-", "--", ":")[row // len(COLORS) % 3]
        band = _band(outcome.curves)
        x, low, mean, high = ([point[i] for point in band] for i in range(4))
        axes.fill_between(x, low, high, color=color, alpha=0.13, linewidth=0)
        axes.plot(x, mean, dash, color=color, label=f"{name}  {outcome.mean:.3f}")
    axes.set(xlabel=across, ylabel=up)
    axes.legend(frameon=False)


def _band(curve: Curves) -> list[tuple[float, float, float, float]]:
    """Position, lower edge, mean and upper edge at all points where some image is judged."""
    errors = curve.standard_error.nan_to_num(0.0).tolist()
    points = zip(curve.x.tolist(), curve.mean.tolist(), errors, strict=True)
    return [(x, mean - error, mean, mean + error) for x, mean, error in points if not math.isnan(mean)]


def _axes(frame: _Frame, across: str, up: str) -> list[str]:
    right, bottom = LEFT + WIDTH, TOP + HEIGHT
    parts = [text(LEFT, TOP - 13, up, 11, FAINT)]
    for tick in frame.ticks:
        y = frame.down(tick)
        at_zero = abs(tick) < frame.step / 2
        parts.append(tag("line", x1=LEFT, x2=right, y1=y, y2=y, stroke=FAINT if at_zero else HAIRLINE, stroke_width=1))
        parts.append(text(LEFT - 9, y + 4, f"{0.0 if at_zero else tick:g}", 11, QUIET, text_anchor="end"))
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = frame.across(share)
        parts.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, stroke=FAINT, stroke_width=1))
        parts.append(text(x, bottom + 18, f"{share:.0%}", 11, QUIET, text_anchor="middle"))
    parts.append(text((LEFT + right) / 2, bottom + 38, across, 11, FAINT, text_anchor="middle"))
    return parts


def _curve(frame: _Frame, band: Sequence[tuple[float, float, float, float]], row: int) -> list[str]:
    """The band of standard errors, and the mean over it."""
    if not band:
        return []
    upper = [(frame.across(x), frame.down(high)) for x, _, _, high in band]
    lower = [(frame.across(x), frame.down(low)) for x, low, _, _ in band]
    mean = [(frame.across(x), frame.down(m)) for x, _, m, _ in band]
    return [
        tag("polygon", points=_points([*upper, *reversed(lower)]), fill=COLORS[row % len(COLORS)], opacity=0.13),
        tag("polyline", points=_points(mean), fill="none", stroke_linejoin="round", **_stroke(row)),
    ]


def _entry(name: str, outcome: Outcome, row: int) -> list[str]:
    """Line, name and value of a curve, beside the curves."""
    x, y = LEFT + WIDTH + BESIDE, TOP + 4 + row * ENTRY
    value = f"{outcome.mean:.3f}" if math.isnan(outcome.standard_error) else f"{outcome:.3f}"
    return [
        tag("line", x1=x, x2=x + 18, y1=y - 4, y2=y - 4, **_stroke(row)),
        text(x + 27, y, shortened(name, 12, LABELS - 35), 12, INK, font_weight=600),
        text(x + 27, y + 15, value if outcome.judged.any() else "no image judged", 11, QUIET),
    ]


def _stroke(row: int) -> dict[str, object]:
    dash = DASHES[row // len(COLORS) % len(DASHES)]
    return {"stroke": COLORS[row % len(COLORS)], "stroke_width": 2.2, "stroke_dasharray": dash}


def _points(positions: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
