"""The structured attention graph as a standalone SVG picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from torch import Tensor

from suffice.draw.pictures import Drawable, as_image
from suffice.draw.svg import document
from suffice.draw.thumbnails import Hide, Thumbnails, hidden_picture
from suffice.errors import OptionError
from suffice.evidence.graph.layouts import COLUMN, PAGE, SLIDE, Layout, draw_column, draw_page, draw_slide
from suffice.evidence.graph.trim import trimmed

if TYPE_CHECKING:
    from suffice.evidence.graph.graph import Graph
    from suffice.evidence.result import Evidence

Form = Literal["page", "column", "slide"]
LAYOUTS: dict[str, Layout] = {"page": PAGE, "column": COLUMN, "slide": SLIDE}
DRAWERS = {"page": draw_page, "column": draw_column, "slide": draw_slide}


def to_svg(
    graph: Graph,
    picture: Drawable | Literal[False] | None = None,
    baseline: Drawable | str | None = None,
    hide: Hide | None = None,
    *,
    layout: Form = "page",
    numbers: bool | None = None,
) -> str:
    """Draw a graph as one SVG document without references to anything outside itself; pictures are embedded once.

    Regions are thumbnails, one row a size. Around them is what the picture is about, why the search stopped, what the
    marks mean (those that appear, and no others), and how it was made.

    Args:
        graph: The graph; the same graph and picture give the same text.
        picture: What the model saw, to the edges of the grid: a PIL image, or a tensor [3, H, W] in [0, 1]. Default:
            the small picture that evidence keeps. False, and evidence without a picture, draw cells as plain squares.
        baseline: What the model was shown in hidden cells: a picture, or the name of a baseline, which makes it of the
            picture drawn. Default: the one of the search, where it has a name or is one image.
        hide: What hidden cells show, with a picture: ``"dim"`` the baseline, dimmed; ``"baseline"`` the baseline as it
            is; ``"fade"`` the picture itself, faded. Default: ``"dim"`` where the baseline is known, else ``"fade"``.
            The last line of the drawing says which.
        layout: ``"page"``; ``"column"``, small, for one column of a paper (3.3 inches); ``"slide"``, 16:9, large type.
            The last two draw fewer regions, and count the others.
        numbers: Whether cells are numbered, and the formula is there. Default: on a page, and not elsewhere.
    """
    if layout not in LAYOUTS:
        raise OptionError(f"layout={layout!r}; it can be {', '.join(map(repr, LAYOUTS))}.")
    if picture is None:
        picture = graph.evidence.picture
    photo = None if picture is None or picture is False else as_image(picture)
    if photo is None and hide is not None:
        raise OptionError(f"hide={hide!r} needs a picture; write to_svg(picture, …), or leave hide away.")
    baseline = known_baseline(graph.evidence) if baseline is None else baseline
    rest = None if photo is None else hidden_picture(photo, baseline, hide=hide)
    shown: Hide | None = None if photo is None else hide or ("dim" if rest else "fade")

    form = LAYOUTS[layout]
    drawn = graph if form.trim is None else trimmed(graph, *form.trim)
    key = f"{layout}\n{numbers}\n{graph.to_json()}"
    thumbs = Thumbnails(graph.evidence.grid.side, photo, rest, key=key, weight=form.weight)
    width, height, body = DRAWERS[layout](drawn, thumbs, shown, form.numbers if numbers is None else numbers)
    about, formula = f"Structured attention graph of {graph.title}", graph.evidence.formula()
    return document(width, height, body, title=about, description=formula, definitions=thumbs.definitions())


def known_baseline(evidence: Evidence) -> Drawable | str | None:
    """The baseline of the search, where it can be shown: functions and images of other pictures cannot."""
    baseline = evidence.settings.baseline
    if isinstance(baseline, str):
        return None if baseline == "custom" else baseline
    return baseline if isinstance(baseline, Tensor) and baseline.dim() == 3 else None
