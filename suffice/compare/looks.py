"""Looking at a cross-test: images of which models see just what one of them finds important.

Numbers say that families test alike or not; pictures say what that means (Jiang, Khorram, Li, CVPR 2024, Figures 7 and
9). Which images are shown is decided by a rule, not by hand: those about which families disagree the most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.attribution import Attribution
from suffice.compare.cross_result import CrossTest
from suffice.compare.pairwise import Numbers
from suffice.draw import document, region_picture, save_picture, text
from suffice.draw.palettes import QUIET
from suffice.draw.pictures import as_image
from suffice.draw.sheets import GAP, Tile, tile_rows
from suffice.errors import OptionError
from suffice.options import Count, Share, check_options
from suffice.perturb import Grid, Probe, make_baseline
from suffice.vision import Model, as_classifier, open_images

if TYPE_CHECKING:
    from suffice.study import Study

WIDE = 150.0  # of a picture
MARGIN = 24.0


@dataclass(frozen=True, eq=False)
class Look:
    """An image of which just the cells are seen that one model finds most important.

    Attributes:
        image: Its name.
        maps_of: The model that finds them important.
        label: The class asked about: the one that this model's map explains.
        cells: The cells.
        side: Cells per side.
        confidences: Of each model in that class, seeing these cells.
        whole: The same on the whole image.
        picture: What was seen.
        original: The whole image.
    """

    image: str
    maps_of: str
    label: str
    cells: tuple[int, ...]
    side: int
    confidences: Mapping[str, float]
    whole: Mapping[str, float]
    picture: Image.Image
    original: Image.Image


@dataclass(frozen=True, eq=False)
class Looks:
    """Some images, each through the eyes of several models.

    Attributes:
        looks: One for each image and model whose map it is, in this order.
        models: The models, in order.
        share: Share of the cells that is seen.
    """

    looks: tuple[Look, ...]
    models: tuple[str, ...]
    share: float

    def __iter__(self) -> Iterator[Look]:
        return iter(self.looks)

    def __len__(self) -> int:
        return len(self.looks)

    def to_json(self) -> list[dict[str, Any]]:
        """The same as plain values, without pictures."""
        return [
            {
                "image": one.image, "maps_of": one.maps_of, "label": one.label, "cells": list(one.cells),
                "side": one.side, "confidences": dict(one.confidences), "whole": dict(one.whole),
            }
            for one in self.looks
        ]  # fmt: skip

    def to_svg(self) -> str:
        """A row for each image, a column for each map; below each picture every model's confidence."""
        columns = 1 + len(self.models)
        tiles: list[Tile] = []
        for one in self.looks:
            if one.maps_of == self.models[0]:
                tiles.append(Tile(one.original, "whole image", [one.image]))
            tiles.append(Tile(one.picture, one.maps_of, self._lines(one)))
        parts, height = tile_rows(tiles, MARGIN, 84, side=WIDE, high=WIDE, columns=columns)
        head = [
            text(MARGIN, 34, "Do models see the same thing?", 17, font_weight="bold"),
            text(
                MARGIN,
                54,
                f"Of each image, the {self.share:.0%} most important by one model are seen.",
                12,
                QUIET,
            ),
            text(MARGIN, 70, "Below: each model’s confidence in the class (on the whole image).", 12, QUIET),
        ]
        width = max(MARGIN * 2 + columns * (WIDE + GAP) - GAP, 460)
        return document(width, 84 + height + MARGIN, *head, *parts, title="Cross-testing by example")

    def save(self, path: str | Path) -> Path:
        """Write the picture as SVG, PNG or PDF, by the ending of the file."""
        return save_picture(self.to_svg(), path)

    def _lines(self, one: Look) -> list[str]:
        return [one.label] + [f"{_short(m)}  {one.confidences[m]:.2f} ({one.whole[m]:.2f})" for m in self.models]


def most_disputed(crossed: CrossTest, count: Count = 3, metric: str | None = None) -> list[int]:
    """The images about which families disagree the most, by their positions.

    That is where scores of maps on models of another family fall the furthest behind those within families; a model
    with its own map counts as within. Each score is in units of the tested model's confidence on the whole image.

    Args:
        crossed: The cross-test.
        count: How many.
        metric: Name of the metric; default: the first.

    Example:
        >>> raw = np.array([[[0.9, 0.9], [0.1, 0.9]], [[0.9, 0.9], [0.9, 0.9]]])
        >>> found = CrossTest(("a", "b"), ("x", "y"), {"insertion": raw}, np.ones((2, 2)), {}, np.zeros((2, 2, 2)))
        >>> most_disputed(found, 1)
        [0]
    """
    name = crossed.metrics[0] if metric is None else metric
    crossed.scores(name)  # a metric that is not there is said
    families = np.array(crossed.families)
    same = families[:, None] == families[None, :]
    if same.all():
        raise OptionError("All models are of one family; there is nothing to disagree about.")
    with np.errstate(invalid="ignore", divide="ignore"):
        scores: Numbers = crossed.raw[name] / crossed.whole[None]
    gap = _mean(scores[same]) - _mean(scores[~same])
    gap = np.where(np.isfinite(gap), gap if not crossed.lower_is_better(name) else -gap, -np.inf)
    return np.argsort(-gap, kind="stable")[:count].tolist()


