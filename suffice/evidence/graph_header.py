"""The frame of a graph's picture: what it is about, how to read it, how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from suffice.evidence.graph_markup import FAINT, HAIRLINE, QUIET, RAMP, REMOVED, number, tag, text, words
from suffice.evidence.graph_pictures import INK
from suffice.evidence.graph_text import cell_count, counted, grouped, percent, shortened, wrap
from suffice.evidence.graph_thumbs import REMOVED_WIDTHS, Thumbnails

if TYPE_CHECKING:
    from suffice.evidence.graph import Graph

MARGIN = 32.0
PHOTO = 176.0
AXIS = 22.0
LEGEND = 214.0
LINE = 880.0  # longer lines are hard to read
GAP = 34.0
FORMULA_SIZE, FORMULA_STEP, FORMULA_LINES = 13.0, 19.5, 6


def header(graph: Graph, thumbs: Thumbnails, width: float) -> tuple[str, float]:
    """Photo, title, formula and legend.

    Returns:
        Markup, and where it ends.
    """
    photo_width = PHOTO / max(thumbs.aspect, 1.0)
    left = MARGIN + AXIS + photo_width + GAP
    room = min(width - left - GAP - LEGEND - MARGIN, LINE)
    title, below = _title(graph, left, MARGIN, room)
    parts = [
        _photo(graph, thumbs, MARGIN + AXIS, MARGIN + AXIS, photo_width),
        title,
        _legend(graph, thumbs.prefix, width - MARGIN - LEGEND, MARGIN),
    ]
    return "".join(parts), max(below, MARGIN + AXIS + photo_width * thumbs.aspect, MARGIN + 186)


def footer(graph: Graph, thumbs: Thumbnails, width: float, top: float) -> tuple[str, float]:
    """Settings in small type.

    Returns:
        Markup, and where it ends.
    """
    side, chosen = graph.grid.side, graph.settings
    sign = ">" if chosen["strict"] else "≥"
    facts = [
        f"grid {side} × {side}",
        f"enough at a ratio {sign} {percent(chosen['threshold'])}",
        f"baseline {chosen['baseline']}, alone {percent(graph.baseline_confidence)} confidence",
        *(["hidden cells show the baseline"] if thumbs.rest else []),
        *(["soft cells"] if chosen["cells"] == "soft" else []),
        f"followed above {percent(chosen['expand_at'])}, best {chosen['children']} below each",
        *([] if chosen["merge"] else ["equal regions drawn apart"]),
        f"{counted(graph.questions, 'masked image')} asked",
        *(["evaluation below the MSEs ended by its budget"] if graph.truncated else []),
    ]
    lines = wrap([fact + "  ·" for fact in facts], 10.5, width - 2 * MARGIN)
    parts = [tag("path", d=f"M{number(MARGIN)} {number(top)}H{number(width - MARGIN)}", stroke=HAIRLINE)]
    for step, line in enumerate(lines):
        shown = "  ·  ".join(facts[place] for place in line)
        parts.append(text(MARGIN, top + 20 + 15 * step, shown, 10.5, FAINT))
    return "".join(parts), top + 20 + 15 * (len(lines) - 1)


def notice(graph: Graph) -> list[str]:
    """What to say where there is no graph to see, or none worth the name; no lines where there is one."""
    if not graph.nodes:
        if graph.stopped == "no confidence":
            return ["Nothing to explain", "The model has no confidence in this class on the whole image."]
        kept = percent(graph.settings["threshold"])
        reached = f"No region of up to {cell_count(graph.searched)} that the search looked at"
        return ["No sufficient explanation found", f"{reached} keeps {kept} of the confidence."]
    if any(not graph.nodes[root].cells for root in graph.roots):
        kept = percent(graph.nodes[graph.roots[0]].ratio)
        return ["Nothing is needed", f"With every cell hidden, the model keeps {kept} of its confidence."]
    return []


def _photo(graph: Graph, thumbs: Thumbnails, x: float, y: float, width: float) -> str:
    """The whole picture, with the numbers of the cells along its sides: P17 is row 14, column 3."""
    side = graph.grid.side
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
    found, drawn = graph.mses_found, graph.mses_found - graph.hidden_mses
    summary = counted(found, "minimal sufficient explanation") if found else "no minimal sufficient explanation"
    if drawn < found:
        summary += f", {grouped(drawn)} drawn"
    parts = [
        text(x, top + 18, shortened(graph.label, 21, room), 21, font_weight=600),
        text(x, top + 39, f"{percent(graph.confidence)} confidence on the whole image", 12.5, QUIET),
        text(x, top + 57, shortened(graph.name, 12.5, room), 12.5, QUIET),
        text(x, top + 90, summary, 12.5, font_weight=600),
    ]
    y = top + 112
    shown = {node.mse for node in graph.nodes if node.mse is not None}
    for line in _formula_lines(graph.formula.split(" ∨ "), room):
        runs = [tag("tspan", words(word + " "), fill=INK if term in shown else FAINT) for word, term in line]
        parts.append(tag("text", *runs, x=x, y=y, font_size=FORMULA_SIZE))
        y += FORMULA_STEP
    return "".join(parts), y - FORMULA_STEP + 6


def _formula_lines(terms: Sequence[str], room: float) -> list[list[tuple[str, int]]]:
    """Break a formula into lines of (word, number of its term); terms that do not fit are counted (term -1)."""
    for count in range(len(terms), 0, -1):
        tagged: list[tuple[str, int]] = []
        for place, term in enumerate(terms[:count]):
            # An operator stays with what follows it, and neither end of a term stands alone.
            first, *others = term.split(" ∧ ")
            pieces = [("∨\u00a0" if place else "") + first, *(f"∧\u00a0{other}" for other in others)]
            if len(pieces) > 3:
                pieces = ["\u00a0".join(pieces[:2]), *pieces[2:-2], "\u00a0".join(pieces[-2:])]
            tagged += [(piece, place) for piece in pieces]
        if count < len(terms):
            tagged.append((f"∨\u00a0{grouped(len(terms) - count)}\u00a0more", -1))
        lines = wrap([word for word, _ in tagged], FORMULA_SIZE, room)
        if len(lines) <= FORMULA_LINES or count == 1:
            return [[tagged[place] for place in line] for line in lines]
    return []


def _legend(graph: Graph, prefix: str, x: float, top: float) -> str:
    """How to read colors, frames and outlines."""
    bar, high = LEGEND, 8.0
    threshold, expand_at = graph.settings["threshold"], graph.settings["expand_at"]
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
    y = top + 78
    parts.append(tag("rect", x=x + 1, y=y - 12, rx=4, stroke=INK, stroke_width=1.8, **box))
    parts.append(text(x + 86, y, "minimal sufficient (MSE)", 10.5, QUIET))
    y += 29
    for i, line in enumerate(REMOVED_WIDTHS):
        parts.append(
            tag(
                "rect",
                x=x + 2 + 26 * i,
                y=y - 12,
                stroke=REMOVED,
                stroke_width=line,
                **box | {"width": 15, "height": 15},
            )
        )
    parts.append(text(x + 86, y - 4, "cell just removed: ratio", 10.5, QUIET))
    parts.append(text(x + 86, y + 9, "fell < 20, < 60, ≥ 60 points", 10.5, QUIET))
    y += 34
    parts.append(text(x, y, "+3 more", 10.5, QUIET))
    parts.append(text(x + 86, y, "evaluated, not drawn", 10.5, QUIET))
    y += 24
    parts.append(text(x, y, f"P{graph.grid.side * 2 + 1 if graph.grid.side > 2 else 0}", 10.5, QUIET))
    explained = f"cell in row {graph.grid.side * 2}, column +1" if graph.grid.side > 2 else "cell in row 0, column 0"
    parts.append(text(x + 86, y, explained, 10.5, QUIET))
    return "".join(parts)
