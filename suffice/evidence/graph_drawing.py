"""The structured attention graph as a standalone SVG picture: regions as thumbnails, one row a size.

Above them is what the picture is about and how to read it, below them how it was made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Literal, NamedTuple

from suffice.draw.layers import lay_out
from suffice.draw.palettes import EMPTY, FAINT, HAIRLINE, INK, MARK, QUIET, RAMP, ramp_color
from suffice.draw.pictures import Drawable, as_image
from suffice.draw.svg import document, escaped, number, tag, text
from suffice.draw.thumbnails import Hide, Thumbnails, hidden_picture
from suffice.draw.words import counted, grouped, percent, shortened, wrap
from suffice.errors import OptionError

if TYPE_CHECKING:
    from suffice.evidence.graph import Edge, Graph, Node

MARGIN, GAP = 32.0, 34.0
PHOTO, AXIS, LEGEND = 176.0, 22.0, 214.0
LINE = 880.0  # longer lines are hard to read
FORMULA_SIZE, FORMULA_STEP, FORMULA_LINES = 13.0, 19.5, 6
LABELS = 92.0  # width of the names of rows
NARROWEST, WIDTH = 960.0, 1240.0
ROOM = (50.0, 132.0)  # least and most for a node
BADGE, BELOW, BETWEEN = 17.0, 38.0, 44.0
EDGE_WIDTHS = (0.9, 1.6, 2.6)
MARKED_WIDTHS = (1.1, 2.0, 3.2)  # of the line around a cell just removed, by how much that hurt


def to_svg(
    graph: Graph,
    picture: Drawable | Literal[False] | None = None,
    baseline: Drawable | str | None = None,
    hide: Hide = "dim",
) -> str:
    """Draw a graph as one SVG document without references to anything outside itself; the picture is embedded once.

    Args:
        graph: The graph; the same graph and picture give the same text.
        picture: What the model saw, to the edges of the grid: a PIL image, or a tensor [3, H, W] in [0, 1]. Default:
            the small picture that evidence keeps. False, and evidence without a picture, draw cells as plain squares.
        baseline: With ``hide="baseline"``: the baseline's picture, or its name, which makes it of the picture drawn.
            Default: the one of the search, where it has a name.
        hide: ``"dim"`` fades hidden cells, ``"baseline"`` shows there what the model was shown; that needs a picture.
    """
    if picture is None:
        picture = graph.evidence.picture
    photo = None if picture is None or picture is False else as_image(picture)
    if photo is None and hide != "dim":
        raise OptionError(f"hide={hide!r} needs a picture; write to_svg(picture, …), or leave hide='dim'.")
    if baseline is None and isinstance(graph.evidence.settings.baseline, str):
        baseline = graph.evidence.settings.baseline
    rest = None if photo is None else hidden_picture(photo, baseline, hide)
    thumbs = Thumbnails(graph.evidence.grid.side, photo, rest, key=graph.to_json())
    return _Page(graph, thumbs).draw()


class _Page:
    """One picture, from top to bottom."""

    def __init__(self, graph: Graph, thumbs: Thumbnails) -> None:
        self.graph, self.thumbs = graph, thumbs
        around = 2 * MARGIN + LABELS
        # A little more than the fullest row needs, so that the trees of different roots can stand apart.
        spare = 0.5 * max(len(graph.roots) - 1, 0)
        edges = [(edge.parent, edge.child) for edge in graph.edges]
        self.layers = lay_out(list(graph.by_size.values()), edges, WIDTH - around, *ROOM, spare)
        self.width = max(NARROWEST, around + self.layers.width)
        self.left = MARGIN + LABELS + (self.width - around - self.layers.width) / 2
        self.boxes: dict[int, _Box] = {}

    def draw(self) -> str:
        head, bottom = self._header()
        body, bottom = self._body(bottom + 30)
        foot, bottom = self._footer(bottom + 24)
        about, formula = f"Structured attention graph of {self.graph.title}", self.graph.evidence.formula()
        defs = self.thumbs.definitions()
        return document(self.width, bottom + 22, head, body, foot, title=about, description=formula, definitions=defs)

    def _header(self) -> tuple[str, float]:
        """Photo, title, formula and legend; returns markup and where it ends."""
        thumbs = self.thumbs
        photo_width = PHOTO / max(thumbs.aspect, 1.0)
        left = MARGIN + AXIS + photo_width + GAP
        title, below = _title(self.graph, left, MARGIN, min(self.width - left - GAP - LEGEND - MARGIN, LINE))
        photo = _photo(thumbs, MARGIN + AXIS, MARGIN + AXIS, photo_width)
        legend = _legend(self.graph, thumbs.prefix, self.width - MARGIN - LEGEND, MARGIN)
        return photo + title + legend, max(below, MARGIN + AXIS + photo_width * thumbs.aspect, MARGIN + 186)

    def _footer(self, top: float) -> tuple[str, float]:
        """Settings in small type; returns markup and where it ends."""
        evidence, side = self.graph.evidence, self.graph.evidence.grid.side
        chosen = evidence.settings.to_dict()
        facts = [
            f"grid {side} × {side}",
            f"enough at a ratio {'>' if chosen['strict'] else '≥'} {percent(chosen['threshold'])}",
            f"baseline {chosen['baseline']}, alone {percent(evidence.baseline_confidence)} confidence",
            "" if self.thumbs.dims else "hidden cells show the baseline",
            "soft cells" if chosen["cells"] == "soft" else "",
            f"followed above {percent(self.graph.expand_at)}, best {self.graph.children} below each",
            "" if self.graph.merge else "equal regions drawn apart",
            f"{counted(evidence.questions, 'masked image')} asked",
            "evaluation below the MSEs ended by its budget" if evidence.truncated else "",
        ]
        facts = [fact for fact in facts if fact]
        lines = wrap([fact + "  ·" for fact in facts], 10.5, self.width - 2 * MARGIN)
        parts = [self._rule(top)]
        for step, line in enumerate(lines):
            parts.append(text(MARGIN, top + 20 + 15 * step, "  ·  ".join(facts[i] for i in line), 10.5, FAINT))
        return "".join(parts), top + 20 + 15 * (len(lines) - 1)

    def _rule(self, y: float) -> str:
        return tag("path", d=f"M{number(MARGIN)} {number(y)}H{number(self.width - MARGIN)}", stroke=HAIRLINE)

    def _body(self, top: float) -> tuple[str, float]:
        """Rows, edges, nodes; returns markup and where it ends."""
        parts, y = [self._rule(top)], top + 20
        center = MARGIN + LABELS + (self.width - 2 * MARGIN - LABELS) / 2
        if notice := _notice(self.graph):
            headline, *details = notice
            parts.append(text(center, y + 30, headline, 17, text_anchor="middle", font_weight=600))
            parts += [text(center, y + 56, detail, 12.5, QUIET, text_anchor="middle") for detail in details]
            y += 80
        if not self.layers.rows:
            return "\n".join(parts), y

        labels, sizes = [], self.graph.by_size
        for size, row, room in zip(sizes, self.layers.rows, self.layers.room, strict=True):
            # Tall pictures get narrower thumbnails, so that rows keep their height.
            width = (room - max(9.0, 0.15 * room)) / max(self.thumbs.aspect, 1.0)
            height = width * self.thumbs.aspect
            y += BADGE
            for node in row:
                self.boxes[node] = _Box(self.left + self.layers.centers[node], y, width, height)
            labels.append(self._label(size, y + height / 2))
            y += height + BELOW + BETWEEN
        y -= BETWEEN
        removed: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for edge in self.graph.edges:
            removed[edge.child][edge.removed] = MARKED_WIDTHS[edge.strength]
        parts += [*(self._edge(edge) for edge in self.graph.edges), *labels]
        parts += [self._node(node, removed[node.id]) for node in self.graph.nodes]
        if undrawn := {size: count for size, count in self.graph.hidden.items() if size not in sizes}:
            y += 24
            detail = ", ".join(f"{grouped(count)} of {counted(size, 'cell')}" for size, count in undrawn.items())
            parts.append(text(MARGIN, y, f"+{grouped(sum(undrawn.values()))} more", 12, font_weight=600))
            parts.append(text(MARGIN + LABELS, y, f"on levels not drawn: {detail}", 11, QUIET))
        return "\n".join(parts), y

    def _label(self, size: int, middle: float) -> str:
        """The name of a row, and how much of it is left out."""
        more = self.graph.hidden.get(size, 0)
        name = text(MARGIN, middle + (-2 if more else 4), counted(size, "cell"), 12, font_weight=600)
        return name + (text(MARGIN, middle + 13, f"+{grouped(more)} more", 10.5, FAINT) if more else "")

    def _node(self, node: Node, removed: dict[int, float]) -> str:
        x, top, width, height = self.boxes[node.id]
        left, bottom = x - width / 2, top + height
        cells = " ∧ ".join(f"P{cell}" for cell in node.cells) or "no cells"
        bar = {"x": left, "y": bottom + 7, "height": 4, "rx": 2}
        parts = [
            tag("title", escaped(f"{cells}: ratio {node.ratio:.3f}, confidence {node.confidence:.3f}")),
            self.thumbs.region(left, top, width, node.cells, marked=removed, ring=node.is_mse),
            tag("rect", **bar, width=width, fill=EMPTY),
        ]
        if node.ratio > 0:
            parts.append(tag("rect", **bar, width=max(width * min(node.ratio, 1.0), 2), fill=ramp_color(node.ratio)))
        lines = [text(x, bottom + 24, percent(node.ratio), 11.5, font_weight=600)]
        if node.mse is not None:
            lines.append(text(x, top - 7.5, f"MSE {node.mse + 1}", 9.5, font_weight=600))
        if remark := _remark(node):
            lines.append(text(x, bottom + 35.5, remark, 9, FAINT))
        return tag("g", *parts, tag("g", *lines, text_anchor="middle"))

    def _edge(self, edge: Edge) -> str:
        parent, child = self.graph.nodes[edge.parent], self.graph.nodes[edge.child]
        start, end = self.boxes[parent.id], self.boxes[child.id]
        y0 = start.top + start.height + (BELOW if _remark(parent) else BELOW - 9)
        y1 = end.top - (BADGE if child.is_mse else 3)
        bend = (y1 - y0) * 0.55
        curve = " ".join(map(number, (start.center, y0 + bend, end.center, y1 - bend, end.center, y1)))
        return tag(
            "path",
            tag("title", escaped(f"without P{edge.removed}: {percent(parent.ratio)} → {percent(child.ratio)}")),
            d=f"M{number(start.center)} {number(y0)}C{curve}",
            fill="none",
            stroke="#a3adb9",
            stroke_width=EDGE_WIDTHS[edge.strength],
            stroke_linecap="round",
        )


class _Box(NamedTuple):
    """Where a thumbnail is."""

    center: float
    top: float
    width: float
    height: float


def _remark(node: Node) -> str:
    """What is missing below a node."""
    if node.hidden_children:
        return f"+{grouped(node.hidden_children)} more"
    return "not asked" if node.unevaluated_children == len(node.cells) > 0 else ""


def _notice(graph: Graph) -> list[str]:
    """Why there is no graph to see, or none worth the name; no lines where there is one."""
    evidence = graph.evidence
    if not graph.nodes:
        if evidence.stopped == "no confidence":
            return ["Nothing to explain", "The model has no confidence in this class on the whole image."]
        kept = percent(evidence.settings.threshold)
        reached = f"No region of up to {counted(evidence.levels, 'cell')} that the search looked at"
        return ["No sufficient explanation found", f"{reached} keeps {kept} of the confidence."]
    if any(not graph.nodes[root].cells for root in graph.roots):
        kept = percent(graph.nodes[graph.roots[0]].ratio)
        return ["Nothing is needed", f"With every cell hidden, the model keeps {kept} of its confidence."]
    return []


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
