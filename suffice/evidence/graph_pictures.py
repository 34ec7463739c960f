"""Pictures of regions: what is kept, bright; the rest, dim or as the baseline shows it."""

from __future__ import annotations

import base64
import io
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, Union

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from suffice.attribution.pictures import TINY
from suffice.errors import OptionError
from suffice.perturb.baselines import make_baseline
from suffice.perturb.masks import RegionMasks
from suffice.perturb.regions import Grid
from suffice.vision.images import open_images
from suffice.vision.images.arrays import as_float

Drawable = Union[Image.Image, Tensor, Any]
Hide = Literal["dim", "baseline"]
Segment = tuple[int, int, int, int]

INK = "#1b2430"
VEIL = "#e6eaef"  # a little gray, so that white cells that are kept still stand out
DIMMED = 0.15  # how much of a hidden cell shows through it
LONGEST = 400  # pixels; enough for the largest place it is shown at, printed at twice the density of a screen


def mse_picture(
    picture: Drawable,
    grid: Grid,
    cells: Iterable[int],
    baseline: Drawable | str | None = None,
    hide: Hide = "dim",
) -> Image.Image:
    """A picture of one region, such as an MSE.

    Args:
        picture: What the model saw: a PIL image, or a tensor [3, H, W] in [0, 1].
        grid: The grid, laid over the whole picture.
        cells: The cells that are kept.
        baseline: With ``hide="baseline"``: the baseline's picture, or its name.
        hide: ``"dim"`` fades the other cells, ``"baseline"`` shows there what the model was shown.

    Returns:
        An RGB image of the picture's size, with a line around what is kept.

    Example:
        >>> picture = torch.zeros(3, 64, 64)
        >>> shown = mse_picture(picture, Grid(2), (0,))
        >>> shown.size, shown.getpixel((10, 10)), shown.getpixel((50, 50))
        ((64, 64), (0, 0, 0), (195, 198, 203))
    """
    kept = tuple(cells)
    photo = opened(picture)
    rest = hidden_picture(photo, baseline, hide)
    if rest is None:
        rest = Image.blend(Image.new("RGB", photo.size, VEIL), photo, DIMMED)
    width, height = photo.size
    mask = RegionMasks(grid.from_cells([kept]), grid).rows(slice(1), (height, width), torch.device("cpu"))[0]
    shown = Image.composite(photo, rest, Image.fromarray(mask.numpy().astype(np.uint8) * 255))
    draw, line = ImageDraw.Draw(shown), max(1, round(min(photo.size) / 150))
    for x0, y0, x1, y1 in outline(kept, grid.side):
        ends = [(round(x * width / grid.side), round(y * height / grid.side)) for x, y in ((x0, y0), (x1, y1))]
        draw.line([(min(x, width - 1), min(y, height - 1)) for x, y in ends], fill=INK, width=line)
    return shown


def opened(picture: Drawable) -> Image.Image:
    """One picture as an RGB image."""
    if isinstance(picture, Tensor) and picture.dim() == 4:
        raise OptionError(f"One picture is [3, H, W]; got {list(picture.shape)}. Write picture[0].")
    images = open_images(picture)
    if len(images) != 1:
        raise OptionError(f"Expected one picture, and got {len(images)}.")
    decoded = images[0].decode()
    if isinstance(decoded, Image.Image):
        return decoded
    pixels = (decoded * 255).round().to(torch.uint8).permute(1, 2, 0)
    return Image.fromarray(pixels.numpy())


def hidden_picture(photo: Image.Image, baseline: Drawable | str | None, hide: Hide) -> Image.Image | None:
    """What shows where cells are hidden, of the photo's size; None where they are dimmed.

    A baseline by name is made from the photo, with the ImageNet mean where it needs one.
    """
    if hide not in ("dim", "baseline"):
        raise OptionError(f"hide={hide!r}; it can be 'dim' or 'baseline'.")
    if hide == "dim":
        return None
    if baseline is None:
        raise OptionError("hide='baseline' needs the baseline: write baseline='blur', or give its picture.")
    if isinstance(baseline, str):
        pixels = as_float(torch.from_numpy(np.array(photo)).permute(2, 0, 1))
        return opened(make_baseline(baseline, pixels[None])[0])
    shown = opened(baseline)
    return shown if shown.size == photo.size else shown.resize(photo.size, Image.Resampling.BICUBIC)


def data_uri(photo: Image.Image) -> str:
    """The picture, made smaller where it is large, for use inside a document.

    Where it is tiny, each pixel becomes a sharp square: viewers would blur it, and JPEG would show its artifacts.
    """
    small = photo.copy()
    small.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    lossless = max(small.size) <= TINY
    if lossless:
        times = max(1, LONGEST // max(small.size))
        small = small.resize((times * small.width, times * small.height), Image.Resampling.NEAREST)
    data = io.BytesIO()
    if lossless:
        small.save(data, "PNG")
    else:
        small.save(data, "JPEG", quality=86, optimize=True)
    kind = "png" if lossless else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data.getvalue()).decode('ascii')}"


def outline(cells: Collection[int], side: int) -> list[Segment]:
    """The border of a region.

    Returns:
        Segments (x0, y0, x1, y1) in cells, along the lines of the grid; straight runs are one segment.

    Example:
        >>> outline([0, 1], side=2)
        [(0, 0, 2, 0), (0, 1, 2, 1), (0, 0, 0, 1), (2, 0, 2, 1)]
    """
    kept = {divmod(cell, side) for cell in cells}

    def border(line: int, place: int, across: bool) -> bool:
        here, before = ((place, line), (place, line - 1)) if across else ((line, place), (line - 1, place))
        return (here in kept) != (before in kept)

    lines = range(side + 1)
    rows = [(line, run) for line in lines for run in _runs([border(line, place, False) for place in range(side)])]
    columns = [(line, run) for line in lines for run in _runs([border(line, place, True) for place in range(side)])]
    return [(a, y, b, y) for y, (a, b) in rows] + [(x, a, x, b) for x, (a, b) in columns]


def _runs(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Where consecutive true values begin and end."""
    padded = [False, *flags, False]
    changes = [place for place in range(len(flags) + 1) if padded[place] != padded[place + 1]]
    return list(zip(changes[::2], changes[1::2], strict=True))
