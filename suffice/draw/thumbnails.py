"""Regions of a picture: what is kept, bright; the rest, as the model was shown it, dimmed, or faded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Literal

import numpy as np
import torch
from PIL import Image, ImageDraw

from suffice.draw.palettes import EMPTY, HAIRLINE, INK, MARK, PLAIN, VEIL
from suffice.draw.pictures import SMALL, Drawable, as_image, data_uri
from suffice.draw.svg import number, tag
from suffice.errors import OptionError
from suffice.options import check_options
from suffice.perturb import Grid, RegionMasks, make_baseline

Hide = Literal["dim", "baseline", "fade"]
Segment = tuple[int, int, int, int]

FADED = 0.15  # how much of the picture shows through the veil
DIMMED = 0.5  # how much of the baseline does
USUAL = 224  # pixels a side that most networks see
RADIUS = 5.0


def region_picture(
    picture: Drawable,
    grid: Grid,
    cells: Iterable[int],
    baseline: Drawable | str | None = None,
    hide: Hide | None = None,
) -> Image.Image:
    """A picture of one region, RGB of the size of the whole, with a line around what is kept.

    Args:
        picture: A PIL image, or a tensor [3, H, W], uint8 or float in [0, 1].
        grid: The grid, laid over the whole picture.
        cells: The cells that are kept.
        baseline: What the model was shown in the other cells: a picture, or the name of a baseline.
        hide: ``"dim"`` shows the baseline in the other cells, dimmed, ``"baseline"`` as it is, ``"fade"`` the picture
            itself, faded. Default: ``"dim"`` where the baseline is given, else ``"fade"``.

    Example:
        >>> picture = torch.zeros(3, 64, 64)
        >>> shown = region_picture(picture, Grid(2), (0,))
        >>> shown.size, shown.getpixel((10, 10)), shown.getpixel((50, 50))
        ((64, 64), (0, 0, 0), (195, 198, 203))
    """
    kept, photo = tuple(cells), as_image(picture)
    rest = hidden_picture(photo, baseline, hide=hide) or _veiled(photo, FADED)
    width, height = photo.size
    mask = RegionMasks(grid.from_cells([kept]), grid).rows(slice(1), (height, width), torch.device("cpu"))[0]
    shown = Image.composite(photo, rest, Image.fromarray(mask.numpy().astype(np.uint8) * 255))
    draw, line = ImageDraw.Draw(shown), max(1, round(min(photo.size) / 150))
    for x0, y0, x1, y1 in outline(kept, grid.side):
        ends = [(round(x * width / grid.side), round(y * height / grid.side)) for x, y in ((x0, y0), (x1, y1))]
        draw.line([(min(x, width - 1), min(y, height - 1)) for x, y in ends], fill=INK, width=line)
    return shown


def hidden_picture(
    photo: Image.Image, baseline: Drawable | str | None = None, *, hide: Hide | None = None
) -> Image.Image | None:
    """What shows where cells are hidden, of the photo's size; None where that is the photo itself, faded.

    A baseline by name is made from the photo. Blurs are as wide as so many pixels, so that those of a small copy (its
    longest side is 128 pixels) are made as for the 224 pixels that most networks see.
    """
    check_options({"hide": hide}, hidden_picture)
    if hide == "fade" or (hide is None and baseline is None):
        return None
    if baseline is None:
        raise OptionError(f"hide={hide!r} needs the baseline: write baseline='blur', or give its picture.")
    if isinstance(baseline, str):
        seen = photo if max(photo.size) != SMALL else photo.resize(_enlarged(photo.size), Image.Resampling.BICUBIC)
        pixels = torch.from_numpy(np.array(seen)).permute(2, 0, 1).float() / 255
        baseline = make_baseline(baseline, pixels[None])[0]
    shown = as_image(baseline)
    shown = shown if shown.size == photo.size else shown.resize(photo.size, Image.Resampling.BICUBIC)
    return shown if hide == "baseline" else _veiled(shown, DIMMED)


def _enlarged(size: tuple[int, int]) -> tuple[int, int]:
    return round(size[0] * USUAL / SMALL), round(size[1] * USUAL / SMALL)


def _veiled(picture: Image.Image, share: float) -> Image.Image:
    return Image.blend(Image.new("RGB", picture.size, VEIL), picture, share)


def outline(cells: Collection[int], side: int) -> list[Segment]:
    """The border of a region: segments (x0, y0, x1, y1) in cells along the lines of the grid, straight runs as one.

    Example:
        >>> outline([0, 1], side=2)
        [(0, 0, 2, 0), (0, 1, 2, 1), (0, 0, 0, 1), (2, 0, 2, 1)]
    """
    kept = np.zeros((side + 2, side + 2), dtype=bool)
    for cell in cells:
        kept[cell // side + 1, cell % side + 1] = True
    across, down = kept[1:, 1:-1] != kept[:-1, 1:-1], (kept[1:-1, 1:] != kept[1:-1, :-1]).T  # [line, along it]
    return [(a, y, b, y) for y in range(side + 1) for a, b in _runs(across[y])] + [
        (x, a, x, b) for x in range(side + 1) for a, b in _runs(down[x])
    ]


def _runs(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Where consecutive true values begin and end."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int))).tolist()
    return list(zip(changes[::2], changes[1::2], strict=True))


class Thumbnails:
    """Draws regions that share one embedded picture. Inside a thumbnail, the width of a cell is 1.

    Args:
        side: Cells per side.
        photo: The picture; None draws plain cells.
        rest: What hidden cells show; None fades the picture there.
        key: Tells drawings of one picture apart: their ids begin with a hash of both, also where they share a page.
        weight: Makes all lines so many times as thick.
    """

    def __init__(
        self,
        side: int,
        photo: Image.Image | None = None,
        rest: Image.Image | None = None,
        key: str = "",
        weight: float = 1.0,
    ) -> None:
        self.side, self.aspect, self.weight = side, 1.0 if photo is None else photo.height / photo.width, weight
        self._images = {n: data_uri(i) for n, i in (("photo", photo), ("rest", rest)) if i is not None}
        self.prefix = "s" + sha256("\n".join([key, *self._images.values()]).encode()).hexdigest()[:8]
        self._clips: dict[str, str] = {}

    @property
    def plain(self) -> bool:
        """Whether there is no picture."""
        return "photo" not in self._images

    def definitions(self) -> str:
        """What thumbnails refer to; complete once all of them are drawn."""
        size = {"width": self.side, "height": self.side * self.aspect, "preserveAspectRatio": "none"}
        images = [tag("image", id=f"{self.prefix}-{name}", href=uri, **size) for name, uri in self._images.items()]
        return tag("defs", *images, *(tag("clipPath", shape, id=name) for shape, name in self._clips.items()), "")

    def region(
        self,
        x: float,
        y: float,
        width: float,
        cells: tuple[int, ...],
        *,
        marked: Mapping[int, float] | None = None,
        ring: bool = False,
        dashed: bool = False,
    ) -> str:
        """One thumbnail, from its left and top, of the cells that are kept.

        ``marked`` cells are outlined by a line of that width; with ``ring`` there is a strong frame around all of it,
        which can be ``dashed``.
        """
        pixel = self.side / width * self.weight
        parts = [
            tag("g", *self._layers(cells), *self._lines(cells, pixel), clip_path=self._clip(self._frame(0, pixel))),
            self._frame(0, pixel, stroke=HAIRLINE, stroke_width=0.8 * pixel),
        ]
        if ring:
            dashes = f"{number(4 * pixel)} {number(2.6 * pixel)}" if dashed else None
            frame = self._frame(2.8 * pixel, pixel, stroke=INK, stroke_width=1.8 * pixel, stroke_dasharray=dashes)
            parts.append(frame)
        for cell, line in sorted((marked or {}).items()):
            row, column = divmod(cell, self.side)
            box = {"x": column, "y": row * self.aspect, "width": 1, "height": self.aspect}
            parts.append(tag("rect", **box, stroke=MARK, stroke_width=line * pixel, stroke_linejoin="round"))
        return tag(
            "g", *parts, transform=f"translate({number(x)} {number(y)}) scale({width / self.side:.6g})", fill="none"
        )

    def _layers(self, cells: tuple[int, ...]) -> list[str]:
        """What is hidden, and what is kept above it."""
        high = self.side * self.aspect
        if self.plain:
            back = tag("rect", width=self.side, height=high, fill=EMPTY)
            return [back, tag("path", d=self._squares(cells), fill=PLAIN)] if cells else [back]
        photo = f"#{self.prefix}-photo"
        if len(cells) == self.side**2:
            return [tag("use", href=photo)]
        if "rest" in self._images:
            back = tag("use", href=f"#{self.prefix}-rest")
        else:
            back = tag("rect", width=self.side, height=high, fill=VEIL) + tag("use", href=photo, opacity=FADED)
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

    def _frame(self, outside: float, pixel: float, **look: str | float | None) -> str:
        """A rounded frame around the thumbnail, at a distance."""
        size = {"width": self.side + 2 * outside, "height": self.side * self.aspect + 2 * outside}
        return tag("rect", x=-outside, y=-outside, **size, rx=RADIUS * pixel + outside, **look)

    def _squares(self, cells: Iterable[int]) -> str:
        high = number(self.aspect)
        corners = (divmod(cell, self.side) for cell in cells)
        return "".join(f"M{column} {number(row * self.aspect)}h1v{high}h-1z" for row, column in corners)

    def _clip(self, shape: str) -> str:
        return f"url(#{self._clips.setdefault(shape, f'{self.prefix}-clip{len(self._clips)}')})"
