"""The bench as a picture to keep: what was shown, and what each model made of it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from suffice.draw.files import save_picture
from suffice.draw.palettes import EMPTY, FAINT, HAIRLINE, MARK, QUIET, ramp_color
from suffice.draw.pictures import as_image
from suffice.draw.svg import document, number, tag, text
from suffice.draw.thumbnails import Thumbnails, hidden_picture
from suffice.draw.words import percent, shortened
from suffice.explorer.reading import Question

PHOTO, MARGIN, GAP, ROW = 300.0, 28.0, 32.0, 34.0
NAMES, BARS, NUMBERS = 150.0, 240.0, 56.0


def bench_card(
    pixels: Tensor, hidden: Tensor, asked: Question, rows: Sequence[dict[str, Any]], name: str, enough: float = 0.9
) -> str:
    """One SVG document: the region at the left, a bar for each model at the right.

    Args:
        pixels: What a model saw, [3, H, W] in [0, 1].
        hidden: What it saw where cells were hidden, likewise.
        asked: What was shown of it.
        rows: For each model ``model``, ``label``, ``ratio`` and ``confidence``.
        name: Of the image.
        enough: Ratio at which a line is drawn.
    """
    photo = as_image(pixels)
    thumbs = Thumbnails(asked.grid, photo, hidden_picture(photo, hidden, hide="dim"), key=str(asked))
    left = MARGIN + PHOTO + GAP
    bars, right = left + NAMES, left + NAMES + BARS
    width = right + NUMBERS + MARGIN
    top = MARGIN + 46
    height = max(MARGIN + PHOTO * thumbs.aspect, top + ROW * len(rows)) + 44
    share = len(asked.cells) / asked.grid**2
    parts = [
        thumbs.region(MARGIN, MARGIN, PHOTO, asked.cells),
        text(left, MARGIN + 14, shortened(name, 15, width - left - MARGIN), 15, font_weight=600),
        text(
            left, MARGIN + 33, f"{len(asked.cells)} of {asked.grid**2} cells, {percent(share)} of the image", 12, QUIET
        ),
    ]
    for i, row in enumerate(rows):
        y, ratio = top + ROW * i, row["ratio"]
        bar = {"x": bars, "y": y + 8, "height": 12, "rx": 2}
        parts += [
            text(left, y + 14, shortened(row["model"], 12, NAMES - 12), 12),
            text(left, y + 27, shortened(row["label"], 10, NAMES - 12), 10, FAINT),
            tag("rect", **bar, width=BARS, fill=EMPTY),
            tag("rect", **bar, width=max(2.0, BARS * min(ratio, 1.0)), fill=ramp_color(ratio)),
            text(right + 8, y + 18, percent(ratio), 12, font_weight=600 if ratio >= enough else None),
        ]
    line = bars + BARS * enough
    parts.append(
        tag("path", d=f"M{number(line)} {number(top)}V{number(top + ROW * len(rows))}", stroke=MARK, stroke_width=1.2)
    )
    parts.append(tag("path", d=f"M{number(MARGIN)} {number(height - 30)}H{number(width - MARGIN)}", stroke=HAIRLINE))
    foot = (
        f"Ratio: confidence on what is shown / on the whole image. Hidden: {asked.baseline}. Line: {percent(enough)}."
    )
    parts.append(text(MARGIN, height - 13, foot, 10.5, FAINT))
    return document(width, height, *parts, title=f"What is enough: {name}")


def card_png(svg: str) -> bytes:
    """The same as the bytes of a PNG file; needs vl-convert-python."""
    with tempfile.TemporaryDirectory() as folder:
        return save_picture(svg, Path(folder) / "card.png").read_bytes()
