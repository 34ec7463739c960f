"""Sheets of pictures: grids with names of rows and columns, and whole drawings side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import torch
from PIL import Image
from torch import Tensor

from suffice.draw import as_image, document, overlay, shortened, tag, text
from suffice.draw.palettes import FAINT, HAIRLINE, QUIET
from suffice.draw.pictures import resampling
from suffice.draw.sheets import Tile, color_bar, framed
from suffice.draw.theme import family_color
from suffice.perturb import enlarge

MARGIN, GAP, SIDE = 20.0, 8.0, 112.0
BESIDE, HEAD = 118.0, 22.0  # room for names of rows, and of columns
SHARPNESS = 2  # pixels of a picture for each unit of the drawing


@dataclass(frozen=True)
class RowOf:
    """A row of a grid: its name, what is said below that, the color of its family, and its tiles."""

    name: str
    tiles: Sequence[Tile]
    line: str = ""
    family: str | None = None


def grid_sheet(
    columns: Sequence[str],
    rows: Sequence[RowOf],
    *,
    title: str,
    families: Mapping[str, str] | None = None,
    side: float = SIDE,
    colors: str | None = None,
    signed: bool = False,
) -> str:
    """A grid of pictures with names above columns and beside rows, as a standalone SVG.

    Args:
        columns: Their names.
        rows: With as many tiles each.
        title: Of the whole.
        families: Of columns that are models: a stripe of the family's color is drawn below the name.
        side: Of a picture.
        colors: What the bar of colors is about; no bar by default.
        signed: Whether that bar has two sides.
    """
    below = 15.0 if any(tile.lines for row in rows for tile in row.tiles) else 0.0
    pitch = side + below + GAP
    left, top = MARGIN + BESIDE, MARGIN + HEAD
    width = left + len(columns) * (side + GAP) - GAP + MARGIN
    parts = []
    for number, name in enumerate(columns):
        x = left + number * (side + GAP)
        parts.append(text(x, top - 8, shortened(name, 11.5, side), 11.5, font_weight="bold"))
        if families and name in families:
            parts.append(tag("rect", x=x, y=top - 4, width=side, height=3, fill=family_color(families[name])))
    for number, row in enumerate(rows):
        y = top + 2 + number * pitch
        parts += _row_name(row, y + side / 2)
        for place, tile in enumerate(row.tiles):
            x = left + place * (side + GAP)
            parts += framed(x, y, side, side, tile)
            if tile.lines:
                parts.append(text(x, y + side + 12, shortened(tile.lines[0], 10.5, side), 10.5, QUIET))
    foot = top + 2 + len(rows) * pitch + 8
    if colors is not None:
        parts += color_bar(MARGIN, foot + 8, signed=signed, about=colors)
        foot += 22
    return document(width, foot + 6, *parts, title=title)


def _row_name(row: RowOf, middle: float) -> list[str]:
    room = BESIDE - 14
    parts = [text(MARGIN, middle, shortened(row.name, 11.5, room), 11.5, font_weight="bold")]
    if row.line:
        parts.append(text(MARGIN, middle + 15, shortened(row.line, 10.5, room), 10.5, FAINT))
    if row.family is not None:
        parts.append(tag("rect", x=MARGIN - 9, y=middle - 12, width=4, height=30, fill=family_color(row.family)))
    return parts


def map_tile(values: Tensor, pixels: Tensor | Image.Image | None, line: str = "", side: float = SIDE) -> Tile:
    """A map [h, w] over its image."""
    size = round(side * SHARPNESS)
    return Tile(overlay(enlarge(values[None].float(), (size, size))[0], pixels), lines=[line] if line else ())


def photo_tile(picture: Tensor | Image.Image, line: str = "", side: float = SIDE) -> Tile:
    """An image as the model saw it."""
    photo = as_image(picture)
    size = round(side * SHARPNESS)
    return Tile(photo.resize((size, size), resampling(photo)), lines=[line] if line else ())


def gray_tile(values: Tensor, line: str = "", side: float = SIDE) -> Tile:
    """A mask [h, w] from 0, black, to 1, white."""
    size = round(side * SHARPNESS)
    shown = (enlarge(values[None].float(), (size, size))[0].clamp(0, 1) * 255).round().to(torch.uint8)
    return Tile(Image.fromarray(shown.cpu().numpy(), "L").convert("RGB"), lines=[line] if line else ())


def side_by_side(drawings: Sequence[tuple[str, str, str]], *, title: str, columns: int = 3, wide: float = 330.0) -> str:
    """Whole drawings in rows, each below its name, with a stripe of its family's color, as a standalone SVG.

    Args:
        drawings: Name, family and SVG of each.
        title: Of the whole.
        columns: How many in a row.
        wide: Width of each.
    """
    columns = min(columns, len(drawings))
    parts: list[str] = []
    y = MARGIN
    for start in range(0, len(drawings), columns):
        some = drawings[start : start + columns]
        heights = [wide * _size(markup)[1] / _size(markup)[0] for _, _, markup in some]
        for place, (name, family, markup) in enumerate(some):
            x = MARGIN + place * (wide + 2 * GAP)
            parts.append(text(x, y + 12, shortened(name, 13, wide), 13, font_weight="bold"))
            parts.append(tag("rect", x=x, y=y + 18, width=wide, height=3, fill=family_color(family)))
            parts.append(_nested(markup, x, y + 26, wide, heights[place]))
        y += 26 + max(heights) + 18
        parts.append(
            tag("line", x1=MARGIN, x2=MARGIN + columns * (wide + 2 * GAP), y1=y - 8, y2=y - 8, stroke=HAIRLINE)
        )
        y += 4
    return document(2 * MARGIN + columns * (wide + 2 * GAP) - 2 * GAP, y, *parts, title=title)


def _size(markup: str) -> tuple[float, float]:
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', markup)
    assert found is not None
    return float(found[1]), float(found[2])


def _nested(markup: str, x: float, y: float, width: float, height: float) -> str:
    """A whole document as a part of another one; its title becomes that of the part."""
    opening = re.compile(r"<svg\b[^>]*>")
    across, down = _size(markup)
    head = f'<svg x="{x:g}" y="{y:g}" width="{width:g}" height="{height:.5g}" viewBox="0 0 {across:g} {down:g}">'
    return opening.sub(lambda _: head, markup, count=1)


def short_name(name: str) -> str:
    """The last part of a name of an image.

    Example:
        >>> short_name("photos/cats/one.jpg"), short_name("scenes:test[3]")
        ('one.jpg', 'scenes:test[3]')
    """
    return PurePosixPath(name).name
