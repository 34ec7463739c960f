"""Figures of one image: where each method says that the model looks, and what is enough for it to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.draw import as_image, data_uri, document, map_colors, overlay, region_picture, shortened, tag, text
from suffice.draw.overlays import levels
from suffice.draw.palettes import COOL, EMPTY, FAINT, HAIRLINE, PLAIN, QUIET, WARM
from suffice.draw.pictures import Drawable, resampling
from suffice.evidence import Evidence
from suffice.perturb import enlarge
from suffice.report.names import figure_folder

MARGIN, GAP, SIDE = 28.0, 16.0, 196.0
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
    methods = list(rows[0].maps)
    width = 2 * MARGIN + SIDE + (SIDE + GAP) * max(len(methods), 1)
    body = MARGIN + 66
    below = 17 if any(row.notes for row in rows) else 0
    row_height = high + 34 + below
    foot = body + max(row_height * len(rows), high + 26 + 22 * len(top)) + 18
    parts = [
        text(MARGIN, MARGIN + 14, shortened(title, 17, width - 2 * MARGIN), 17, font_weight="bold"),
        text(MARGIN, MARGIN + 33, shortened(model, 12, width - 2 * MARGIN), 12, QUIET),
        _picture(MARGIN, body, high, photo.resize(_pixels(high), resampling(photo))),
        *_predictions(MARGIN, body + high + 26, top),
    ]
    for column, name in enumerate(methods):
        x = MARGIN + (SIDE + GAP) * (column + 1)
        parts.append(text(x, body - 8, name, 12.5, font_weight="bold"))
        for number, row in enumerate(rows):
            y = body + row_height * number
            drawn = overlay(enlarge(row.maps[name][None].float(), _pixels(high)[::-1])[0], photo)
            parts.append(_picture(x, y, high, drawn))
            parts.append(text(x, y + high + 15, row.notes.get(name, ""), 11, QUIET))
            if column == 0:
                parts.append(text(x, y + high + 17 + below, f"{row.label}  {row.confidence:.1%}", 12.5))
    signed = any(bool((levels(m) < 0).any()) for row in rows for m in row.maps.values())
    parts += _color_bar(MARGIN, foot, width, signed)
    return document(width, foot + 40, *parts, title=title or "explanation")


def draw_evidence(evidence: Evidence, folder: str | Path, picture: Drawable | None = None) -> list[Path]:
    """Write the structured attention graph of an image (SVG, JSON, DOT) and a picture of every MSE (PNG).

    Args:
        evidence: Of one image.
        folder: Where to; each image has a folder of its own in it, see :func:`suffice.report.names.figure_folder`.
        picture: The image as the model saw it; default: the small copy that evidence keeps.

    Returns:
        The files: ``graph.svg``, ``graph.json``, ``graph.dot``, ``mse-01.png`` and so on.
    """
    own = Path(folder) / figure_folder(evidence)
    own.mkdir(parents=True, exist_ok=True)
    for old in own.glob("mse-*.png"):  # of an earlier search, which may have found more
        old.unlink()
    graph, shown = evidence.graph(), evidence.picture if picture is None else picture
    texts = {"svg": graph.to_svg(shown), "json": graph.to_json(), "dot": graph.to_dot()}
    files = []
    for suffix, content in texts.items():
        files.append(own / f"graph.{suffix}")
        files[-1].write_text(content, encoding="utf-8")
    for number, mse in enumerate(evidence.mses if shown is not None else (), start=1):
        files.append(own / f"mse-{number:02d}.png")
        region_picture(shown, evidence.grid, mse.cells).save(files[-1])
    return files


def _pixels(high: float) -> tuple[int, int]:
    return round(SIDE * SHARPNESS), round(high * SHARPNESS)


def _picture(x: float, y: float, high: float, picture: Image.Image) -> str:
    frame = {"x": x, "y": y, "width": SIDE, "height": high}
    image = tag("image", href=data_uri(picture), preserveAspectRatio="none", **frame)
    return image + tag("rect", fill="none", stroke=HAIRLINE, **frame)


def _predictions(x: float, y: float, top: Sequence[tuple[str, float]]) -> list[str]:
    """What the model says, as bars."""
    parts = []
    for number, (label, score) in enumerate(top):
        line = y + 22 * number
        parts.append(text(x, line - 5, shortened(label, 11.5, SIDE - 44), 11.5))
        parts.append(text(x + SIDE, line - 5, f"{score:.1%}", 11.5, QUIET, text_anchor="end"))
        parts.append(tag("rect", x=x, y=line, width=SIDE, height=3, rx=1.5, fill=EMPTY))
        share = min(max(score, 0.0), 1.0)
        parts.append(tag("rect", x=x, y=line, width=max(SIDE * share, 1.0), height=3, rx=1.5, fill=PLAIN))
    return parts


def _color_bar(x: float, y: float, width: float, signed: bool) -> list[str]:
    strip = map_colors(torch.linspace(0, 1, 128)[None].expand(4, -1), WARM)
    ends = ["low", "high"]
    if signed:
        strip = np.concatenate([map_colors(torch.linspace(1, 0, 128)[None].expand(4, -1), COOL), strip], axis=1)
        ends = ["against", "for"]
    bar = {"x": x + 50, "y": y + 8, "width": 150, "height": 8, "preserveAspectRatio": "none"}
    return [
        tag("line", x1=x, y1=y - 6, x2=width - x, y2=y - 6, stroke=HAIRLINE),
        text(x, y + 16, ends[0], 11, QUIET),
        tag("image", href=data_uri(Image.fromarray(strip)), **bar),
        text(x + 208, y + 16, ends[1], 11, QUIET),
        text(x + 250, y + 16, "each map on its own scale", 11, FAINT),
    ]
