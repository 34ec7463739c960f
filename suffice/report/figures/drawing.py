"""A figure made from data: a chart or a drawing, with the numbers behind it and where they come from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.draw import save_picture, show
from suffice.draw.svg import escaped
from suffice.draw.theme import chart_config, darkened
from suffice.errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow

WIDTH = 700  # of a chart in a file; on a page it is as wide as there is room
VEGALITE = "application/vnd.vegalite.v5+json"
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


@dataclass(frozen=True)
class Behind:
    """The rows of a study behind a mark of a chart, for pages that lead from the one to the other.

    Attributes:
        table: Its name.
        columns: From a field of the mark to the column that it is compared with, and how, as in ``{"size": ("sizes",
            "has")}``.
        always: Columns that have one value for all marks.
    """

    table: str
    columns: Mapping[str, tuple[str, str]]
    always: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure made from data.

    Attributes:
        name: Of the file and of the place on a page, such as ``"mse-sizes"``.
        title: What it shows.
        reading: How to read it, in a sentence or two.
        alt: What it shows, with numbers, for those who cannot see it.
        spec: A Vega-Lite specification with its data inline and without ``config``, as wide as its place; or
        svg: a drawing by :mod:`suffice.draw`.
        table: The numbers behind it.
        source: Measurements, protocol and settings, and the functions that made what is no SQL.
        query: SQL that gives the numbers, or what they were made from; DuckDB runs it in the folder of the study.
        behind: The rows behind its marks.
    """

    name: str
    title: str
    reading: str
    alt: str
    spec: Mapping[str, Any] | None = None
    svg: str | None = None
    table: pyarrow.Table | None = None
    source: str = ""
    query: str = ""
    behind: Behind | None = None

    def themed(self, dark: bool = False, width: int | None = None) -> dict[str, Any]:
        """The specification with the look of light or dark pages; of a fixed width, where one is given."""
        spec = deepcopy(dict(self.spec or {}))
        spec["config"] = chart_config(dark)
        if width is not None:
            _fix_width(spec, width)
        return spec

    def to_svg(self, dark: bool = False, width: int = WIDTH) -> str:
        """The figure as one SVG document without references to anything outside itself.

        Args:
            dark: For dark pages.
            width: Of a chart in pixels; drawings have their own.
        """
        if self.svg is not None:
            return darkened(self.svg) if dark else self.svg
        markup: str = _converter().vegalite_to_svg(self.themed(dark, width))
        start = markup.index(">", markup.index("<svg")) + 1
        about = f"<title>{escaped(self.title)}</title><desc>{escaped(self.alt)}</desc>"
        return markup[: start - 1] + ' role="img">' + about + markup[start:]

    def save(self, path: str | Path, dark: bool = False, width: int = WIDTH) -> Path:
        """Write it to a file, as SVG, PNG or PDF by its ending; an SVG says in its metadata where it comes from."""
        return save_picture(self.to_svg(dark, width), path, "\n".join(filter(None, (self.source, self.query))))

    def to_html(self, dark: bool = False) -> str:
        """The figure with its title and how to read it, as a part of a page."""
        return (
            f'<figure id="{escape(self.name)}"><figcaption><strong>{escape(self.title)}</strong> '
            f"{escape(self.reading)}</figcaption>{self.to_svg(dark)}</figure>"
        )

    def show(self) -> None:
        """Show it in the notebook, or in the browser."""
        show(self.to_svg())

    def _repr_html_(self) -> str:
        return self.to_html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": self.to_html()}
        if self.spec is not None:
            # What notebooks have is version 5, and all that charts here use was in it already.
            bundle[VEGALITE] = {**self.themed(width=WIDTH), "$schema": SCHEMA}
        return bundle

    def __repr__(self) -> str:
        kind = "chart" if self.spec is not None else "drawing"
        rows = "" if self.table is None else f", {self.table.num_rows} rows"
        return f"Drawing({self.name!r}, {kind}{rows})"


def named(text: str) -> str:
    """A text as the name of a drawing, which is also that of its file and of its place on a page.

    Example:
        >>> named("maps-zoo/deit"), named("maps-grad-cam (looks)")
        ('maps-zoo-deit', 'maps-grad-cam-looks')
    """
    return re.sub(r"[^\w.+-]+", "-", text).strip("-")


def _fix_width(spec: dict[str, Any], width: int) -> None:
    """Give a chart that is as wide as its place a width of its own, also the parts of one that has several."""
    if spec.get("width") == "container":
        spec["width"] = width
    for part in spec.get("vconcat", ()):
        _fix_width(part, width)


def _converter() -> Any:
    """The package that draws charts; an error that says how to get it where it is missing."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra("Charts need vl-convert-python: pip install 'suffice[report]'.") from error
    return vl_convert
