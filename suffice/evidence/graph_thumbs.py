"""Regions as thumbnails that share one embedded picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from suffice.evidence.graph_markup import EMPTY, HAIRLINE, PLAIN, REMOVED, number, tag
from suffice.evidence.graph_pictures import DIMMED, INK, VEIL, outline
from suffice.evidence.graph_text import strength

REMOVED_WIDTHS = (1.1, 2.0, 3.2)
RADIUS = 5.0


class Thumbnails:
    """Draws regions. Inside a thumbnail, the width of a cell is 1.

    Args:
        prefix: Begins every id, so that pictures in one page do not take each other's.
        side: Cells a side.
        aspect: Height of the picture / its width.
        photo: The picture as a data URI; None draws plain cells.
        rest: What hidden cells show, likewise; None dims them.
    """

    def __init__(self, prefix: str, side: int, aspect: float, photo: str | None, rest: str | None) -> None:
        self.prefix, self.side, self.aspect = prefix, side, aspect
        self.photo, self.rest = photo, rest
        self._clips: dict[str, str] = {}

    def definitions(self) -> str:
        """What thumbnails refer to; complete once all of them are drawn."""
        size = {"width": self.side, "height": self.side * self.aspect, "preserveAspectRatio": "none"}
        named = (("photo", self.photo), ("rest", self.rest))
        images = [tag("image", id=f"{self.prefix}-{name}", href=uri, **size) for name, uri in named if uri]
        return tag("defs", *images, *(tag("clipPath", shape, id=name) for shape, name in self._clips.items()), "")

    def region(
        self,
        x: float,
        y: float,
        width: float,
        cells: tuple[int, ...],
        *,
        removed: Mapping[int, float] | None = None,
        ring: bool = False,
    ) -> str:
        """One thumbnail.

        Args:
            x: Left.
            y: Top.
            width: Its width.
            cells: Cells that are kept.
            removed: Cells just removed → how far the ratio fell.
            ring: Whether to draw a strong frame around it.
        """
        pixel = self.side / width
        parts = [
            tag("g", *self._layers(cells), *self._lines(cells, pixel), clip_path=self._clip(self._frame(0, pixel))),
            self._frame(0, pixel, stroke=HAIRLINE, stroke_width=0.8 * pixel),
        ]
        if ring:
            parts.append(self._frame(2.8 * pixel, pixel, stroke=INK, stroke_width=1.8 * pixel))
        for cell, drop in sorted((removed or {}).items()):
            row, column = divmod(cell, self.side)
            box = {"x": column, "y": row * self.aspect, "width": 1, "height": self.aspect}
            line = REMOVED_WIDTHS[strength(drop)] * pixel
            parts.append(tag("rect", **box, stroke=REMOVED, stroke_width=line, stroke_linejoin="round"))
        return tag("g", *parts, transform=f"translate({number(x)} {number(y)}) scale({1 / pixel:.6g})", fill="none")

    def _layers(self, cells: tuple[int, ...]) -> list[str]:
        """What is hidden, and what is kept above it."""
        high = self.side * self.aspect
        if self.photo is None:
            back = tag("rect", width=self.side, height=high, fill=EMPTY)
            return [back, tag("path", d=self._squares(cells), fill=PLAIN)] if cells else [back]
        photo = f"#{self.prefix}-photo"
        if len(cells) == self.side**2:
            return [tag("use", href=photo)]
        if self.rest is None:
            back = tag("rect", width=self.side, height=high, fill=VEIL) + tag("use", href=photo, opacity=DIMMED)
        else:
            back = tag("use", href=f"#{self.prefix}-rest")
        if not cells:
            return [back]
        shape = tag("path", d=self._squares(cells))
        return [back, tag("g", tag("use", href=photo), clip_path=self._clip(shape))]

    def _lines(self, cells: tuple[int, ...], pixel: float) -> list[str]:
        """The grid, and the border of the region."""
        high = number(self.side * self.aspect)
        grid = "".join(f"M{i} 0V{high}M0 {number(i * self.aspect)}H{self.side}" for i in range(1, self.side))
        border = "".join(
            f"M{x0} {number(y0 * self.aspect)}L{x1} {number(y1 * self.aspect)}"
            for x0, y0, x1, y1 in outline(cells, self.side)
        )
        lines = [tag("path", d=grid, stroke="#fff", stroke_opacity=0.4, stroke_width=0.5 * pixel)] if grid else []
        if border and len(cells) < self.side**2:
            lines.append(tag("path", d=border, stroke=INK, stroke_width=pixel, stroke_linecap="square"))
        return lines

    def _frame(self, outside: float, pixel: float, **look: str | float) -> str:
        """A rounded frame around the thumbnail, at a distance."""
        size = {"width": self.side + 2 * outside, "height": self.side * self.aspect + 2 * outside}
        return tag("rect", x=-outside, y=-outside, **size, rx=RADIUS * pixel + outside, **look)

    def _squares(self, cells: Iterable[int]) -> str:
        high = number(self.aspect)
        places = (divmod(cell, self.side) for cell in cells)
        return "".join(f"M{column} {number(row * self.aspect)}h1v{high}h-1z" for row, column in places)

    def _clip(self, shape: str) -> str:
        name = self._clips.setdefault(shape, f"{self.prefix}-clip{len(self._clips)}")
        return f"url(#{name})"
