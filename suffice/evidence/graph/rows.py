"""The body of a graph's picture: regions as thumbnails, one row a size, and lines from each to those below it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from suffice.draw.layers import lay_out
from suffice.draw.palettes import EMPTY, INK, ramp_color
from suffice.draw.svg import escaped, number, tag, text
from suffice.draw.thumbnails import Thumbnails
from suffice.draw.words import counted, grouped, percent, text_width
from suffice.evidence.graph.words import about_mse, remark

if TYPE_CHECKING:
    from suffice.evidence.graph.graph import Edge, Graph, Node

EDGE = "#98a3b0"
EDGE_WIDTHS = (0.9, 1.6, 2.6)  # by how much the loss of a cell hurt
MARKED_WIDTHS = (1.1, 2.0, 3.2)  # of the line around that cell


class Look(NamedTuple):
    """Sizes of the body; those of type are for a ``type`` of 1."""

    type: float  # how large type and the space around it is
    labels: float  # width of the names of rows
    between: float  # from row to row
    least: float  # room for a thumbnail, and its air
    most: float
    spare: float  # free room for each root after the first, in thumbnails, so that their trees can stand apart
    faint: str  # color of the third voice


class _Box(NamedTuple):
    """Where a thumbnail is."""

    center: float
    top: float
    width: float
    height: float


class Rows:
    """Places the regions of a graph in rows, and draws them.

    Args:
        graph: The graph.
        thumbs: Draws the regions.
        look: Sizes.
        across: Width to keep to, names of rows included.
        down: Height to keep to; None for any.

    Attributes:
        width: Of the whole, names of rows included.
        height: Likewise.
    """

    def __init__(self, graph: Graph, thumbs: Thumbnails, look: Look, across: float, down: float | None = None) -> None:
        self.graph, self.thumbs, self.look = graph, thumbs, look
        self.badge, self.below = 17 * look.type, 38 * look.type
        rows, most = graph.by_size, look.most
        self.elsewhere = {size: count for size, count in graph.hidden.items() if size not in rows}
        last_line = 24 * look.type if self.elsewhere and rows else 0.0
        if down is not None and rows:
            text_height = len(rows) * (self.badge + self.below + look.between) - look.between + last_line
            most = max(min(most, _room((down - text_height) / len(rows))), look.least)
        spare = look.spare * max(len(graph.roots) - 1, 0)
        edges = [(edge.parent, edge.child) for edge in graph.edges]
        self.layers = lay_out(list(rows.values()), edges, across - look.labels, look.least, most, spare)
        self.width = look.labels + self.layers.width
        # Tall pictures get narrower thumbnails, so that rows keep their height.
        self.sizes = [_thumbnail(room) / max(thumbs.aspect, 1.0) for room in self.layers.room]
        high = sum(self.badge + width * thumbs.aspect + self.below + look.between for width in self.sizes)
        self.height = high - look.between + last_line if rows else 0.0

    def draw(self, edge: float, left: float, top: float) -> str:
        """All rows: their names begin at ``edge``, and what they name ``labels`` right of ``left``, below ``top``."""
        look, y = self.look, top
        boxes: dict[int, _Box] = {}
        labels = []
        for size, row, width in zip(self.graph.by_size, self.layers.rows, self.sizes, strict=True):
            y += self.badge
            height = width * self.thumbs.aspect
            for node in row:
                boxes[node] = _Box(left + look.labels + self.layers.centers[node], y, width, height)
            labels.append(self._label(edge, size, y + height / 2))
            y += height + self.below + look.between
        removed: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for step in self.graph.edges:
            removed[step.child][step.removed] = MARKED_WIDTHS[step.strength]
        parts = [*(self._edge(step, boxes) for step in self.graph.edges), *labels]
        parts += [self._node(node, boxes[node.id], removed[node.id]) for node in self.graph.nodes]
        if self.elsewhere and boxes:
            parts.append(self._last_line(edge, y - look.between + 24 * look.type))
        return "\n".join(parts)

    def _label(self, x: float, size: int, middle: float) -> str:
        """The name of a row, and how much of it is left out."""
        scale, more = self.look.type, self.graph.hidden.get(size, 0)
        name = text(x, middle + (-2 if more else 4) * scale, counted(size, "cell"), 12 * scale, font_weight=600)
        left_out = text(x, middle + 13 * scale, f"+{grouped(more)} more", 10.5 * scale, self.look.faint)
        return name + (left_out if more else "")

    def _last_line(self, x: float, y: float) -> str:
        """What is left out on levels that have no row."""
        scale, sizes = self.look.type, sorted(self.elsewhere)
        of = f"{sizes[0]} to {sizes[-1]} cells" if len(sizes) > 1 else counted(sizes[0], "cell")
        left_out = f"+{grouped(sum(self.elsewhere.values()))} more of {of}"
        return text(x, y, left_out, 10.5 * scale, self.look.faint)

    def _node(self, node: Node, box: _Box, removed: dict[int, float]) -> str:
        scale, (x, top, width, height) = self.look.type, box
        left, bottom = x - width / 2, top + height
        cells = " ∧ ".join(f"P{cell}" for cell in node.cells) or "no cells"
        mse = None if node.mse is None else self.graph.evidence.mses[node.mse]
        about = [f"{cells}: ratio {node.ratio:.3f}, confidence {node.confidence:.3f}"]
        lines = [text(x, bottom + 24 * scale, percent(node.ratio), 11.5 * scale, font_weight=600)]
        mark = ""
        if mse is not None and node.mse is not None:
            about.append(about_mse(mse, node.mse))
            name = f"MSE {node.mse + 1}"
            lines.append(text(x, top - 7.5 * scale, name, 9.5 * scale, font_weight=600))
            if mse.found == "deletion":
                mark = deletion_mark(x - text_width(name, 9.5 * scale) / 2 - 5 * scale, top - 7.5 * scale, scale)
        if said := remark(node):
            lines.append(text(x, bottom + 35.5 * scale, said, 9 * scale, self.look.faint))
        bar = {"x": left, "y": bottom + 7 * scale, "height": 4 * scale, "rx": 2 * scale}
        kept = width * min(node.ratio, 1.0) if node.ratio > 0 else 0.0
        ring = {"ring": mse is not None, "dashed": mse is not None and not mse.certified}
        return tag(
            "g",
            tag("title", escaped("\n".join(about))),
            self.thumbs.region(left, top, width, node.cells, marked=removed, **ring),
            tag("rect", **bar, width=width, fill=EMPTY),
            tag("rect", **bar, width=max(kept, 2.0), fill=ramp_color(node.ratio)) if kept else "",
            mark,
            tag("g", *lines, text_anchor="middle"),
        )

    def _edge(self, edge: Edge, boxes: dict[int, _Box]) -> str:
        parent, child = self.graph.nodes[edge.parent], self.graph.nodes[edge.child]
        start, end = boxes[parent.id], boxes[child.id]
        y0 = start.top + start.height + self.below - (0 if remark(parent) else 9 * self.look.type)
        y1 = end.top - (self.badge if child.is_mse else 3)
        bend = (y1 - y0) * 0.55
        curve = " ".join(map(number, (start.center, y0 + bend, end.center, y1 - bend, end.center, y1)))
        return tag(
            "path",
            tag("title", escaped(f"without P{edge.removed}: {percent(parent.ratio)} → {percent(child.ratio)}")),
            d=f"M{number(start.center)} {number(y0)}C{curve}",
            fill="none",
            stroke=EDGE,
            stroke_width=EDGE_WIDTHS[edge.strength] * self.thumbs.weight,
            stroke_linecap="round",
        )


def deletion_mark(x: float, y: float, scale: float) -> str:
    """A triangle that points down, on a base line: found from the whole image down."""
    half, high = 3.4 * scale, 6.4 * scale
    points = f"M{number(x - half)} {number(y - high)}h{number(2 * half)}L{number(x)} {number(y)}z"
    return tag("path", d=points, fill=INK)


def _thumbnail(room: float) -> float:
    """The width of a thumbnail that has so much room, with air around it."""
    return room - max(9.0, 0.15 * room)


def _room(thumbnail: float) -> float:
    """The room that a thumbnail needs."""
    return max(thumbnail + 9.0, thumbnail / 0.85)