def look_through(
    nets: Sequence[Model],
    images: Any,
    maps: Sequence[Attribution],
    *,
    share: Share = 0.15,
    side: Count = 14,
    baseline: str = "blur",
) -> Looks:
    """Show models just what each of them finds most important.

    Args:
        nets: Two or more classifiers.
        images: Anything that :func:`suffice.open_images` takes.
        maps: Maps of each classifier, of these images.
        share: Share of the cells that is shown.
        side: Cells per side.
        baseline: What shows elsewhere.

    Example:
        >>> from suffice import attribute
        >>> from suffice.testing import AnyOf
        >>> oracles = [AnyOf([(8,)], grid=3), AnyOf([(4,)], grid=3)]
        >>> nets = [oracle.classifier(24) for oracle in oracles]
        >>> for net, net.name in zip(nets, "ab"):
        ...     pass
        >>> image = oracles[0].image(24)
        >>> maps = [attribute(net, image, "occlusion", window=8, stride=8, baseline="black") for net in nets]
        >>> found = look_through(nets, image, maps, share=0.12, side=3, baseline="black")
        >>> [(one.maps_of, one.cells, round(one.confidences["a"], 1)) for one in found]
        [('a', (8,), 1.0), ('b', (4,), 0.0)]
    """
    check_options({"share": share, "side": side}, look_through)
    given = [as_classifier(net) for net in nets]
    opened = open_images(images)
    if len(maps) != len(given) or any(len(own) != len(opened) for own in maps):
        raise OptionError(f"Expected maps of each of {len(given)} classifiers, of {len(opened)} images each.")
    keep = max(1, round(share * side**2))
    best = torch.stack([_top(own.maps, side, keep) for own in maps])  # [models, images, keep]
    seen: dict[str, Tensor] = {}
    whole: dict[str, Tensor] = {}
    grid = Grid(side)
    for net in given:
        answers = []
        for own, cells in zip(maps, best.tolist(), strict=True):
            probe = Probe(net, opened, own.targets, baseline=baseline, grid=side)
            regions = grid.from_cells([*cells, *[range(side**2)] * len(cells)])
            answers.append(probe.ask(torch.arange(len(opened)).repeat(2), regions).cpu().unflatten(0, (2, -1)))
        seen[net.name], whole[net.name] = torch.stack(answers).unbind(1)  # [models, images]
    looks = []
    for image, picture in enumerate(opened):
        for number, (net, own) in enumerate(zip(given, maps, strict=True)):
            cells = tuple(sorted(best[number, image].tolist()))
            pixels = net.geometry(picture.decode())
            original = as_image(pixels)
            shown = region_picture(original, grid, cells, make_baseline(baseline, pixels[None])[0])
            target = int(own.targets[image])
            label = net.labels[target] if net.labels else str(target)
            here, before = ({name: float(p[number, image]) for name, p in of.items()} for of in (seen, whole))
            looks.append(Look(picture.name, net.name, label, cells, side, here, before, shown, original))
    return Looks(tuple(looks), tuple(net.name for net in given), keep / side**2)


def disputed_images(
    study: Study,
    count: Count = 3,
    *,
    models: Sequence[str] = (),
    measurement: str | None = None,
    share: Share = 0.15,
    side: Count = 14,
    device: str | None = None,
) -> Looks:
    """The images of a study's cross-test about which families disagree the most, through the eyes of the models.

    Args:
        study: One that was run.
        count: How many images.
        models: Labels of the models to show; default: the first of each family.
        measurement: Of the kind ``"cross-test"``; may be left out where there is just one.
        share: Share of the cells that is shown.
        side: Cells per side.
        device: Instead of the first GPU if there is one.
    """
    from suffice.compare.tables import tables_of_kind

    crossed = CrossTest.from_study(study, measurement)
    plan = study.plan
    table = measurement or tables_of_kind(study, "cross-test")[0]
    source = plan.asked.measurements[table].reads[0]
    chosen = list(models) or [crossed.models[crossed.families.index(f)] for f in dict.fromkeys(crossed.families)]
    if unknown := [name for name in chosen if name not in crossed.models]:
        raise OptionError(f"The study has no model {unknown[0]!r}; it has {', '.join(crossed.models)}.")
    names = [crossed.names[position] for position in most_disputed(crossed, count)]
    place = {name: number for number, name in enumerate(plan.names)}
    maps = []
    for label in chosen:
        own = study.maps(source, label)
        rows = {name: number for number, name in enumerate(own.names)}
        maps.append(own[torch.tensor([rows[name] for name in names])])
    nets = []
    for label in chosen:
        net = plan.model(label).load(plan.asked.base, device)
        nets.append(net.replace(name=label))
    return look_through(nets, plan.images[[place[name] for name in names]], maps, share=share, side=side)


def _top(maps: Tensor, side: int, keep: int) -> Tensor:
    """The highest cells of maps [N, h, w] on a grid, [N, keep] int64; of equal ones the first."""
    rows = maps[:, None].float()
    if min(maps.shape[1:]) >= side:
        cells = torch.nn.functional.adaptive_avg_pool2d(rows, side)
    else:
        cells = torch.nn.functional.interpolate(rows, size=(side, side), mode="bilinear")
    return cells.flatten(1).sort(dim=1, descending=True, stable=True).indices[:, :keep]


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _mean(scores: Numbers) -> Numbers:
    """Mean over pairs of what there is, [N] from [pairs, N]; NaN where there is nothing."""
    there = np.isfinite(scores)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(there, scores, 0).sum(axis=0) / there.sum(axis=0))
