"""Long work with one model: what a message asks for, read at once, and done when its turn comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suffice.attribution import Attribution
from suffice.evidence import Evidence
from suffice.explorer import maps, search
from suffice.explorer.reading import Fields, Question
from suffice.explorer.search import Check
from suffice.explorer.seats import Desk, Seat

Task = Callable[[Desk, Question, Check], dict[str, Any]]
Reader = Callable[[Fields, Seat], Task]


def _find(fields: Fields, seat: Seat) -> Task:
    return search.smallest_from


def _reduce(fields: Fields, seat: Seat) -> Task:
    return search.without_needless


def _next(fields: Fields, seat: Seat) -> Task:
    """The MSE after the one that is shown, in the order in which they were found; the first where none is shown."""

    def run(desk: Desk, asked: Question, check: Check) -> dict[str, Any]:
        found = _explained(desk, asked)
        if not found.mses:
            return {"cells": None, "why": found.why}
        shown = [mse.cells for mse in found.mses]
        number = (shown.index(asked.cells) + 1) % len(shown) if asked.cells in shown else 0
        mse = found.mses[number]
        return {
            "cells": list(mse.cells), "grid": asked.grid, "ratio": mse.ratio, "certified": mse.certified,
            "number": number + 1, "count": len(shown), "why": found.why,
        }  # fmt: skip

    return run


def _graph(fields: Fields, seat: Seat) -> Task:
    return lambda desk, asked, check: search.evidence_message(_evidence(desk, asked))


def _map(fields: Fields, seat: Seat) -> Task:
    method = _method(fields, seat)
    return lambda desk, asked, check: maps.map_message(_found_map(desk, asked, method))


def _curves(fields: Fields, seat: Seat) -> Task:
    method = _method(fields, seat)
    return lambda desk, asked, check: maps.find_curves(desk, asked, _found_map(desk, asked, method))


def _method(fields: Fields, seat: Seat) -> str:
    return fields.one_of("method", [one["name"] for one in seat.methods])


def _evidence(desk: Desk, asked: Question) -> Evidence:
    key = ("evidence", asked.image, asked.grid, asked.baseline, asked.target)
    return desk.kept.get_or(key, lambda: search.find_all(desk, asked))


def _explained(desk: Desk, asked: Question) -> Evidence:
    """Evidence without what lies below, which takes as long again; with it where that is known already."""
    key = (asked.image, asked.grid, asked.baseline, asked.target)
    if ("evidence", *key) in desk.kept:
        return _evidence(desk, asked)
    return desk.kept.get_or(("mses", *key), lambda: search.find_all(desk, asked, below=False))


def _found_map(desk: Desk, asked: Question, method: str) -> Attribution:
    key = ("map", asked.image, asked.target, method)
    return desk.kept.get_or(key, lambda: maps.find_map(desk, asked, method))


TASKS: dict[str, Reader] = {
    "find": _find,
    "reduce": _reduce,
    "next": _next,
    "evidence": _graph,
    "map": _map,
    "curves": _curves,
}
"""Kinds of long work, and what reads the message that asks for each."""
