"""Mean curves of metrics as a picture."""

from __future__ import annotations

from collections.abc import Mapping

from suffice.draw import document, tag, text
from suffice.metrics.outcome import Curves

WIDTH, HEIGHT, LEFT, TOP, GAP = 420.0, 260.0, 46.0, 34.0, 40.0
# Blue and orange first: distinct for everyone.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
AXIS, MUTED = "#9aa0a6", "#5f6368"


def curve_figure(curves: Mapping[str, Curves]) -> str:
    """Mean curves over images, with one standard error to both sides.

    Args:
        curves: By name.

    Returns:
        An SVG document.
    """
    right, bottom = LEFT + WIDTH, TOP + HEIGHT
    parts = []
    for level in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = bottom - level * HEIGHT
        parts.append(tag("line", x1=LEFT, x2=right, y1=y, y2=y, stroke=AXIS, stroke_width=0.5, opacity=0.5))
        parts.append(text(LEFT - 8, y + 4, f"{level:g}", 11, MUTED, text_anchor="end"))
        parts.append(text(LEFT + level * WIDTH, bottom + 18, f"{level:.0%}", 11, MUTED, text_anchor="middle"))
    for number, (name, curve) in enumerate(curves.items()):
        color = COLORS[number % len(COLORS)]
        mean, error = curve.mean.tolist(), curve.standard_error.nan_to_num(0.0).tolist()
        across = [LEFT + float(x) * WIDTH for x in curve.x]
        upper = [(x, bottom - (m + e) * HEIGHT) for x, m, e in zip(across, mean, error, strict=True)]
        lower = [(x, bottom - (m - e) * HEIGHT) for x, m, e in zip(across, mean, error, strict=True)]
        middle = [(x, bottom - m * HEIGHT) for x, m in zip(across, mean, strict=True)]
        parts.append(tag("polygon", points=_points([*upper, *reversed(lower)]), fill=color, opacity=0.18))
        parts.append(tag("polyline", points=_points(middle), fill="none", stroke=color, stroke_width=2))
        parts.append(tag("rect", x=LEFT + number * 120, y=11, width=12, height=12, fill=color, rx=2))
        parts.append(text(LEFT + number * 120 + 18, 21, name, 12))
    parts.append(text((LEFT + right) / 2, bottom + 36, "share that was moved", 11, MUTED, text_anchor="middle"))
    images = max(len(curve.y) for curve in curves.values())
    title = f"Mean of {', '.join(curves)} over {images} image{'s' if images > 1 else ''}, ± one standard error"
    return document(right + 24, bottom + GAP + 4, *parts, title=title)


def _points(positions: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
