"""What was found about shortcuts as files: a list to look at, and tables of models and classes."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from suffice.compare.of_shortcuts import DecidedImage, Shortcuts
from suffice.compare.sections import finite
from suffice.compare.shortcuts import ClassEvidence, WithoutObject

SHARES = ("images", "with_room", "without", "share", "low", "high", "on_object")


def write_shortcuts(found: Sequence[Shortcuts], out: str | Path) -> list[Path]:
    """Write what was found about some models to a folder.

    Args:
        found: As :func:`suffice.compare.shortcuts_of_study` returns it.
        out: The folder; files of these names are replaced.

    Returns:
        ``shortcuts.json``; ``shortcuts-models.csv`` and ``shortcuts-classes.csv``, with a row for each model, and each
        class of a model; ``shortcuts-images.csv``, with a row for each image that is decided without its object. Lists
        in CSV are JSON.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    whole = folder / "shortcuts.json"
    plain = finite([one.to_json() for one in found])
    whole.write_text(json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    models = ({"model": one.model, **_shares(one.overall), "left_out": one.left_out} for one in found)
    classes = ({"model": one.model, **_of_class(own)} for one in found for own in one.classes)
    images = ({"model": one.model, **_of_image(own)} for one in found for own in one.decided)
    return [
        whole,
        _write(folder / "shortcuts-models.csv", ("model", *SHARES, "left_out"), models),
        _write(folder / "shortcuts-classes.csv", ("model", "class", *SHARES, "suspected", "places"), classes),
        _write(folder / "shortcuts-images.csv", ("model", *(one.name for one in fields(DecidedImage))), images),
    ]


def _shares(one: WithoutObject) -> dict[str, Any]:
    return {name: getattr(one, name) for name in SHARES}


def _of_class(one: ClassEvidence) -> dict[str, Any]:
    places = json.dumps([asdict(place) for place in one.places])
    return {"class": one.label, **_shares(one), "suspected": one.suspected, "places": places}


def _of_image(one: DecidedImage) -> dict[str, Any]:
    return {**asdict(one), "cells": json.dumps(one.cells)}


def _write(file: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> Path:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, columns)
        writer.writeheader()
        writer.writerows(rows)
    return file
