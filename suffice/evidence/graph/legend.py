"""The legend of a graph's picture: every mark that appears in it, and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from suffice.draw.palettes import INK, MARK, QUIET, RAMP
from suffice.draw.svg import number, tag, text
from suffice.draw.words import percent, text_width
from suffice.evidence.graph.rows import EDGE, EDGE_WIDTHS, MARKED_WIDTHS, deletion_mark
from suffice.evidence.graph.words import remark

if TYPE_CHECKING:
    from suffice.evidence.graph.graph import Graph

FELL = ("< 20", "20–60", "≥ 60")  # percentage points, by the strength of an edge
SIZE = 10.5  # of type, before scaling
STEP, LINE = 20.0, 13.5  # from entry to entry, and between the lines of one


class Entry(NamedTuple):
    """A mark and what it means; a new line is where a narrow list breaks."""

    width: float
    draw: Callable[[float, float, float], str]  # left, base line, scale → markup
    words: str


def entries(graph: Graph, numbered: str) -> list[Entry]:
    """The marks of a graph but its colors; ``numbered`` says how cells are, with nothing where they are not."""
    mses = [graph.evidence.mses[node.mse] for node in graph.nodes if node.mse is not None]
    remarks = [remark(node) for node in graph.nodes]
    strengths = sorted({edge.strength for edge in graph.edges})
    shown = [
        (any(m.certified for m in mses), _ring(dashed=False), "MSE: no proper subset is enough"),
        (any(not m.certified for m in mses), _ring(dashed=True), "MSE: no single cell can go"),
        (any(m.found == "deletion" for m in mses), _triangle(), "found by deletion from\nthe whole image"),
        (
            bool(strengths),
            _removals(strengths),
            f"cell removed: ratio fell\n{', '.join(FELL[s] for s in strengths)} points",
        ),
        (any(r.startswith("+") for r in remarks) or bool(graph.hidden), _words("+3 more"), "evaluated, not drawn"),
        ("not asked" in remarks, _words("not asked"), "below it, nothing was evaluated"),
        (bool(numbered) and any(m.cells for m in mses), _words(f"P{example_cell(graph)}"), numbered),
    ]
    return [Entry(*mark, words) for appears, mark, words in shown if appears]


def listed(graph: Graph, prefix: str, x: float, top: float, width: float, numbered: str) -> tuple[str, float]:
    """The legend as a list, colors first; returns markup and where it ends."""
    if not graph.nodes:
        return "", top
    parts, y = [_colors(graph, prefix, x, top, width)], top + 77.0
    marks = entries(graph, numbered)
    beside = max((mark.width for mark in marks), default=0.0) + 10
    for mark in marks:
        parts.append(mark.draw(x, y, 1.0))
        for line in mark.words.split("\n"):
            parts.append(text(x + beside, y, line, SIZE, QUIET))
            y += LINE
        y += STEP - LINE
    return "".join(parts), y - STEP + 6


def flowing(
    graph: Graph, prefix: str, x: float, top: float, width: float, scale: float, numbered: str
) -> tuple[str, float]:
    """The legend in lines of some width, colors first; returns markup and where it ends."""
    if not graph.nodes:
        return "", top
    ratio = Entry(44.0, _swatch(prefix), f"ratio 0 to {percent(1.0)}")
    marks, size, gap = [ratio, *entries(graph, numbered)], SIZE * scale, 18 * scale
    parts, left, y = [_ramp(prefix)], x, top + size
    for mark in marks:
        words = mark.words.replace("\n", " ")
        needed = (mark.width + 6) * scale + 0.86 * text_width(words, size)
        if left > x and left + needed > x + width:
            left, y = x, y + 1.6 * size
        parts.append(mark.draw(left, y, scale))
        parts.append(text(left + (mark.width + 6) * scale, y, words, size, QUIET))
        left += needed + gap
    return "".join(parts), y + 0.4 * size


def example_cell(graph: Graph) -> int:
    """The first cell of what is drawn, to explain the numbers of cells by."""
    return next((node.cells[0] for node in graph.nodes if node.cells), 0)


def _colors(graph: Graph, prefix: str, x: float, top: float, width: float) -> str:
    """The ramp of ratios, with the two that matter."""
    threshold, expand_at, high = graph.evidence.settings.threshold, graph.expand_at, 8.0
    parts = [
        text(x, top + 10, "confidence kept (ratio)", SIZE, QUIET),
        _ramp(prefix),
        tag("rect", x=x, y=top + 18, width=width, height=high, rx=2, fill=f"url(#{prefix}-ramp)"),
    ]
    words = {0.0: ("start", ""), expand_at: ("middle", "followed above"), threshold: ("middle", "enough")}
    for ratio, (anchor, word) in words.items():
        at = x + width * ratio
        parts.append(tag("path", d=f"M{number(at)} {number(top + 18)}v{number(high + 4)}", stroke=QUIET))
        parts.append(text(at, top + 41, percent(ratio), 9.5, QUIET, text_anchor=anchor))
        parts.append(text(at, top + 53, word, 9.5, QUIET, text_anchor=anchor) if word else "")
    return "".join(parts)


def _ramp(prefix: str) -> str:
    stops = [tag("stop", offset=i / (len(RAMP) - 1), stop_color=shade) for i, shade in enumerate(RAMP)]
    return tag("linearGradient", *stops, id=f"{prefix}-ramp")


def _swatch(prefix: str) -> Callable[[float, float, float], str]:
    def draw(x: float, y: float, scale: float) -> str:
        box = {"x": x, "y": y - 7 * scale, "width": 44 * scale, "height": 6 * scale, "rx": 2 * scale}
        return tag("rect", **box, fill=f"url(#{prefix}-ramp)")

    return draw


def _ring(dashed: bool) -> tuple[float, Callable[[float, float, float], str]]:
    def draw(x: float, y: float, scale: float) -> str:
        box = {"x": x + scale, "y": y - 10.5 * scale, "width": 14 * scale, "height": 14 * scale, "rx": 3.5 * scale}
        dashes = f"{number(4 * scale)} {number(2.6 * scale)}" if dashed else None
        return tag("rect", **box, fill="none", stroke=INK, stroke_width=1.8 * scale, stroke_dasharray=dashes)

    return 16.0, draw


def _triangle() -> tuple[float, Callable[[float, float, float], str]]:
    return 16.0, lambda x, y, scale: deletion_mark(x + 8 * scale, y, scale)


def _removals(strengths: list[int]) -> tuple[float, Callable[[float, float, float], str]]:
    """A piece of edge and an outlined cell for each strength."""

    def draw(x: float, y: float, scale: float) -> str:
        parts = []
        for place, strength in enumerate(strengths):
            left, middle = x + (place * 29 + 1) * scale, y - 3.5 * scale
            line = f"M{number(left)} {number(middle)}h{number(9 * scale)}"
            parts.append(tag("path", d=line, stroke=EDGE, stroke_width=EDGE_WIDTHS[strength] * scale))
            box = {"x": left + 10 * scale, "y": middle - 5.5 * scale, "width": 11 * scale, "height": 11 * scale}
            parts.append(tag("rect", **box, fill="none", stroke=MARK, stroke_width=MARKED_WIDTHS[strength] * scale))
        return "".join(parts)

    return 29.0 * len(strengths) - 4, draw


def _words(words: str) -> tuple[float, Callable[[float, float, float], str]]:
    return 0.86 * text_width(words, SIZE), lambda x, y, scale: text(x, y, words, SIZE * scale, QUIET)
