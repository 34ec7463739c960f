"""Shortcuts of the models of a study: classes that are decided without their object, as a table and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PIL import Image

from suffice.compare.indices import Index
from suffice.compare.objects import covered_cells
from suffice.compare.pairwise import Level
from suffice.compare.sections import Section
from suffice.compare.shortcuts import (
    ClassEvidence,
    JudgedImage,
    WithoutObject,
    judge_images,
    share_without,
    shortcuts_of_images,
)
from suffice.draw import document, region_picture, save_picture, text
from suffice.draw.palettes import QUIET
from suffice.draw.pictures import as_image
from suffice.draw.sheets import GAP, LINE, NAME, Tile, tile_rows
from suffice.errors import OptionError, StudyError
from suffice.options import Share
from suffice.perturb import Grid

if TYPE_CHECKING:
    from suffice.evidence import Evidence
    from suffice.study import Study
    from suffice.vision import Classifier, Images

# Columns of tables: of all images of a model, and of those of a class.
SHARES = ("images", "decided without their object", "share", "on the object")
MEANING = "Decided without: an explanation lies wholly outside of the object. Intervals of Clopper and Pearson."

SHOWN = 5  # images of a class in a picture
WIDE = 130.0
MARGIN = 24.0


@dataclass(frozen=True)
class DecidedImage:
    """An image that is decided without its object.

    Attributes:
        image: Its name.
        label: The class that somebody gave it; None where nobody did.
        explained: The class that the evidence is about.
        cells: The smallest explanation wholly outside of the object.
        without: How many such explanations there are.
        on_object: Share of the cells of all its explanations that lie on the object.
    """

    image: str
    label: str | None
    explained: str
    cells: tuple[int, ...]
    without: int
    on_object: float


@dataclass(frozen=True, eq=False)
class Shortcuts:
    """How a model decides, with the object or without: all images together, and each class.

    Attributes:
        model: Its label.
        overall: Of all images together.
        classes: One for each class, those suspected first.
        decided: The images that are decided without their object.
        side: Cells per side.
        known_by: What says where objects are: masks, boxes, or masks and boxes.
        left_out: Images that are not judged: they have no explanation, or no object that is known and in sight.
        examples: By class, for those suspected: images with the cells that are enough without the object.
    """

    model: str
    overall: WithoutObject
    classes: tuple[ClassEvidence, ...]
    decided: tuple[DecidedImage, ...]
    side: int
    known_by: str
    left_out: int
    examples: dict[str, list[tuple[str, tuple[int, ...], Image.Image]]]

    @property
    def suspected(self) -> tuple[ClassEvidence, ...]:
        """The classes in which some place outside of the object recurs."""
        return tuple(one for one in self.classes if one.suspected)

    def section(self) -> Section:
        """All images, and then the classes, as a table, with what it means below."""
        rows = [["(all images)", *_shares(self.overall), "–"]]
        rows += [[one.label, *_shares(one), self._places(one)] for one in self.classes]
        said = [
            f"Suspected: {one.label}. In {one.places[0].share:.0%} of its images {self._where(one.places[0].cell)} is "
            f"part of what is enough without the object; in {one.places[0].elsewhere:.0%} of the others."
            for one in self.suspected
        ]
        title = f"{self.model}: {self.overall.images} images, {self.side}×{self.side} cells, objects by {self.known_by}"
        columns = ("class", *SHARES, "places that recur")
        return Section("shortcuts", title, columns, rows, (*(said or ["No class is suspected."]), MEANING))

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        overall = {**asdict(self.overall), "share": self.overall.share, "left_out": self.left_out}
        classes = [
            {"label": one.label, **asdict(one), "share": one.share, "suspected": one.suspected} for one in self.classes
        ]
        images = [asdict(one) for one in self.decided]
        about = {"model": self.model, "side": self.side, "known_by": self.known_by}
        return {**about, "overall": overall, "classes": classes, "images": images}

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
    touch: Share = 0.05,
    least: Share = 0.25,
    alpha: Share = 0.05,
    level: Level = 0.95,
    device: str | None = None,
) -> list[Shortcuts]:
    """Find classes that the models of a study decide without their object.

    Args:
        study: One that was run, with a search for evidence, of images with masks or boxes.
        measurement: Which search; may be left out where there is just one.
        models: Labels of models; default: all with evidence.
        classes: Of each image: the one that the evidence is about, or its label.
        touch: A cell of which the object covers less than this lies outside of it.
        least: Places must recur in at least this share of a class's images.
        alpha: Below it a corrected p-value is significant.
        level: Of the intervals.
        device: On which models are loaded, to know how they see an image.

    Returns:
        One for each model with evidence; without ``models``, those of which nothing is done yet are left out.
    """
    plan = study.plan
    images = plan.images
    if not any(picture.boxes or picture.read_mask for picture in images):
        raise OptionError(
            "No image has a mask or boxes, so nobody knows where its object is; a list can have a column mask or boxes."
        )
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
        covered = covered_cells(net, some, side)
        given = [_name(net.labels, label) for label in some.labels]
        if classes == "label" and None in given:
            unlabeled = some.names[given.index(None)]
            raise OptionError(f"{unlabeled} has no label to group it by; write classes='explained'.")
        judged = judge_images(evidence, covered, given if classes == "label" else None, touch=touch)
        judged_classes = shortcuts_of_images(judged, side**2, least=least, alpha=alpha, level=level)
        found.append(
            Shortcuts(
                model.label,
                share_without(judged, level=level),
                tuple(judged_classes),
                tuple(_decided(one, evidence[one.row], given[one.row]) for one in judged if one.without),
                side,
                _known_by(some),
                len(evidence) - len(judged),
                _examples(judged_classes, judged, evidence[0].grid, net, some),
            )
        )
    if not found:
        raise OptionError("No model of the study has evidence yet.")
    return found


def of_models(found: Sequence[Shortcuts]) -> Section:
    """One row a model: how many images it decides without their object, and how much of its evidence lies on it."""
    rows = [[one.model, *_shares(one.overall), one.overall.with_room, one.left_out] for one in found]
    columns = ("model", *SHARES, "some cell lies outside", "not judged")
    notes = [MEANING]
    if any(one.left_out for one in found):
        notes.append("Not judged: there is no explanation, or no object that is known and in sight.")
    return Section("models", "Who decides without the object?", columns, rows, tuple(notes))


def _shares(one: WithoutObject) -> list[Any]:
    return [one.images, one.without, Index(one.share, one.low, one.high), one.on_object]


def _decided(judged: JudgedImage, evidence: Evidence, label: str | None) -> DecidedImage:
    cells = judged.without[0]
    return DecidedImage(judged.name, label, evidence.label, cells, len(judged.without), judged.on_object)


def _known_by(images: Images) -> str:
    kinds = {"masks": any(one.read_mask for one in images), "boxes": any(not one.read_mask for one in images)}
    return " and ".join(kind for kind, there in kinds.items() if there)


def _name(labels: Sequence[str] | None, label: int | str | None) -> str | None:
    if label is None:
        return None
    return labels[label] if labels is not None and isinstance(label, int) else str(label)


def _examples(
    classes: Sequence[ClassEvidence], judged: Sequence[JudgedImage], grid: Grid, net: Classifier, images: Images
) -> dict[str, list[tuple[str, tuple[int, ...], Image.Image]]]:
    """Of each suspected class, images with an explanation that has nothing of the object: one at the place, if any."""
    shown: dict[str, list[tuple[str, tuple[int, ...], Image.Image]]] = {}
    for suspect in classes:
        if not suspect.suspected:
            continue
        shown[suspect.label] = []
        for one in [one for one in judged if one.label == suspect.label and one.without][:SHOWN]:
            cells = min(one.without, key=lambda cells: suspect.places[0].cell not in cells)
            seen = net.geometry(images[one.row].decode())  # the part of the image that the grid lies over
            shown[suspect.label].append((one.name, cells, region_picture(as_image(seen), grid, cells)))
    return shown
