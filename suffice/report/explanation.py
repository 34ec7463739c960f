"""Figures of one image: where each method says that the model looks, and what is enough for it to decide."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from suffice.draw import as_image, document, overlay, region_picture, shortened, tag, text
from suffice.draw.files import Format, save_picture
from suffice.draw.overlays import levels
from suffice.draw.palettes import EMPTY, FAINT, HAIRLINE, INK, PLAIN, QUIET
from suffice.draw.pictures import Drawable, resampling
from suffice.draw.sheets import GAP, NAME, Tile, color_bar, framed, tile_rows
from suffice.draw.svg import escaped
from suffice.evidence import Evidence
from suffice.perturb import enlarge
from suffice.report.names import figure_folder
from suffice.vision.provenance import as_json

MARGIN, BESIDE, SIDE = 28.0, 36.0, 196.0  # BESIDE: from the image to its maps
HEADING, BETWEEN = 24.0, 40.0  # of a class; from one class to the next
COLUMNS = 5
NO_CLASS = "the maps of these methods do not depend on the class"
SHARPNESS = 2  # pixels of an embedded picture for each unit of the drawing


@dataclass(frozen=True)
class ClassRow:
    """One row of the figure: a class, and the model's score of it.

    Attributes:
        maps: Name of each method → its map [h, w], high = important.
        notes: Name of a method → what to write below its map, such as its scores.
    """

    label: str
    confidence: float
    maps: Mapping[str, Tensor]
    notes: Mapping[str, str] = field(default_factory=dict)


def explanation_figure(
    pixels: Tensor,
    rows: Sequence[ClassRow],
    *,
    title: str = "",
    model: str = "",
    top: Sequence[tuple[str, float]] = (),
) -> str:
    """Draw one image with its maps, as a standalone SVG.

    To the left is the image with what the model says of it; to the right, for each class, its name and below it one
    map a method, in rows of five. A method whose map is the same for every class is drawn for the first one only.

    Args:
        pixels: What the model saw, [3, H, W] in [0, 1].
        rows: One for each class explained; all have the same methods.
        title: Name of the image.
        model: Name of the model.
        top: What the model says of the image: labels and scores, best first.

    Example:
        >>> rows = [ClassRow("cat", 0.9, {"gradient": torch.rand(7, 7)})]
        >>> explanation_figure(torch.rand(3, 32, 32), rows, title="cat.jpg").startswith("<svg")
        True
    """
    high = SIDE * pixels.shape[1] / pixels.shape[2]
    photo = as_image(pixels)
    columns = min(max(len(rows[0].maps), 1), COLUMNS)
    left = MARGIN + SIDE + BESIDE
    width = left + columns * (SIDE + GAP) - GAP + MARGIN
    body = MARGIN + 62
    shown = photo.resize(_pixels(high), resampling(photo))
    parts = [
        text(MARGIN, MARGIN + 14, shortened(title, 17, width - 2 * MARGIN), 17, font_weight="bold"),
        text(MARGIN, MARGIN + 33, shortened(model, 12, width - 2 * MARGIN), 12, QUIET),
        *framed(MARGIN, body + HEADING + NAME, SIDE, high, Tile(shown)),
        *_predictions(MARGIN, body + HEADING + NAME + high + 28, top),
    ]
    everywhere = _same_for_all(rows)
    y = body
    for number, row in enumerate(rows):
        if number:
            parts.append(tag("line", x1=left, y1=y - 14, x2=width - MARGIN, y2=y - 14, stroke=HAIRLINE))
        parts += _heading(left, y + 13, row, width - MARGIN - left)
        known = everywhere if number else set()
        if known == row.maps.keys() and not row.notes:
            parts.append(text(left, y + HEADING + 12, f"the same as above: {NO_CLASS}", 12, FAINT))
            y += HEADING + 16 + BETWEEN
            continue
        tiles = [_tile(row, name, photo, high, name in known) for name in row.maps]
        drawn, height = tile_rows(tiles, left, y + HEADING, side=SIDE, high=high, columns=columns)
        parts += drawn
        y += HEADING + height + BETWEEN
    foot = max(y - BETWEEN, body + HEADING + NAME + high + 28 + 26 * len(top)) + 40
    signed = any(bool((levels(m) < 0).any()) for row in rows for m in row.maps.values())
    parts.append(tag("line", x1=MARGIN, y1=foot - 22, x2=width - MARGIN, y2=foot - 22, stroke=HAIRLINE))
    parts += color_bar(MARGIN, foot, signed=signed, about="each map on its own scale")
    return document(width, foot + 18, *parts, title=title or "explanation")


def draw_evidence(
    evidence: Evidence,
    folder: str | Path,
    picture: Drawable | None = None,
    format: Format = "svg",
    about: Mapping[str, Any] | None = None,
    **drawn: Any,
) -> list[Path]:
    """Write the structured attention graph of an image (as picture, JSON, DOT) and a picture of every MSE (PNG).

    Args:
        evidence: Of one image.
        folder: Where to; each image has a folder of its own in it, see :func:`suffice.report.names.figure_folder`.
        picture: The image as the model saw it; default: the small copy that evidence keeps.
        format: Of the graph's picture: ``"svg"``, ``"png"`` or ``"pdf"``.
        about: What the evidence comes from, :attr:`suffice.EvidenceSet.about`, for ``graph.json`` and ``graph.svg``.
        **drawn: Choices of the graph's picture, such as ``layout="column"``, ``hide="fade"`` and ``numbers=False``.

    Returns:
        The files: ``graph.svg``, ``graph.json``, ``graph.dot``, ``mse-01.png`` and so on.
    """
    own = Path(folder) / figure_folder(evidence)
    own.mkdir(parents=True, exist_ok=True)
    for old in own.glob("mse-*.png"):  # of an earlier search, which may have found more
        old.unlink()
    graph, shown = evidence.graph(), evidence.picture if picture is None else picture
    origin = {} if about is None else {"about": dict(about)}
    files = [save_picture(graph.to_svg(shown, **drawn), own / f"graph.{format}", as_json(origin) if origin else "")]
    files += [graph.save(own / f"graph.{suffix}") for suffix in ("json", "dot")]
    if origin:
        whole = {**json.loads(files[1].read_text(encoding="utf-8")), **origin}
        files[1].write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for number, mse in enumerate(evidence.mses if shown is not None else (), start=1):
        files.append(own / f"mse-{number:02d}.png")
        region_picture(shown, evidence.grid, mse.cells).save(files[-1])
    return files


def _pixels(high: float) -> tuple[int, int]:
    return round(SIDE * SHARPNESS), round(high * SHARPNESS)


def _same_for_all(rows: Sequence[ClassRow]) -> set[str]:
    """Methods whose map is the same whichever class is asked about."""
    first, *others = rows
    return {name for name, m in first.maps.items() if others and all(torch.equal(m, row.maps[name]) for row in others)}


def _heading(x: float, y: float, row: ClassRow, width: float) -> list[str]:
    """Name and score of a class, above its maps."""
    label = tag("tspan", escaped(shortened(row.label, 14, width - 80)), font_weight="bold")
    score = tag("tspan", f"{row.confidence:.1%}", fill=QUIET, dx=10)
    return [tag("text", label, score, x=x, y=y, font_size=14, fill=INK)]


def _tile(row: ClassRow, name: str, photo: Image.Image, high: float, as_above: bool) -> Tile:
    lines = [row.notes[name]] if row.notes.get(name) else ()
    if as_above:
        return Tile(None, name, lines, "the same map as above: it does not depend on the class")
    return Tile(overlay(enlarge(row.maps[name][None].float(), _pixels(high)[::-1])[0], photo), name, lines)


def _predictions(x: float, y: float, top: Sequence[tuple[str, float]]) -> list[str]:
    """What the model says, as bars."""
    parts = []
    for number, (label, score) in enumerate(top):
        line = y + 26 * number
        parts.append(text(x, line - 5, shortened(label, 11.5, SIDE - 44), 11.5))
        parts.append(text(x + SIDE, line - 5, f"{score:.1%}", 11.5, QUIET, text_anchor="end"))
        parts.append(tag("rect", x=x, y=line, width=SIDE, height=3, rx=1.5, fill=EMPTY))
        share = min(max(score, 0.0), 1.0)
        parts.append(tag("rect", x=x, y=line, width=max(SIDE * share, 1.0), height=3, rx=1.5, fill=PLAIN))
    return parts
