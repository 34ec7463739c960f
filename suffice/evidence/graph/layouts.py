"""Three forms of a graph's picture: a page, one column of a paper, and a slide."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from suffice.draw.palettes import FAINT, HAIRLINE, INK, QUIET
from suffice.draw.svg import SANS, escaped, number, tag, text
from suffice.draw.thumbnails import Hide, Thumbnails
from suffice.draw.words import percent, shortened, wrap
from suffice.evidence.graph.legend import example_cell, flowing, listed
from suffice.evidence.graph.rows import Look, Rows
from suffice.evidence.graph.words import facts, formula_lines, notice, summary

if TYPE_CHECKING:
    from suffice.evidence.graph.graph import Graph

Drawn = tuple[float, float, str]  # width, height, markup


class Layout(NamedTuple):
    """What a form of the picture is like."""

    look: Look
    trim: tuple[int, int] | None  # most regions of a size, most sizes
    numbers: bool  # whether cells are numbered by default
    weight: float = 1.0  # of lines


PAGE = Layout(Look(1.0, labels=92, between=44, least=50, most=132, spare=0.5, faint=FAINT), None, numbers=True)
COLUMN = Layout(Look(0.9, labels=46, between=20, least=36, most=84, spare=0.25, faint=QUIET), (5, 4), numbers=False)
SLIDE = Layout(
    Look(1.4, labels=112, between=26, least=60, most=190, spare=0.5, faint=QUIET), (6, 3), numbers=False, weight=1.4
)

SEPARATOR = "  ·  "
NUMBERED_IN, AXIS = 17.0, 22.0  # cells from so many pixels on are numbered inside, others along the sides
# Converters to PNG and PDF take one font for a whole line, and any that has all its signs, often one with serifs.
FORMULA = f"'DejaVu Sans', {SANS}"
LINE = 880.0  # longer lines are hard to read
REGULAR = 1.1  # widths of words are estimated for bold type; so much more has room in a line of regular type


def draw_page(graph: Graph, thumbs: Thumbnails, hide: Hide | None, numbers: bool) -> Drawn:
    """Photo, words and legend above, rows below them, as wide as they need."""
    margin, gap, legend_width = 32.0, 34.0, 252.0
    rows = Rows(graph, thumbs, PAGE.look, 1240 - 2 * margin)
    width = max(960.0, 2 * margin + rows.width)
    photo_width = 176 / max(thumbs.aspect, 1.0)
    axis = AXIS if numbers and not _numbered_inside(thumbs, photo_width) else 0.0
    photo, numbered = _photo(graph, thumbs, margin + axis, margin + axis, photo_width, numbers)
    left = margin + axis + photo_width + gap
    words, below = _page_words(graph, left, margin, min(width - left - gap - legend_width - margin, LINE), numbers)
    legend, lower = listed(graph, thumbs.prefix, width - margin - legend_width, margin, legend_width, numbered)
    y = max(below, lower, margin + axis + photo_width * thumbs.aspect) + 26
    parts = [photo, words, legend, _rule(margin, y, width - margin)]
    y += 20
    if said := notice(graph):
        words, y = _notice(said, width / 2, y + 30, 17)
        parts.append(words)
        y += 34
    if graph.nodes:
        parts.append(rows.draw(margin, (width - rows.width) / 2, y))
        y += rows.height + 22
    parts.append(_rule(margin, y, width - margin))
    foot, y = _paragraph(facts(graph, hide), margin, y + 20, 10.5, width - 2 * margin, FAINT, SEPARATOR)
    return width, y + 20, "\n".join([*parts, foot])


def draw_column(graph: Graph, thumbs: Thumbnails, hide: Hide | None, numbers: bool) -> Drawn:
    """One column of a paper, 3.3 inches at 96 pixels an inch: a small photo and few words, rows, legend."""
    width, margin = 320.0, 8.0
    room = width - 2 * margin
    photo_width = (126 if numbers else 96) / max(thumbs.aspect, 1.0)
    axis = 17.0 if numbers and not _numbered_inside(thumbs, photo_width) else 0.0
    photo, numbered = _photo(graph, thumbs, margin + axis, margin + axis, photo_width, numbers)
    left = margin + axis + photo_width + 12
    evidence, said = graph.evidence, notice(graph)
    y = margin
    parts = [photo]
    for words, size, color, weight, lines in (
        (evidence.label, 13.5, INK, 600, 2),
        (f"{percent(evidence.confidence)} confidence", 10.5, QUIET, None, 1),
        (summary(graph, short=True), 10.5, INK, 600, 2),
        ("" if said else evidence.why, 9.5, QUIET, None, 4),
        (evidence.name, 9.5, QUIET, None, 1),
    ):
        block, y = _block(words, left, y, size, width - margin - left, color, lines, weight)
        parts.append(block)
    y = max(y, margin + axis + photo_width * thumbs.aspect) + 10
    if numbers and not said:
        formula, y = _formula(graph, margin, y + 10, 10.5, room)
        parts.append(formula)
        y += 8
    parts.append(_rule(margin, y, width - margin))
    y += 8
    if said:
        words, y = _notice(said, width / 2, y + 16, 12.5, room)
        parts.append(words)
        y += 14
    if graph.nodes:
        rows = Rows(graph, thumbs, COLUMN.look, room)
        parts.append(rows.draw(margin, (width - rows.width) / 2, y))
        y += rows.height + 9
        parts.append(_rule(margin, y, width - margin))
        legend, y = flowing(graph, thumbs.prefix, margin, y + 8, room, 0.86, numbered)
        parts.append(legend)
    foot, y = _paragraph(facts(graph, hide, short=True), margin, y + 13, 8.5, room, QUIET, SEPARATOR)
    return width, y + 6, "\n".join([*parts, foot])


def draw_slide(graph: Graph, thumbs: Thumbnails, hide: Hide | None, numbers: bool) -> Drawn:
    """Sixteen to nine: photo and words at the left, rows at the right, legend below."""
    width, height, margin, panel = 1280.0, 720.0, 44.0, 320.0
    evidence, said = graph.evidence, notice(graph)
    # From the bottom up: what is there once is as high as it must be, and the rows have the rest.
    room = width - 2 * margin
    foot_lines = _lines(facts(graph, hide, short=True), 13, room, SEPARATOR)
    legend, legend_end = flowing(graph, thumbs.prefix, margin, 0.0, room, 1.3, "")
    top_of_foot = height - 26 - 18 * (len(foot_lines) - 1)
    top_of_legend = top_of_foot - 26 - legend_end
    rule = top_of_legend - 12

    parts = []
    label, y = _block(evidence.label, margin, margin - 4, 32, panel, INK, 2, 600)
    parts.append(label)
    line, y = _block(f"{percent(evidence.confidence)} confidence", margin, y, 20, panel, INK, 1)
    parts.append(line)
    photo_width = min(panel, 300 / thumbs.aspect)
    photo, numbered = _photo(graph, thumbs, margin, y + 12, photo_width, numbers)
    if numbers:
        legend, _ = flowing(graph, thumbs.prefix, margin, 0.0, room, 1.3, numbered)
    parts.append(photo)
    y += 12 + photo_width * thumbs.aspect + 12
    for words, size, color, weight, lines in (
        (summary(graph, short=True), 20, INK, 600, 1),
        ("" if said else evidence.why, 16, QUIET, None, 4),
        (evidence.name, 14, QUIET, None, 1),
    ):
        block, y = _block(words, margin, y, size, panel, color, lines, weight)
        parts.append(block)
    if numbers and not said:
        parts.append(_formula(graph, margin, y + 22, 15, panel)[0])

    left, right = margin + panel + 44, width - margin
    top, bottom = margin - 14, rule - 18
    if said:
        words, top = _notice(said, (left + right) / 2, margin + 30 if graph.nodes else 0.45 * rule, 28, right - left)
        parts.append(words)
        top += 30
    if graph.nodes:
        rows = Rows(graph, thumbs, SLIDE.look, right - left, bottom - top)
        free, above = (right - left - rows.width) / 2, max(0.0, (bottom - top - rows.height) / 2)
        parts.append(rows.draw(left, left + free, top + above))
    parts.append(_rule(margin, rule, width - margin))
    parts.append(tag("g", legend, transform=f"translate(0 {number(top_of_legend)})") if legend else "")
    for step, line in enumerate(foot_lines):
        parts.append(text(margin, top_of_foot + 18 * step, line, 13, QUIET))
    return width, height, "\n".join(parts)


def _page_words(graph: Graph, x: float, top: float, room: float, numbers: bool) -> tuple[str, float]:
    """Class, confidence, image; what was found and why no more; the formula."""
    evidence = graph.evidence
    parts = [
        text(x, top + 18, shortened(evidence.label, 21, room), 21, font_weight=600),
        text(x, top + 39, f"{percent(evidence.confidence)} confidence on the whole image", 12.5, QUIET),
        text(x, top + 57, shortened(evidence.name, 12.5, room), 12.5, QUIET),
        text(x, top + 90, summary(graph), 12.5, font_weight=600),
    ]
    y = top + 90
    if not notice(graph):
        why, y = _paragraph(evidence.why.split(" "), x, y + 18, 12, room, QUIET)
        parts.append(why)
        if numbers:
            formula, y = _formula(graph, x, y + 26, 13, room)
            parts.append(formula)
    return "".join(parts), y + 6


def _formula(graph: Graph, x: float, y: float, size: float, room: float) -> tuple[str, float]:
    """The formula from a first base line on, what is not drawn in gray; returns markup and the last base line."""
    parts, step = [], 1.5 * size
    for line in formula_lines(graph, size, room):
        runs = [tag("tspan", escaped(word + " "), fill=INK if drawn else FAINT) for word, drawn in line]
        parts.append(tag("text", *runs, x=x, y=y, font_size=size, font_family=FORMULA))
        y += step
    return "".join(parts), y - step


def _block(
    words: str, x: float, top: float, size: float, room: float, color: str, most: int, weight: int | None = None
) -> tuple[str, float]:
    """Words in a few lines, the last one shortened where it must be; returns markup and where it ends."""
    lines = _lines(words.split(" "), size, room, " ") if words else []
    if len(lines) > most:
        lines[most - 1 :] = [" ".join(lines[most - 1 :])]
    lines = [shortened(line, size, room) for line in lines]
    parts = [
        text(x, top + size + 1.3 * size * i, line, size, color, font_weight=weight) for i, line in enumerate(lines)
    ]
    return "".join(parts), top + 1.3 * size * len(lines) + 0.12 * size


def _paragraph(
    words: list[str], x: float, y: float, size: float, room: float, color: str, separator: str = " "
) -> tuple[str, float]:
    """Words from a first base line on; returns markup and the last base line."""
    lines = _lines(words, size, REGULAR * room, separator)
    parts = [text(x, y + 1.4 * size * i, line, size, color) for i, line in enumerate(lines)]
    return "".join(parts), y + 1.4 * size * (len(lines) - 1)


def _lines(words: list[str], size: float, room: float, separator: str) -> list[str]:
    broken = wrap([word + separator.rstrip() for word in words], size, room)
    return [separator.join(words[i] for i in line) for line in broken]


def _notice(said: list[str], x: float, y: float, size: float, room: float = LINE) -> tuple[str, float]:
    """A headline and what explains it, centered, from a first base line on; returns markup and the last base line."""
    parts = [text(x, y, said[0], size, text_anchor="middle", font_weight=600)]
    y += 0.3 * size
    for line in said[1:]:
        for part in _lines(line.split(" "), 0.76 * size, REGULAR * room, " "):
            y += 1.2 * size
            parts.append(text(x, y, part, 0.76 * size, QUIET, text_anchor="middle"))
    return "".join(parts), y


def _rule(x0: float, y: float, x1: float) -> str:
    return tag("path", d=f"M{number(x0)} {number(y)}H{number(x1)}", stroke=HAIRLINE)


def _numbered_inside(thumbs: Thumbnails, width: float) -> bool:
    """Whether cells of a picture of some width have room for their numbers."""
    return width / thumbs.side * min(thumbs.aspect, 1.0) >= NUMBERED_IN


def _photo(graph: Graph, thumbs: Thumbnails, x: float, y: float, width: float, numbers: bool) -> tuple[str, str]:
    """The whole picture, its cells numbered inside or along its sides; returns how to read the numbers, too."""
    side, cell = thumbs.side, example_cell(graph)
    whole = thumbs.region(x, y, width, () if thumbs.plain else tuple(range(side**2)))
    if not numbers:
        return whole, ""
    step, down = width / side, width / side * thumbs.aspect
    if not _numbered_inside(thumbs, width):
        return whole + _axes(x, y, step, down, side), f"cell in row {cell // side * side}, column +{cell % side}"
    size, name = min(13.0, 0.36 * step), f"{thumbs.prefix}-numbers"
    places = [(x + step * (i % side + 0.5), y + down * (i // side + 0.5) + 0.36 * size) for i in range(side**2)]
    marks = [tag("text", str(i), x=left, y=base) for i, (left, base) in enumerate(places)]
    defined = tag("defs", tag("g", *marks, id=name, font_size=size, text_anchor="middle"))
    # Light on a dark line, to be read on any photograph; what goes around a letter has to be drawn before it.
    halo = tag("use", href=f"#{name}", stroke=INK, stroke_width=2, stroke_opacity=0.5, stroke_linejoin="round")
    shown = tag("use", href=f"#{name}", fill=QUIET if thumbs.plain else "#fff")
    return whole + defined + ("" if thumbs.plain else halo) + shown, "cell of that number"


def _axes(x: float, y: float, step: float, down: float, side: int) -> str:
    """Numbers along the sides of a picture: P17 is row 14, column +3."""
    size = min(8.5, max(step * 0.62, 6.5))
    # On fine grids only every second or third line has its number, so that they do not touch.
    columns = [
        text(x + step * (i + 0.5), y - 6, f"+{i}" if i else "0", size, FAINT, text_anchor="middle")
        for i in range(0, side, ceil(2.2 * size / step))
    ]
    rows = [
        text(x - 6, y + down * (i + 0.5) + size * 0.36, str(i * side), size, FAINT, text_anchor="end")
        for i in range(0, side, ceil(1.2 * size / down))
    ]
    return "".join(columns + rows)
