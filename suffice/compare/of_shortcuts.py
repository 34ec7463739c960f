"""Shortcuts of the models of a study: classes that are decided without their object, as a table and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL import Image

from suffice.compare.indices import Index
from suffice.compare.sections import Section
from suffice.compare.shortcuts import ClassEvidence, find_shortcuts, objects_on_grid
from suffice.draw import document, region_picture, save_picture, text
from suffice.draw.palettes import QUIET
from suffice.draw.pictures import as_image
from suffice.draw.sheets import GAP, LINE, NAME, Tile, tile_rows
from suffice.errors import OptionError, StudyError
from suffice.metrics.boxes import boxes_of

if TYPE_CHECKING:
    from suffice.evidence import Evidence
    from suffice.study import Study
    from suffice.vision import Classifier, Images

SHOWN = 5  # images of a class in a picture
WIDE = 130.0
MARGIN = 24.0


@dataclass(frozen=True, eq=False)
class Shortcuts:
    """How a model decides each class: with its object, or without.

    Attributes:
        model: Its label.
        classes: One for each class, those suspected first.
        side: Cells per side.
        judged: Images with evidence whose object is known.
        examples: By class, for those suspected: images with the cells that are enough without the object.
    """

    model: str
    classes: tuple[ClassEvidence, ...]
    side: int
    judged: int
    examples: dict[str, list[tuple[str, tuple[int, ...], Image.Image]]]

    @property
    def suspected(self) -> tuple[ClassEvidence, ...]:
        """The classes in which some place outside of the object recurs."""
        return tuple(one for one in self.classes if one.suspected)

    def section(self) -> Section:
        """The same as a table, with what it means below."""
        rows = [
            [one.label, one.images, Index(one.share, one.low, one.high), one.on_object, self._places(one)]
            for one in self.classes
        ]
        said = [
            f"Suspected: {one.label}. In {one.places[0].share:.0%} of its images {self._where(one.places[0].cell)} is "
            f"part of what is enough without the object; in {one.places[0].elsewhere:.0%} of the others."
            for one in self.suspected
        ]
        note = "Decided without: an explanation lies wholly outside of the object. Intervals of Clopper and Pearson."
        columns = ("class", "images", "decided without its object", "on the object", "places that recur")
        title = f"{self.model}: {self.judged} images, {self.side}×{self.side} cells"
        return Section("shortcuts", title, columns, rows, (*(said or ["No class is suspected."]), note))

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        classes = [{**asdict(one), "share": one.share, "suspected": one.suspected} for one in self.classes]
        return {"model": self.model, "side": self.side, "judged": self.judged, "classes": classes}

    def to_svg(self) -> str:
        """A row of images for each suspected class, with the cells that are enough and have nothing of the object."""
        parts = [text(MARGIN, 34, f"What is enough for {self.model}, without the object", 17, font_weight="bold")]
        y = 56.0
        for one in self.suspected:
            place = one.places[0]
            shares = f"in {place.share:.0%} of its images, in {place.elsewhere:.0%} of others"
            about = f"{one.label}: {self._where(place.cell)} {shares}"
            parts.append(text(MARGIN, y + 14, about, 13, font_weight="bold"))
            tiles = [Tile(picture, lines=[name]) for name, _, picture in self.examples[one.label]]
            drawn, height = tile_rows(tiles, MARGIN, y + 26, side=WIDE, high=WIDE, columns=SHOWN)
            parts += drawn
            y += 26 + height + GAP
        if not self.suspected:
            parts.append(text(MARGIN, y + 14, "No class is suspected.", 13, QUIET))
            y += NAME + LINE
        width = 2 * MARGIN + SHOWN * (WIDE + GAP) - GAP
        return document(width, y + MARGIN / 2, *parts, title=f"Shortcuts of {self.model}")

    def save(self, path: str | Path) -> Path:
        """Write the picture as SVG, PNG or PDF, by the ending of the file."""
        return save_picture(self.to_svg(), path)

    def _places(self, one: ClassEvidence) -> str:
        return (
            "; ".join(f"{self._where(p.cell)}: {p.share:.0%} ({p.elsewhere:.0%} elsewhere)" for p in one.places) or "–"
        )

    def _where(self, cell: int) -> str:
        row, column = divmod(cell, self.side)
        return f"row {row + 1}, column {column + 1}"


def shortcuts_of_study(
    study: Study,
    measurement: str | None = None,
    *,
    models: Sequence[str] = (),
    classes: Literal["explained", "label"] = "explained",
    device: str | None = None,
    **options: Any,
) -> list[Shortcuts]:
    """Find classes that the models of a study decide without their object.

    Args:
        study: One that was run, with a search for evidence, of images with boxes.
        measurement: Which search; may be left out where there is just one.
        models: Labels of models; default: all with evidence.
        classes: Of each image: the one that the evidence is about, or its label.
        device: On which models are loaded, to know how they see an image.
        **options: Of :func:`find_shortcuts`.

    Returns:
        One for each model with evidence; without ``models``, those of which nothing is done yet are left out.
    """
    plan = study.plan
    images = plan.images
    if not any(picture.boxes for picture in images):
        raise OptionError("No image has boxes, so nobody knows where its object is; a list can have a column boxes.")
    found = []
    for model in plan.models:
        if models and model.label not in models:
            continue
        try:
            evidence = study.evidence(model.label, measurement)
        except StudyError:
            if models:
                raise
            continue  # nothing of it is done yet
        if not len(evidence):
            continue
        net = model.load(plan.asked.base, device)
        some = images[[one.index for one in evidence]]
        side = evidence[0].grid.side
        covered = objects_on_grid(boxes_of(net, some), net.size, side)
        labels = None
        if classes == "label":
            labels = [_name(net.labels, picture.label) for picture in some]
        judged = find_shortcuts(evidence, covered, labels, **options)
        shown = _examples(judged, list(evidence), covered, net, some, options.get("touch", 0.05))
        found.append(Shortcuts(model.label, tuple(judged), side, sum(one.images for one in judged), shown))
    if not found:
        raise OptionError("No model of the study has evidence yet.")
    return found


def _name(labels: Sequence[str] | None, label: int | str | None) -> str:
    return labels[label] if labels is not None and isinstance(label, int) else str(label)


def _examples(
    judged: Sequence[ClassEvidence],
    evidence: Sequence[Evidence],
    covered: np.ndarray,
    net: Classifier,
    images: Images,
    touch: float,
) -> dict[str, list[tuple[str, tuple[int, ...], Image.Image]]]:
    """Of each suspected class, images with a smallest explanation that has nothing of the object."""
    rows = {one.name: number for number, one in enumerate(evidence)}
    shown: dict[str, list[tuple[str, tuple[int, ...], Image.Image]]] = {}
    for one in judged:
        if not one.suspected:
            continue
        shown[one.label] = []
        for name in one.examples[:SHOWN]:
            row = rows[name]
            free = [m for m in evidence[row].mses if len(m) and (covered[row, list(m.cells)] < touch).all()]
            cells = min(free, key=lambda mse: (one.places[0].cell not in mse.cells, len(mse))).cells
            seen = net.geometry(images[row].decode())  # the part of the image that the grid lies over
            picture = region_picture(as_image(seen), evidence[row].grid, cells)
            shown[one.label].append((name, tuple(cells), picture))
    return shown
