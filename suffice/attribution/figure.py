"""Attribution maps as a picture: title, class and scale of each, over its image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from suffice.draw import document, overlay, shortened, text
from suffice.draw.overlays import color_range
from suffice.draw.palettes import COOL, QUIET, WARM
from suffice.draw.sheets import GAP, Tile, color_bar, tile_rows
from suffice.errors import MissingExtra, OptionError
from suffice.vision import open_images

if TYPE_CHECKING:
    from suffice.attribution.attribution import Attribution

MARGIN, SIDE, COLUMNS = 24.0, 224.0, 4
MINUS = "\u2212"
SHARPNESS = 1.7  # pixels of an embedded picture for each unit of the drawing


def maps_figure(found: Attribution, images: Any = None) -> str:
    """Draw maps over their images, four in a row, as a standalone SVG.

    Each has the name of its image above, and below the class explained, its score, and the values that the first and
    the last color stand for.
    """
    height, width = found.settings["size"]
    high = SIDE * height / width
    drawn = _drawn(found, images, (round(SHARPNESS * high), round(SHARPNESS * SIDE)))
    names = [Path(name).name for name in found.names] or [""] * len(found)
    tiles = [Tile(picture, names[i], [_explained(found, i), _words(*ends)]) for i, (picture, ends) in enumerate(drawn)]
    columns = min(len(tiles), COLUMNS)
    wide = columns * (SIDE + GAP) - GAP
    rows, below = tile_rows(tiles, MARGIN, MARGIN + 54, side=SIDE, high=high, columns=columns)
    foot = MARGIN + 54 + below + 34
    signed = any(low < 0 for _, (low, _) in drawn)
    title = str(found.settings.get("method", "maps"))
    parts = [
        text(MARGIN, MARGIN + 14, shortened(title, 17, wide), 17, font_weight="bold"),
        text(MARGIN, MARGIN + 33, shortened(_second_line(found), 12, wide), 12, QUIET),
        *rows,
        *color_bar(MARGIN, foot, signed=signed, about="each map on its own scale" if len(found) > 1 else ""),
    ]
    return document(wide + 2 * MARGIN, foot + 20, *parts, title=f"{title}, {_second_line(found)}")


def _drawn(found: Attribution, images: Any, size: tuple[int, int]) -> list[tuple[Image.Image, tuple[float, float]]]:
    """Maps over the small pictures that are kept, or over images that are given, and what their colors stand for."""
    shown: list[Any] = [None] * len(found) if found.pictures is None else list(found.pictures.float() / 255)
    if images is not None:
        shown = [picture.decode() for picture in open_images(images)]
        if len(shown) != len(found):
            raise OptionError(f"{len(shown)} images were given for {len(found)} maps.")
    return [(overlay(one, picture), color_range(one)) for one, picture in zip(found.resized(size), shown, strict=True)]


def draw_on_axes(found: Attribution, axes: Any, images: Any = None) -> None:
    """Draw maps on axes of matplotlib, one each, with the class as title and a color bar of their values."""
    try:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, Normalize
    except ImportError as error:
        raise MissingExtra("Axes need matplotlib: pip install 'suffice[plots]'.") from error
    places = list(axes.flat) if hasattr(axes, "flat") else list(axes) if isinstance(axes, Sequence) else [axes]
    if len(places) != len(found):
        raise OptionError(f"{len(places)} axes were given for {len(found)} maps; draw some of them, such as found[0].")
    height, width = found.settings["size"]
    times = max(1, round(SIDE / max(height, width)))
    drawn = _drawn(found, images, (times * height, times * width))
    for i, (place, (picture, (low, high))) in enumerate(zip(places, drawn, strict=True)):
        ramp = [*COOL[:0:-1], *WARM] if low < 0 else [*WARM]
        colors = LinearSegmentedColormap.from_list("suffice", [tuple(color / 255) for color in ramp])
        place.imshow(picture)
        place.set_title(_explained(found, i))
        place.set_axis_off()
        bar = ScalarMappable(Normalize(low, high if high > low else low + 1), colors)
        place.figure.colorbar(bar, ax=place, fraction=0.046, pad=0.04, label=found.settings.get("method", ""))


def _explained(found: Attribution, number: int) -> str:
    """The class that a map explains, with the model's score of it where that is known."""
    label = found.labels[number] if found.labels else f"class {int(found.targets[number])}"
    score = float(found.confidences[number])
    if score != score:  # not known
        return label
    return f"{label} · {score:.2f}" if found.settings.get("score") == "logit" else f"{label} · {score:.1%}"


def _words(low: float, high: float) -> str:
    if not high > low:
        return f"{low:.3g} everywhere"
    first = 0.0 if abs(low) < 1e-3 * high else low  # nearly 0 would only be long
    return f"colors from {first:.3g} to {high:.3g}".replace("-", MINUS)


def _second_line(found: Attribution) -> str:
    count = "" if len(found) == 1 else f"{len(found)} images"
    return " · ".join(part for part in (found.settings.get("model", ""), count) if part)
