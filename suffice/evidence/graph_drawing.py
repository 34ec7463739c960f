"""The structured attention graph as a standalone SVG picture: regions as thumbnails, one row a size."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal, NamedTuple

from suffice.draw.layers import lay_out
from suffice.draw.palettes import EMPTY, FAINT, HAIRLINE, QUIET, ramp_color
from suffice.draw.pictures import Drawable, as_image
from suffice.draw.svg import document, escaped, number, tag, text
from suffice.draw.thumbnails import Hide, Thumbnails, hidden_picture
from suffice.draw.words import counted, grouped, percent
from suffice.errors import OptionError
from suffice.evidence.graph_frame import MARGIN, MARKED_WIDTHS, footer, header

if TYPE_CHECKING:
    from suffice.evidence.graph import Edge, Graph, Node

LABELS = 92.0  # width of the names of rows
NARROWEST, WIDTH = 960.0, 1240.0
ROOM = (50.0, 132.0)  # least and most for a node
BADGE, BELOW, BETWEEN = 17.0, 38.0, 44.0
EDGE_WIDTHS = (0.9, 1.6, 2.6)


def to_svg(
    graph: Graph,
    picture: Drawable | Literal[False] | None = None,
    baseline: Drawable | str | None = None,
    hide: Hide = "dim",
) -> str:
    """Draw a graph.

    The result is one XML document without references to anything outside itself; the picture is embedded once. The
    same graph and picture give the same text.

    Args:
        graph: The graph.
        picture: What the model saw, to the edges of the grid: a PIL image, or a tensor [3, H, W] in [0, 1]. Default:
            the small picture that evidence keeps. False, and evidence without a picture, draw cells as plain squares.
        baseline: With ``hide="baseline"``: the baseline's picture, or its name, which makes it of the picture drawn.
            Default: the one of the search, where it has a name.
        hide: ``"dim"`` fades hidden cells, ``"baseline"`` shows there what the model was shown.

    Returns:
        The SVG document.

    Raises:
        OptionError: Another ``hide``; or the baseline is to be shown, and is not given, or no picture is.
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
    return _Page(graph, thumbs, baseline_shown=rest is not None).draw()


class _Page:
    """One picture, from top to bottom."""

    def __init__(self, graph: Graph, thumbs: Thumbnails, baseline_shown: bool) -> None:
        self.graph, self.thumbs, self.baseline_shown = graph, thumbs, baseline_shown
        around = 2 * MARGIN + LABELS
        # A little more than the fullest row needs, so that the trees of different roots can stand apart.
        spare = 0.5 * max(len(graph.roots) - 1, 0)
        edges = [(edge.parent, edge.child) for edge in graph.edges]
        self.layers = lay_out(list(graph.by_size.values()), edges, WIDTH - around, *ROOM, spare)
        self.width = max(NARROWEST, around + self.layers.width)
        self.left = MARGIN + LABELS + (self.width - around - self.layers.width) / 2
        self.boxes: dict[int, _Box] = {}

    def draw(self) -> str:
        head, bottom = header(self.graph, self.thumbs, self.width)
        body, bottom = self._body(bottom + 30)
        foot, bottom = footer(self.graph, self.baseline_shown, self.width, bottom + 24)
        about = f"Structured attention graph of {self.graph.title}"
        formula = self.graph.evidence.formula()
        defs = self.thumbs.definitions()
        return document(self.width, bottom + 22, head, body, foot, title=about, description=formula, definitions=defs)

    def _body(self, top: float) -> tuple[str, float]:
        """Rows, edges, nodes; returns markup and where it ends."""
        rule = tag("path", d=f"M{number(MARGIN)} {number(top)}H{number(self.width - MARGIN)}", stroke=HAIRLINE)
        parts, y = [rule], top + 20
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
        parts += [self._edge(edge) for edge in self.graph.edges]
        parts += labels
        parts += [self._node(node, removed[node.id]) for node in self.graph.nodes]
        undrawn = {size: count for size, count in self.graph.hidden.items() if size not in sizes}
        if undrawn:
            y += 24
            detail = ", ".join(f"{grouped(count)} of {counted(size, 'cell')}" for size, count in undrawn.items())
            parts.append(text(MARGIN, y, f"+{grouped(sum(undrawn.values()))} more", 12, font_weight=600))
            parts.append(text(MARGIN + LABELS, y, f"on levels not drawn: {detail}", 11, QUIET))
        return "\n".join(parts), y

    def _label(self, size: int, middle: float) -> str:
        """The name of a row, and how much of it is left out."""
        more = self.graph.hidden.get(size, 0)
        name = counted(size, "cell")
        parts = [text(MARGIN, middle + (-2 if more else 4), name, 12, font_weight=600)]
        if more:
            parts.append(text(MARGIN, middle + 13, f"+{grouped(more)} more", 10.5, FAINT))
        return "".join(parts)

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
        size = counted(evidence.levels, "cell")
        kept = percent(evidence.settings.threshold)
        reached = f"No region of up to {size} that the search looked at"
        return ["No sufficient explanation found", f"{reached} keeps {kept} of the confidence."]
    if any(not graph.nodes[root].cells for root in graph.roots):
        kept = percent(graph.nodes[graph.roots[0]].ratio)
        return ["Nothing is needed", f"With every cell hidden, the model keeps {kept} of its confidence."]
    return []
