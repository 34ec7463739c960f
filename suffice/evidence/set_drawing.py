"""Evidence of many images as a table to look at: each image, its class, and its MSEs as thumbnails."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from suffice.draw.palettes import FAINT, HAIRLINE, INK
from suffice.draw.pictures import as_image
from suffice.draw.svg import SANS, escaped, number, tag, text
from suffice.draw.thumbnails import Thumbnails
from suffice.draw.words import counted, grouped, percent, printable

if TYPE_CHECKING:
    from suffice.evidence.result import Evidence, EvidenceSet

ROWS, MSES = 20, 8  # most that are drawn
SIDE, GAP, BELOW = 64.0, 8.0, 16.0
CELL = "padding:6px 14px 6px 0;text-align:left;vertical-align:top"


def to_html(evidence: EvidenceSet) -> str:
    """The first images as a table of HTML; what is left out is counted."""
    rows = [_row(e) for e in evidence[:ROWS]]
    heads = "".join(f'<th style="{CELL};font-weight:600">{head}</th>' for head in ("image", "MSEs, ratio of each"))
    left = len(evidence) - len(rows)
    caption = f"{printable(evidence.model)}: {counted(len(evidence), 'image')}"
    more = f'<div style="color:{FAINT}">+{counted(left, "more image")}</div>' if left > 0 else ""
    return (
        f'<div style="font:13px {escape(SANS)};color:{INK};background:#fff;padding:8px">'
        f'<div style="font-weight:600">{escape(caption)}</div>'
        f'<table style="border-collapse:collapse;margin:4px 0"><tr>{heads}</tr>{"".join(rows)}</table>{more}</div>'
    )


def _row(evidence: Evidence) -> str:
    lowest, count = list(evidence.subexplanations().items())[-1]
    lines = [
        (INK, evidence.label),
        (FAINT, f"{percent(evidence.confidence)} confidence"),
        (FAINT, evidence.name),
        (FAINT, f"{counted(len(evidence.mses), 'MSE')}, {counted(count, 'sub-explanation')} ≥ {percent(lowest)}"),
    ]
    words = "".join(f'<div style="color:{color}">{escape(printable(line))}</div>' for color, line in lines)
    style = f"{CELL};border-top:1px solid {HAIRLINE}"
    return f'<tr><td style="{style}">{words}</td><td style="{style}">{_strip(evidence)}</td></tr>'


def _strip(evidence: Evidence) -> str:
    """The whole picture, then MSEs in order of discovery, with their ratios below."""
    photo = None if evidence.picture is None else as_image(evidence.picture)
    thumbs = Thumbnails(evidence.grid.side, photo, key=f"{evidence.name}\n{evidence.formula()}")
    high = SIDE * thumbs.aspect
    shown = [(tuple(range(evidence.grid.cells)), "whole", "the whole image")]
    for mse in evidence.mses[:MSES]:
        cells = " ∧ ".join(f"P{cell}" for cell in mse.cells) or "no cells"
        shown.append((mse.cells, percent(mse.ratio), f"{cells}: ratio {mse.ratio:.3f}"))
    parts = []
    for column, (kept, below, about) in enumerate(shown):
        x = 1 + column * (SIDE + GAP)
        label = text(x + SIDE / 2, high + 13, below, 10.5, FAINT, text_anchor="middle")
        parts.append(tag("g", tag("title", escaped(about)), thumbs.region(x, 1, SIDE, kept), label))
    width = len(shown) * (SIDE + GAP) + 2
    if (left := len(evidence.mses) - MSES) > 0:
        parts.append(text(width, high / 2 + 4, f"+{grouped(left)} more", 11, FAINT))
        width += 56
    size = {"width": width, "height": high + BELOW + 2, "viewBox": f"0 0 {number(width)} {number(high + BELOW + 2)}"}
    return tag("svg", thumbs.definitions(), *parts, xmlns="http://www.w3.org/2000/svg", font_family=SANS, **size)
