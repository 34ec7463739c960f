"""Questions that need no search: what there is, lists of images, tables of a study, a picture to keep."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from suffice import __version__
from suffice.draw import palettes
from suffice.explorer.card import bench_card, card_png
from suffice.explorer.errors import Unknown
from suffice.explorer.reading import FINEST, Fields, Question
from suffice.explorer.seats import ENOUGH, Seat
from suffice.perturb import list_baselines

if TYPE_CHECKING:
    from suffice.explorer.explorer import Explorer
    from suffice.explorer.tables import Tables

MOST_LABELS = 2000
LISTED = 60  # images at once


def hello(explorer: Explorer, fields: Fields) -> dict[str, Any]:
    """What there is: models, images, baselines, and the study."""
    labels = dict.fromkeys(label for seat in explorer.seats.values() for label in seat.net.labels or ())
    return {
        "version": __version__,
        "models": [seat.about for seat in explorer.seats.values()],
        "labels": list(labels)[:MOST_LABELS],
        "images": len(explorer.pictures),
        "baselines": list_baselines(),
        "brush": FINEST,
        "enough": ENOUGH,
        "ramp": list(palettes.RAMP),
        "warm": palettes.WARM.tolist(),
        "cool": palettes.COOL.tolist(),
        "limits": explorer.limits,
        "study": None if explorer.study is None else explorer.study.about,
    }


def images(explorer: Explorer, fields: Fields) -> dict[str, Any]:
    """Some images of the collection, with small copies."""
    offset, count = fields.whole("offset", 0, 10**9, 0), fields.whole("count", 1, LISTED, 24)
    return {"images": explorer.pictures.listed(offset, count), "offset": offset, "all": len(explorer.pictures)}


def image(explorer: Explorer, fields: Fields) -> dict[str, Any]:
    """One image."""
    return explorer.pictures.about(fields.text("image"))


def views(explorer: Explorer, fields: Fields) -> Callable[[], dict[str, Any]]:
    """What a model sees, what it sees where cells are hidden, and the classes it finds most likely."""
    key = fields.text("image")
    explorer.pictures[key]
    baseline = fields.one_of("baseline", list_baselines(), "blur")
    return partial(_views, explorer.seat(fields.text("model")), key, baseline)


def _views(seat: Seat, image: str, baseline: str) -> dict[str, Any]:
    shown = {name: _uri(png) for name, png in seat.quick.views(image, baseline).items()}
    return {**shown, "top": seat.quick.top(image), "model": seat.name}


def methods(explorer: Explorer, fields: Fields) -> dict[str, Any]:
    """The methods that fit a model."""
    return {"methods": explorer.seat(fields.text("model")).methods}


def card(explorer: Explorer, fields: Fields) -> Callable[[], dict[str, Any]]:
    """The bench as a picture to keep, SVG or PNG; the answers are those that the page has."""
    asked, kind = Question.read(fields), fields.one_of("format", ("svg", "png"), "svg")
    rows = [_row(Fields(row)) for row in fields.some("rows", 64)]
    name = explorer.pictures[asked.image].name
    return partial(_card, explorer.seat(fields.text("model")), asked, kind, rows, name)


def _row(fields: Fields) -> dict[str, Any]:
    return {
        "model": fields.text("model"),
        "label": fields.text("label", ""),
        "ratio": fields.number("ratio", 0, 1e9),
        "confidence": fields.number("confidence", 0, 1e9),
    }


def _card(seat: Seat, asked: Question, kind: str, rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    seen, hidden = seat.quick.see(asked.image).pixels, seat.quick.hidden(asked.image, asked.baseline)
    svg = bench_card(seen[0].cpu(), hidden[0].cpu(), asked, rows, name, ENOUGH)
    if kind == "svg":
        return {"format": "svg", "svg": svg}
    return {"format": "png", "png": _uri(card_png(svg))}


def rows(explorer: Explorer, fields: Fields) -> dict[str, Any]:
    """A page of the rows of a table, by filters and order."""
    return _tables(explorer).rows(fields)


def figures(explorer: Explorer, fields: Fields) -> dict[str, Any]:
    """The figures of a study."""
    return {"figures": _tables(explorer).figures()}


def _tables(explorer: Explorer) -> Tables:
    if explorer.study is None:
        raise Unknown("There is no study here; start with suffice serve RUN.")
    return explorer.study


def _uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


PLAIN: dict[str, Callable[[Any, Fields], Any]] = {
    "hello": hello,
    "images": images,
    "image": image,
    "views": views,
    "methods": methods,
    "card": card,
    "rows": rows,
    "figures": figures,
}
"""Kinds of such questions; those that need a model give back what its thread has to do, the seat as first argument."""
