"""Evidence of many images as a table to look at: each image, what was found and why no more, and MSEs as thumbnails."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import TYPE_CHECKING

from suffice.draw.palettes import FAINT, HAIRLINE, INK
from suffice.draw.pictures import as_image
from suffice.draw.svg import SANS, escaped, number, tag, text
from suffice.draw.thumbnails import Thumbnails, hidden_picture
from suffice.draw.words import counted, grouped, percent, printable
from suffice.evidence.graph.drawing import known_baseline
from suffice.evidence.graph.words import about_mse
from suffice.evidence.telling import most_telling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.evidence.result import MSE, Evidence, EvidenceSet

ROWS, MSES = 20, 8  # most that are drawn
SIDE, GAP, EDGE, BELOW = 64.0, 13.0, 4.0, 16.0
HEADS = ("image", "MSEs that tell most, ratio of each")
CELL = "padding:6px 14px 6px 0;text-align:left;vertical-align:top"


def to_html(evidence: EvidenceSet) -> str:
    """The first images as a table of HTML; what is left out is counted."""
    rows = [_row(e) for e in evidence[:ROWS]]
    heads = "".join(f'<th style="{CELL};font-weight:600">{head}</th>' for head in HEADS)
    left = len(evidence) - len(rows)
    caption = f"{printable(evidence.model)}: {counted(len(evidence), 'image')}"
    if any(not mse.certified for e in evidence[:ROWS] for mse in e.mses):
        caption += "; dashed frames: of these MSEs it is only known that no single cell can go"
    more = f'<div style="color:{FAINT}">+{counted(left, "more image")}</div>' if left > 0 else ""
    return (
        f'<div style="font:13px {escape(SANS)};color:{INK};background:#fff;padding:8px">'
        f'<div style="font-weight:600">{escape(caption)}</div>'
        '<table style="border-collapse:collapse;font:inherit;margin:4px 0">'
        f"<tr>{heads}</tr>{''.join(rows)}</table>{more}</div>"
    )


def _row(evidence: Evidence) -> str:
    lines = [(INK, evidence.label)] + [(FAINT, fact) for fact in _facts(evidence)]
    words = "".join(f'<div style="color:{color}">{escape(printable(line))}</div>' for color, line in lines)
    style = f"{CELL};border-top:1px solid {HAIRLINE}"
    return (
        f'<tr><td style="{style};max-width:24em;overflow-wrap:anywhere">{words}</td>'
        f'<td style="{style}">{_strip(evidence)}</td></tr>'
    )


def _facts(evidence: Evidence) -> list[str]:
    """What there is to say of an image, a line each; what was not asked for has no line."""
    lowest, count = list(evidence.subexplanations().items())[-1]
    stable, necessary, contrastive = evidence.stability, evidence.necessary, evidence.contrastive
    of = f" of {counted(len(necessary[0]), 'cell')}" if necessary else ""  # all of them have as many
    facts = [
        f"{percent(evidence.confidence)} confidence"
        + (f", baseline alone {percent(evidence.baseline_ratio)} of it" if isfinite(evidence.baseline_ratio) else ""),
        evidence.name,
        f"{counted(len(evidence.mses), 'MSE')}, {counted(count, 'sub-explanation')} ≥ {percent(lowest)}",
        evidence.why,
        "" if stable is None else f"stable under small changes: {percent(stable)}",
        "" if contrastive is None else f"{counted(len(contrastive), 'contrastive set')}",
        evidence.why_not_necessary or ("" if necessary is None else counted(len(necessary), "necessary set") + of),
        *(
            f"refined to {side} × {side}: {percent(_area(mses, side))} of the image each"
            for side, mses in evidence.refined.items()
        ),
    ]
    return [fact for fact in facts if fact]


def _area(mses: Sequence[MSE], side: int) -> float:
    """The mean share of the image that sets have, on a grid of so many cells a side."""
    return sum(map(len, mses)) / max(len(mses), 1) / side**2


def _strip(evidence: Evidence) -> str:
    """The whole picture, then the MSEs that tell most, with their ratios below."""
    photo = None if evidence.picture is None else as_image(evidence.picture)
    rest = None if photo is None else hidden_picture(photo, known_baseline(evidence))
    thumbs = Thumbnails(evidence.grid.side, photo, rest, key=f"{evidence.name}\n{evidence.formula()}")
    high = SIDE * thumbs.aspect
    # Those that differ come first, then the rest, also the smallest first.
    different = most_telling(evidence.mses, overlap=1)
    mses = different + [mse for mse in most_telling(evidence.mses) if mse not in different]
    number_of = {mse.cells: number for number, mse in enumerate(evidence.mses)}
    whole: tuple[int, ...] = tuple(range(evidence.grid.cells))
    shown = [(whole, "whole", "the whole image", False, False)]
    for mse in mses[:MSES]:
        cells = " ∧ ".join(f"P{cell}" for cell in mse.cells) or "no cells"
        about = f"{cells}: ratio {mse.ratio:.3f}\n{about_mse(mse, number_of[mse.cells])}"
        shown.append((mse.cells, percent(mse.ratio), about, True, not mse.certified))
    parts = []
    for column, (kept, below, about, ring, dashed) in enumerate(shown):
        x = EDGE + column * (SIDE + GAP)
        label = text(x + SIDE / 2, EDGE + high + 15, below, 10.5, FAINT, text_anchor="middle")
        drawn = thumbs.region(x, EDGE, SIDE, kept, ring=ring, dashed=dashed)
        parts.append(tag("g", tag("title", escaped(about)), drawn, label))
    width = len(shown) * (SIDE + GAP) + EDGE
    if (left := len(mses) - MSES) > 0:
        parts.append(text(width, EDGE + high / 2 + 4, f"+{grouped(left)} more", 11, FAINT))
        width += 56
    height = 2 * EDGE + high + BELOW
    size = {"width": width, "height": height, "viewBox": f"0 0 {number(width)} {number(height)}"}
    return tag("svg", thumbs.definitions(), *parts, xmlns="http://www.w3.org/2000/svg", font_family=SANS, **size)
