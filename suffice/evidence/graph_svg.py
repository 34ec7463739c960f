"""The structured attention graph as a standalone SVG picture."""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from suffice.errors import OptionError
from suffice.evidence.graph_export import to_json
from suffice.evidence.graph_header import MARGIN, footer, header, notice
from suffice.evidence.graph_layout import lay_out
from suffice.evidence.graph_markup import EMPTY, FAINT, HAIRLINE, QUIET, SANS, color, number, tag, text, words
from suffice.evidence.graph_pictures import Drawable, Hide, data_uri, hidden_picture, opened
from suffice.evidence.graph_text import cell_count, grouped, percent, strength
from suffice.evidence.graph_thumbs import Thumbnails

if TYPE_CHECKING:
    from suffice.evidence.graph import Edge, Graph, Node

LABELS = 92.0  # width of the names of levels
NARROWEST, WIDTH = 960.0, 1240.0
ROOM = (50.0, 132.0)  # least and most for a node
BADGE, BELOW, BETWEEN = 17.0, 38.0, 44.0
EDGE_WIDTHS = (0.9, 1.6, 2.6)


def to_svg(
    graph: Graph, picture: Drawable | None = None, baseline: Drawable | str | None = None, hide: Hide = "dim"
) -> str:
    """Draw a graph.

    The result is one XML document without references to anything outside itself; the picture is embedded once. The
    same graph and picture give the same text.

    Args:
        graph: The graph.
        picture: What the model saw, to the edges of the grid: a PIL image, or a tensor [3, H, W] in [0, 1]. None
            draws cells as plain squares.
        baseline: With ``hide="baseline"``: the baseline's picture, or its name.
        hide: ``"dim"`` fades hidden cells, ``"baseline"`` shows there what the model was shown.

    Returns:
        The SVG document.

    Raises:
        OptionError: Another ``hide``; or the baseline is to be shown, and is not given, or no picture is.

    Example:
        >>> from suffice.evidence.graph import Graph, Node
        >>> from suffice.perturb import Grid
        >>> choices = {"threshold": 0.9, "strict": False, "baseline": "blur", "cells": "hard", "expand_at": 0.4,
        ...            "children": 3, "merge": True}
        >>> graph = Graph("a.png", "cat", 0, 0.9, 0.1, Grid(2), "(P3)", (Node(0, (3,), 1.0, 0.9, mse=0),), (), (0,), 1,
        ...               {}, "beam empty", 1, False, 4, choices)
        >>> to_svg(graph)[:40]
        '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    photo = None if picture is None else opened(picture)
    if photo is None:
        if hide != "dim":
            raise OptionError(f"hide={hide!r} needs a picture; write to_svg(picture, …), or leave hide='dim'.")
        rest = None
    else:
        rest = hidden_picture(photo, baseline, hide)
    uris = [None if image is None else data_uri(image) for image in (photo, rest)]
    digest = sha256("\n".join([to_json(graph), *map(str, uris)]).encode()).hexdigest()
    aspect = 1.0 if photo is None else photo.height / photo.width
    return _Page(graph, Thumbnails(f"s{digest[:8]}", graph.grid.side, aspect, *uris)).draw()


class _Page:
    """One picture, from top to bottom."""

    def __init__(self, graph: Graph, thumbs: Thumbnails) -> None:
        self.graph, self.thumbs = graph, thumbs
        around = 2 * MARGIN + LABELS
        self.layout = lay_out(graph, WIDTH - around, *ROOM)
        self.width = max(NARROWEST, around + self.layout.width)
        self.left = MARGIN + LABELS + (self.width - around - self.layout.width) / 2
        self.boxes: dict[int, _Box] = {}

    def draw(self) -> str:
        graph = self.graph
        head, bottom = header(graph, self.thumbs, self.width)
        body, bottom = self._body(bottom + 30)
        foot, bottom = footer(graph, self.thumbs, self.width, bottom + 24)
        height = bottom + 22
        about = f"Structured attention graph of {graph.title}"
        return tag(
            "svg",
            tag("title", words(about)),
            tag("desc", words(graph.formula)),
            self.thumbs.definitions(),
            tag("rect", width=self.width, height=height, fill="#fff"),
            *(head, body, foot),
            "\n",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {number(self.width)} {number(height)}",
            width=self.width,
            height=height,
            font_family=SANS,
            role="img",
        )

    def _body(self, top: float) -> tuple[str, float]:
        """Levels, edges, nodes; returns markup and where it ends."""
        rule = tag("path", d=f"M{number(MARGIN)} {number(top)}H{number(self.width - MARGIN)}", stroke=HAIRLINE)
        parts, y = [rule], top + 20
        center = MARGIN + LABELS + (self.width - 2 * MARGIN - LABELS) / 2
        said = notice(self.graph)
        if said:
            headline, *details = said
            parts.append(text(center, y + 30, headline, 17, text_anchor="middle", font_weight=600))
            parts += [text(center, y + 56, detail, 12.5, QUIET, text_anchor="middle") for detail in details]
            y += 80
        if not self.layout.rows:
            return "\n".join(parts), y

        labels = []
        for size, row, room in zip(self.graph.levels, self.layout.rows, self.layout.room, strict=True):
            # Tall pictures get narrower thumbnails, so that rows keep their height.
            width = (room - max(9.0, 0.15 * room)) / max(self.thumbs.aspect, 1.0)
            height = width * self.thumbs.aspect
            y += BADGE
            for node in row:
                self.boxes[node] = _Box(self.left + self.layout.centers[node], y, width, height)
            labels.append(self._label(size, y + height / 2))
            y += height + BELOW + BETWEEN
        y -= BETWEEN
        removed: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for edge in self.graph.edges:
            removed[edge.child][edge.removed] = edge.drop
        parts += [self._edge(edge) for edge in self.graph.edges]
        parts += labels
        parts += [self._node(node, removed[node.id]) for node in self.graph.nodes]
        undrawn = {size: count for size, count in self.graph.hidden.items() if size not in self.graph.levels}
        if undrawn:
            y += 24
            detail = ", ".join(f"{grouped(count)} of {cell_count(size)}" for size, count in undrawn.items())
            parts.append(text(MARGIN, y, f"+{grouped(sum(undrawn.values()))} more", 12, font_weight=600))
            parts.append(text(MARGIN + LABELS, y, f"on levels not drawn: {detail}", 11, QUIET))
        return "\n".join(parts), y

    def _label(self, size: int, middle: float) -> str:
        """The name of a level, and how much of it is left out."""
        more = self.graph.hidden.get(size, 0)
        parts = [text(MARGIN, middle + (-2 if more else 4), cell_count(size), 12, font_weight=600)]
        if more:
            parts.append(text(MARGIN, middle + 13, f"+{grouped(more)} more", 10.5, FAINT))
        return "".join(parts)

    def _node(self, node: Node, removed: dict[int, float]) -> str:
        x, top, width, height = self.boxes[node.id]
        left, bottom = x - width / 2, top + height
        cells = " ∧ ".join(f"P{cell}" for cell in node.cells) or "no cells"
        bar = {"x": left, "y": bottom + 7, "height": 4, "rx": 2}
        parts = [
            tag("title", words(f"{cells}: ratio {node.ratio:.3f}, confidence {node.confidence:.3f}")),
            self.thumbs.region(left, top, width, node.cells, removed=removed, ring=node.is_mse),
            tag("rect", **bar, width=width, fill=EMPTY),
        ]
        if node.ratio > 0:
            parts.append(tag("rect", **bar, width=max(width * min(node.ratio, 1.0), 2), fill=color(node.ratio)))
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
        about = f"without P{edge.removed}: {percent(parent.ratio)} → {percent(child.ratio)}"
        return tag(
            "path",
            tag("title", words(about)),
            d=f"M{number(start.center)} {number(y0)}C{curve}",
            fill="none",
            stroke="#a3adb9",
            stroke_width=EDGE_WIDTHS[strength(edge.drop)],
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
