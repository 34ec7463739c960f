"""What charts share: data inline, looks of models, legends that filter, and zoom that leaves scrolling alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from suffice.draw.theme import Looks
from suffice.draw.words import text_width
from suffice.errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow

FADED = 0.12
DIGITS = ".3~r"


def altair() -> Any:
    """The package that charts are written with; an error that says how to get it where it is missing."""
    try:
        import altair
    except ImportError as error:
        raise MissingExtra("Charts need altair: pip install 'suffice[report]'.") from error
    return altair


def data_of(table: pyarrow.Table | Sequence[Mapping[str, Any]]) -> Any:
    """The rows of a table as the data of a chart; what is not a number is null."""
    rows: Any = table.to_pylist() if hasattr(table, "to_pylist") else table
    return altair().InlineData(values=[{key: _plain(value) for key, value in row.items()} for row in rows])


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def specification(chart: Any, height: int, right: float = 0) -> dict[str, Any]:
    """The specification of a chart that is as wide as its place, without the look of the page that it comes to.

    Args:
        chart: Of Altair.
        height: In pixels.
        right: Room for what stands out at the right.
    """
    chart = chart.properties(width="container", height=height)
    spec: dict[str, Any] = json.loads(chart.to_json(validate=False))
    spec.pop("config", None)
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    if right > 0:
        spec["padding"] = {"left": 8, "top": 8, "bottom": 8, "right": 8 + round(right)}
    return spec


def sentence(words: Iterable[str], most: int = 8) -> str:
    """Some of many words in a row, with how many more there are.

    Example:
        >>> sentence(["a 1", "b 2", "c 3"], most=2)
        'a 1; b 2; and 1 more'
    """
    listed = list(words)
    rest = [f"and {len(listed) - most} more"] if len(listed) > most else []
    return "; ".join([*listed[:most], *rest])


class Marked:
    """How the marks of some names look in a chart, with a legend that filters when it is clicked.

    Args:
        field: Column of the names.
        looks: Of each name.
        title: Above the legend; none by default.
    """

    def __init__(self, field: str, looks: Looks, title: str | None = None) -> None:
        self.field, self.looks, self.title = field, looks, title
        alt = altair()
        self.chosen = alt.selection_point(fields=[field], bind="legend", name=f"chosen_{field}")

    def color(self, legend: bool = True, lines: bool = False) -> Any:
        """Colors, with a legend below; of charts whose marks are ``lines`` without points it shows these."""
        alt = altair()
        scale = alt.Scale(domain=list(self.looks.names), range=list(self.looks.colors))
        return alt.Color(f"{self.field}:N", scale=scale, legend=self.legend(lines) if legend else None, sort=None)

    def lines(self, base: Any, **look: Any) -> list[Any]:
        """Lines of a chart whose points are in the legend: a layer for each kind of dash, which stays out of it."""
        alt = altair()
        kinds: dict[tuple[int, ...], list[str]] = {dash: [] for dash in self.looks.dashes}
        for name, dash in zip(self.looks.names, self.looks.dashes, strict=True):
            kinds[dash].append(name)
        return [
            base.transform_filter(alt.FieldOneOfPredicate(field=self.field, oneOf=names)).mark_line(
                strokeDash=list(dash), **look
            )
            for dash, names in kinds.items()
        ]

    def shape(self, legend: bool = True) -> Any:
        """Shapes, in the same legend."""
        alt = altair()
        scale = alt.Scale(domain=list(self.looks.names), range=list(self.looks.shapes))
        return alt.Shape(f"{self.field}:N", scale=scale, legend=self.legend() if legend else None, sort=None)

    def dash(self, legend: bool = True) -> Any:
        """Lines, in the same legend where marks are lines without points."""
        alt = altair()
        scale = alt.Scale(domain=list(self.looks.names), range=[list(dash) for dash in self.looks.dashes])
        return alt.StrokeDash(f"{self.field}:N", scale=scale, legend=self.legend(True) if legend else None, sort=None)

    def opacity(self, full: float = 1.0) -> Any:
        """Full for those chosen in the legend, or for all where none is."""
        alt = altair()
        return alt.condition(self.chosen, alt.value(full), alt.value(min(FADED, full / 4)))

    def legend(self, lines: bool = False) -> Any:
        """Below the chart, in as many columns as there is room for."""
        alt = altair()
        wide = min(max(text_width(name, 12) for name in self.looks.names), 170) + 38
        few, many = (max(1, min(len(self.looks.names), int(room // wide))) for room in (320, 690))
        # Not any width has a number of columns of its own: a chart that is fitted to its place is laid out twice.
        columns = alt.ExprRef(expr=f"width < 420 ? {few} : {many}")
        symbols = {"symbolType": "stroke", "symbolSize": 320} if lines else {}
        return alt.Legend(orient="bottom", columns=columns, title=self.title, symbolOpacity=1, **symbols)


def names_axis(title: str | None = None, **more: Any) -> Any:
    """An axis of names, shortened where a page is narrow."""
    alt = altair()
    limit = alt.ExprRef(expr="width < 330 ? 110 : 230")
    return alt.Axis(title=title, labelLimit=limit, ticks=False, domain=False, **more)


def zoom(name: str = "zoom") -> Any:
    """Zoom and move while Shift is held, so that a page still scrolls; a double click goes back."""
    alt = altair()
    moved = "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!"
    return alt.selection_interval(bind="scales", name=name, zoom="wheel![event.shiftKey]", translate=moved)
