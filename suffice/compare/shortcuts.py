"""Right for the wrong reasons: images that a model decides without the object, and places that recur across a class.

An explanation that lies wholly outside the object is enough for the model to decide: the water behind the duck, the
mark in the corner. Now and then that happens to any model. A class is suspected where the same cell, outside of the
object, is part of such explanations in many of its images, and in clearly fewer of other classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from suffice.compare.pairwise import Level, Numbers, holm
from suffice.errors import OptionError
from suffice.evidence import Evidence, EvidenceSet
from suffice.options import Share, check_options


@dataclass(frozen=True)
class Place:
    """A cell that recurs outside of the objects of a class.

    Attributes:
        cell: Its number in the grid.
        share: Of the class's images in which an explanation without the object has it.
        elsewhere: The same share of all other images.
        p: Of Fisher's exact test, one-sided, corrected for all classes and cells.
    """

    cell: int
    share: float
    elsewhere: float
    p: float


@dataclass(frozen=True)
class JudgedImage:
    """Where the evidence of an image lies, of which the object is known.

    Attributes:
        row: Its place in what was given.
        name: Its name.
        label: Its class.
        without: Explanations wholly outside of the object, as cells; those with fewer cells first.
        on_object: Share of the cells of its explanations that lie on the object.
        with_room: Whether any cell lies outside of the object.
    """

    row: int
    name: str
    label: str
    without: tuple[tuple[int, ...], ...]
    on_object: float
    with_room: bool


@dataclass(frozen=True)
class WithoutObject:
    """How many images are decided without their object.

    Attributes:
        images: Images with evidence and a known object.
        with_room: In how many of them some cell lies outside of the object; the others cannot be decided without it.
        without: How many have an explanation wholly outside of the object: they are decided without it.
        low: Lower end of the interval of their share (Clopper and Pearson).
        high: Upper end.
        on_object: Share of the cells of an image's explanations that lie on the object, the mean over images.
    """

    images: int
    with_room: int
    without: int
    low: float
    high: float
    on_object: float

    @property
    def share(self) -> float:
        """Share of the images that are decided without their object; NaN where there is no image."""
        return self.without / self.images if self.images else float("nan")


@dataclass(frozen=True)
class ClassEvidence(WithoutObject):
    """The same for the images of a class, with the places that recur.

    Attributes:
        label: The class.
        places: Cells that recur outside, the most frequent first; none where the class is not suspected.
        examples: Names of images that are decided without their object.
    """

    label: str
    places: tuple[Place, ...]
    examples: tuple[str, ...]

    @property
    def suspected(self) -> bool:
        """Whether some place recurs."""
        return bool(self.places)


def judge_images(
    evidence: EvidenceSet | Sequence[Evidence],
    covered: Numbers,
    classes: Sequence[Any] | None = None,
    *,
    touch: Share = 0.05,
) -> list[JudgedImage]:
    """Say of each image where its evidence lies; those without an explanation or a known object are left out.

    Args:
        evidence: What was found in each image.
        covered: How much of each cell the object covers, [N, cells]; see :func:`covered_cells`.
        classes: Of each image; default: the class that the evidence is about.
        touch: A cell of which less than this is covered lies outside of the object.

    Example:
        >>> import torch
        >>> from suffice import find_evidence
        >>> from suffice.compare import objects_on_grid
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(4,), (8,)], grid=3)  # the object is in the middle, and there is a mark in the corner
        >>> found = find_evidence(oracle.classifier(24), oracle.image(24), targets=1, grid=3, baseline="black")
        >>> covered = objects_on_grid([torch.tensor([[8.0, 8.0, 16.0, 16.0]])], (24, 24), 3)
        >>> (one,) = judge_images(found, covered)
        >>> one.without, one.on_object
        (((8,),), 0.5)
    """
    check_options({"touch": touch}, judge_images)
    given = list(evidence)
    if covered.ndim != 2 or len(covered) != len(given):
        raise OptionError(f"Expected how much of each cell is covered, [{len(given)}, cells]; got {covered.shape}.")
    labels = [str(one) for one in (classes if classes is not None else [e.label for e in given])]
    if len(labels) != len(given):
        raise OptionError(f"{len(labels)} classes were given for {len(given)} images; give one for each.")
    judged = []
    for row, (one, label, own) in enumerate(zip(given, labels, covered, strict=True)):
        found = [mse.cells for mse in one.mses if len(mse)]
        if not found or not np.isfinite(own).all():
            continue
        outside = own < touch
        without = sorted((cells for cells in found if outside[list(cells)].all()), key=len)
        on_object = float(1 - outside[[cell for cells in found for cell in cells]].mean())
        judged.append(JudgedImage(row, one.name, label, tuple(without), on_object, bool(outside.any())))
    return judged


def share_without(judged: Sequence[JudgedImage], *, level: Level = 0.95) -> WithoutObject:
    """How many of some images are decided without their object, and how much of their evidence lies on it.

    Args:
        judged: What :func:`judge_images` says of each of them.
        level: Of the interval.

    Example:
        >>> images = [JudgedImage(0, "pond", "duck", ((8,),), 0.5, True), JudgedImage(1, "lawn", "duck", (), 1.0, True)]
        >>> found = share_without(images)
        >>> found.without, found.share, round(found.low, 3), round(found.high, 3), found.on_object
        (1, 0.5, 0.013, 0.987, 0.75)
    """
    check_options({"level": level}, share_without)
    nothing = float("nan")
    if not judged:
        return WithoutObject(0, 0, 0, nothing, nothing, nothing)
    without, with_room = sum(bool(one.without) for one in judged), sum(one.with_room for one in judged)
    on_object = float(np.mean([one.on_object for one in judged]))
    return WithoutObject(len(judged), with_room, without, *_interval(without, len(judged), level), on_object)


@cache  # many classes have as many images
def _interval(some: int, images: int, level: float) -> tuple[float, float]:
    """Interval of Clopper and Pearson."""
    found = stats.binomtest(some, images).proportion_ci(level)
    return float(found.low), float(found.high)


def find_shortcuts(
    evidence: EvidenceSet | Sequence[Evidence],
    covered: Numbers,
    classes: Sequence[Any] | None = None,
    *,
    touch: Share = 0.05,
    least: Share = 0.25,
    alpha: Share = 0.05,
    level: Level = 0.95,
) -> list[ClassEvidence]:
    """Say for each class how often it is decided without its object, and which places recur.

    Args:
        evidence: What was found in each image.
        covered: How much of each cell the object covers, [N, cells]; see :func:`covered_cells`.
        classes: Of each image; default: the class that the evidence is about.
        touch: A cell of which less than this is covered lies outside of the object.
        least: Places must recur in at least this share of a class's images.
        alpha: Below it a corrected p-value is significant.
        level: Of the intervals.

    Returns:
        One for each class, those suspected first, then by the share of images decided without the object.

    Example:
        >>> import torch
        >>> from suffice import find_evidence
        >>> from suffice.compare import objects_on_grid
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(4,), (8,)], grid=3)  # the object is in the middle, and there is a mark in the corner
        >>> found = find_evidence(oracle.classifier(24), oracle.image(24), targets=1, grid=3, baseline="black")
        >>> covered = objects_on_grid([torch.tensor([[8.0, 8.0, 16.0, 16.0]])], (24, 24), 3)
        >>> (one,) = find_shortcuts(found, covered)
        >>> one.share, one.on_object
        (1.0, 0.5)
    """
    judged = judge_images(evidence, covered, classes, touch=touch)
    return shortcuts_of_images(judged, covered.shape[1], least=least, alpha=alpha, level=level)


def shortcuts_of_images(
    judged: Sequence[JudgedImage], cells: int, *, least: Share = 0.25, alpha: Share = 0.05, level: Level = 0.95
) -> list[ClassEvidence]:
    """The same of images that were judged already, on a grid of so many cells."""
    check_options({"least": least, "alpha": alpha, "level": level}, find_shortcuts)
    # In which images a cell is part of an explanation without the object, [judged, cells].
    there = np.zeros((len(judged), cells), dtype=bool)
    for row, one in enumerate(judged):
        there[row, [cell for found in one.without for cell in found]] = True
    names = list(dict.fromkeys(one.label for one in judged))
    of_class = {name: np.array([one.label == name for one in judged]) for name in names}
    places = _recurring(there, of_class, least, alpha)
    found = []
    for name in names:
        own = [one for one in judged if one.label == name]
        examples = tuple(one.name for one in own if one.without)
        shares = vars(share_without(own, level=level))
        found.append(ClassEvidence(**shares, label=name, places=places[name], examples=examples))
    return sorted(found, key=lambda one: (not one.suspected, -one.share))


def _recurring(
    there: np.ndarray, of_class: dict[str, np.ndarray], least: float, alpha: float
) -> dict[str, tuple[Place, ...]]:
    """The cells that recur in a class more than in the others."""
    tried = []
    for name, rows in of_class.items():
        mine, others = int(rows.sum()), int((~rows).sum())
        here, elsewhere = there[rows].sum(axis=0), there[~rows].sum(axis=0)
        p = stats.hypergeom.sf(here - 1, len(there), here + elsewhere, mine)  # Fisher's, of all cells at once
        for cell in np.flatnonzero(here).tolist():
            place = Place(cell, float(here[cell]) / mine, float(elsewhere[cell]) / max(others, 1), float(p[cell]))
            tried.append((name, place))
    adjusted = holm([place.p for _, place in tried])
    kept: dict[str, list[Place]] = {name: [] for name in of_class}
    for (name, place), p in zip(tried, adjusted, strict=True):
        if p < alpha and place.share >= least:
            kept[name].append(replace(place, p=p))
    return {name: tuple(sorted(found, key=lambda place: (-place.share, place.p))) for name, found in kept.items()}
