"""Sheets of pictures: tiles in rows, each with its name above and what there is to say below, and the bar of colors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from suffice.draw.overlays import map_colors
from suffice.draw.palettes import COOL, EMPTY, FAINT, HAIRLINE, INK, QUIET, WARM
from suffice.draw.pictures import data_uri
from suffice.draw.svg import tag, text
from suffice.draw.words import shortened, wrap

GAP = 16.0  # between tiles
NAME = 20.0  # room for the name above a picture
LINE = 16.0  # room for a line below it


@dataclass(frozen=True)
class Tile:
    """A picture and the words that belong to it.

    Attributes:
        picture: What to show; None for an empty frame.
        name: Above it.
        lines: Below it, the first in a darker voice.
        note: Inside an empty frame: why there is no picture.
    """

    picture: Image.Image | None
    name: str = ""
    lines: Sequence[str] = ()
    note: str = ""


def tile_rows(
    tiles: Sequence[Tile], x: float, y: float, *, side: float, high: float, columns: int
) -> tuple[list[str], float]:
    """Draw tiles in rows of so many columns; the markup, and the height that they take.

    Pictures are ``side`` wide and ``high`` high; names and lines are shortened to that width. Nothing is written over
    a picture.

    Example:
        >>> parts, height = tile_rows([Tile(None, note="empty")] * 3, 0, 0, side=100, high=80, columns=2)
        >>> height
        176.0
    """
    above = NAME if any(tile.name for tile in tiles) else 0.0
    below = LINE * max((len(tile.lines) for tile in tiles), default=0)
    pitch = above + high + below + GAP
    parts = []
    for number, tile in enumerate(tiles):
        left, top = x + (side + GAP) * (number % columns), y + above + pitch * (number // columns)
        parts.append(text(left, top - 7, shortened(tile.name, 12.5, side), 12.5, font_weight="bold"))
        parts += framed(left, top, side, high, tile)
        for row, line in enumerate(tile.lines):
            color, size = (INK, 12.0) if row == 0 else (QUIET, 11.0)
            parts.append(text(left, top + high + LINE * (row + 1), shortened(line, size, side), size, color))
    rows = -(-len(tiles) // columns)
    return parts, rows * pitch - GAP if rows else 0.0


def framed(x: float, y: float, side: float, high: float, tile: Tile) -> list[str]:
    """A picture in a thin frame; without one, a quiet frame with the note in its middle."""
    frame = {"x": x, "y": y, "width": side, "height": high}
    if tile.picture is not None:
        image = tag("image", href=data_uri(tile.picture), preserveAspectRatio="none", **frame)
        return [image, tag("rect", fill="none", stroke=HAIRLINE, **frame)]
    words = tile.note.split()
    lines = [" ".join(words[i] for i in line) for line in wrap(words, 12, side - 40)]
    middle = y + high / 2 - 8 * (len(lines) - 1) + 4
    return [
        tag("rect", fill=EMPTY, stroke=HAIRLINE, stroke_dasharray="4 4", **frame),
        *(text(x + side / 2, middle + 16 * i, line, 12, FAINT, text_anchor="middle") for i, line in enumerate(lines)),
    ]


def color_bar(x: float, y: float, *, signed: bool, ends: tuple[str, str] | None = None, about: str = "") -> list[str]:
    """The colors from low to high, or from against to for, with words at both ends and, quietly, about it."""
    strip = map_colors(torch.linspace(0, 1, 128)[None].expand(4, -1), WARM)
    if signed:
        strip = np.concatenate([map_colors(torch.linspace(1, 0, 128)[None].expand(4, -1), COOL), strip], axis=1)
    low, high = ends or (("against", "for") if signed else ("low", "high"))
    start = x + 8 + 6.4 * len(low)
    bar = {"x": start, "y": y - 9, "width": 150, "height": 10, "preserveAspectRatio": "none"}
    return [
        text(x, y, low, 11, QUIET),
        tag("image", href=data_uri(Image.fromarray(strip)), **bar),
        text(start + 158, y, high, 11, QUIET),
        text(start + 158 + 6.4 * len(high) + 20, y, about, 11, FAINT),
    ]
