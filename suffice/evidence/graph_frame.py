"""The frame of a graph's picture: what it is about, how to read it, how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from suffice.draw.palettes import FAINT, HAIRLINE, INK, MARK, QUIET, RAMP
from suffice.draw.svg import escaped, number, tag, text
from suffice.draw.thumbnails import Thumbnails
from suffice.draw.words import counted, grouped, percent, shortened, wrap

if TYPE_CHECKING:
    from suffice.evidence.graph import Graph

MARGIN = 32.0
PHOTO = 176.0
AXIS = 22.0
LEGEND = 214.0
LINE = 880.0  # longer lines are hard to read
GAP = 34.0
FORMULA_SIZE, FORMULA_STEP, FORMULA_LINES = 13.0, 19.5, 6
MARKED_WIDTHS = (1.1, 2.0, 3.2)  # of the line around a cell just removed, by how much that hurt


def header(graph: Graph, thumbs: Thumbnails, width: float) -> tuple[str, float]:
    """Photo, title, formula and legend.

    Returns:
        Markup, and where it ends.
    """
    photo_width = PHOTO / max(thumbs.aspect, 1.0)
    left = MARGIN + AXIS + photo_width + GAP
    room = min(width - left - GAP - LEGEND - MARGIN, LINE)
    title, below = _title(graph, left, MARGIN, room)
    photo = _photo(thumbs, MARGIN + AXIS, MARGIN + AXIS, photo_width)
    legend = _legend(graph, thumbs.prefix, width - MARGIN - LEGEND, MARGIN)
    return photo + title + legend, max(below, MARGIN + AXIS + photo_width * thumbs.aspect, MARGIN + 186)


def footer(graph: Graph, baseline_shown: bool, width: float, top: float) -> tuple[str, float]:
    """Settings in small type.

    Returns:
        Markup, and where it ends.
    """
    evidence = graph.evidence
    side, chosen = evidence.grid.side, evidence.settings.to_dict()
    facts = [
        f"grid {side} × {side}",
        f"enough at a ratio {'>' if chosen['strict'] else '≥'} {percent(chosen['threshold'])}",
        f"baseline {chosen['baseline']}, alone {percent(evidence.baseline_confidence)} confidence",
        *(["hidden cells show the baseline"] if baseline_shown else []),
        *(["soft cells"] if chosen["cells"] == "soft" else []),
        f"followed above {percent(graph.expand_at)}, best {graph.children} below each",
        *([] if graph.merge else ["equal regions drawn apart"]),
        f"{counted(evidence.questions, 'masked image')} asked",
        *(["evaluation below the MSEs ended by its budget"] if evidence.truncated else []),
    ]
    lines = wrap([fact + "  ·" for fact in facts], 10.5, width - 2 * MARGIN)
    parts = [tag("path", d=f"M{number(MARGIN)} {number(top)}H{number(width - MARGIN)}", stroke=HAIRLINE)]
    for step, line in enumerate(lines):
        parts.append(text(MARGIN, top + 20 + 15 * step, "  ·  ".join(facts[i] for i in line), 10.5, FAINT))
    return "".join(parts), top + 20 + 15 * (len(lines) - 1)


def _photo(thumbs: Thumbnails, x: float, y: float, width: float) -> str:
    """The whole picture, with the numbers of the cells along its sides: P17 is row 14, column 3."""
    side = thumbs.side
    step, down = width / side, width / side * thumbs.aspect
    size = min(8.5, max(step * 0.62, 6.5))
    # On fine grids only every second or third line has its number, so that they do not touch.
    columns = [
        text(x + step * (i + 0.5), y - 6, f"+{i}" if i else "0", size, FAINT, text_anchor="middle")
        for i in range(0, side, ceil(2.2 * size / step))
    ]
    rows = [
        text(x - 6, y + down * (i + 0.5) + size * 0.36, str(i * side), size, FAINT, text_anchor="end")
        for i in range(0, side, ceil(1.2 * size / down))
    ]
    return thumbs.region(x, y, width, tuple(range(side**2))) + "".join(columns + rows)


def _title(graph: Graph, x: float, top: float, room: float) -> tuple[str, float]:
    """Class, image, confidence; then the formula, with the terms that are drawn in ink and the others gray."""
    evidence = graph.evidence
    found, drawn = len(evidence.mses), len(evidence.mses) - graph.hidden_mses
    summary = counted(found, "minimal sufficient explanation") if found else "no minimal sufficient explanation"
    if drawn < found:
        summary += f", {grouped(drawn)} drawn"
    parts = [
        text(x, top + 18, shortened(evidence.label, 21, room), 21, font_weight=600),
        text(x, top + 39, f"{percent(evidence.confidence)} confidence on the whole image", 12.5, QUIET),
        text(x, top + 57, shortened(evidence.name, 12.5, room), 12.5, QUIET),
        text(x, top + 90, summary, 12.5, font_weight=600),
    ]
    y = top + 112
    shown = {node.mse for node in graph.nodes if node.mse is not None}
    for line in _formula_lines(evidence.formula().split(" ∨ "), room):
        runs = [tag("tspan", escaped(word + " "), fill=INK if term in shown else FAINT) for word, term in line]
        parts.append(tag("text", *runs, x=x, y=y, font_size=FORMULA_SIZE))
        y += FORMULA_STEP
    return "".join(parts), y - FORMULA_STEP + 6


def _formula_lines(terms: Sequence[str], room: float) -> list[list[tuple[str, int]]]:
    """Break a formula into lines of (word, number of its term); terms that do not fit are counted (term -1)."""
    for count in range(len(terms), 0, -1):
        tagged: list[tuple[str, int]] = []
        for index, term in enumerate(terms[:count]):
            # An operator stays with what follows it, and neither end of a term stands alone.
            first, *others = term.split(" ∧ ")
            pieces = [("∨\u00a0" if index else "") + first, *(f"∧\u00a0{other}" for other in others)]
            if len(pieces) > 3:
                pieces = ["\u00a0".join(pieces[:2]), *pieces[2:-2], "\u00a0".join(pieces[-2:])]
            tagged += [(piece, index) for piece in pieces]
        if count < len(terms):
            tagged.append((f"∨\u00a0{grouped(len(terms) - count)}\u00a0more", -1))
        lines = wrap([word for word, _ in tagged], FORMULA_SIZE, room)
        if len(lines) <= FORMULA_LINES or count == 1:
            return [[tagged[index] for index in line] for line in lines]
    return []


def _legend(graph: Graph, prefix: str, x: float, top: float) -> str:
    """How to read colors, frames and outlines."""
    bar, high = LEGEND, 8.0
    side, threshold, expand_at = graph.evidence.grid.side, graph.evidence.settings.threshold, graph.expand_at
    parts = [text(x, top + 10, "confidence kept (ratio)", 10.5, QUIET)]
    stops = [tag("stop", offset=i / (len(RAMP) - 1), stop_color=shade) for i, shade in enumerate(RAMP)]
    parts.append(tag("linearGradient", *stops, id=f"{prefix}-ramp"))
    parts.append(tag("rect", x=x, y=top + 18, width=bar, height=high, rx=2, fill=f"url(#{prefix}-ramp)"))
    for ratio, anchor in ((0.0, "start"), (expand_at, "middle"), (threshold, "middle")):
        at = x + bar * ratio
        parts.append(tag("path", d=f"M{number(at)} {number(top + 18)}v{number(high + 4)}", stroke=QUIET))
        parts.append(text(at, top + 41, percent(ratio), 9.5, QUIET, text_anchor=anchor))
    parts.append(text(x + bar * expand_at, top + 53, "followed above", 9.5, FAINT, text_anchor="middle"))
    parts.append(text(x + bar * threshold, top + 53, "enough", 9.5, FAINT, text_anchor="middle"))

    box = {"width": 16, "height": 16, "fill": "none"}
    parts.append(tag("rect", x=x + 1, y=top + 66, rx=4, stroke=INK, stroke_width=1.8, **box))
    box |= {"width": 15, "height": 15, "stroke": MARK}
    for i, line in enumerate(MARKED_WIDTHS):
        parts.append(tag("rect", x=x + 2 + 26 * i, y=top + 95, stroke_width=line, **box))
    cell, explained = (2 * side + 1, f"row {side * 2}, column +1") if side > 2 else (0, "row 0, column 0")
    for left, down, words in (
        (86, 78, "minimal sufficient (MSE)"),
        (86, 103, "cell just removed: ratio"),
        (86, 116, "fell < 20, < 60, ≥ 60 points"),
        (0, 141, "+3 more"),
        (86, 141, "evaluated, not drawn"),
        (0, 165, f"P{cell}"),
        (86, 165, f"cell in {explained}"),
    ):
        parts.append(text(x + left, top + down, words, 10.5, QUIET))
    return "".join(parts)
