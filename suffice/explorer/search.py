"""Searches from the bench: enough from here on, what is not needed, and all minimal sufficient explanations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from suffice.draw.theme import darkened
from suffice.errors import OptionError
from suffice.evidence import Evidence, EvidenceStream, Settings
from suffice.evidence.search.criterion import Criterion
from suffice.evidence.search.reduction import reduce_sets, sufficient
from suffice.explorer.reading import Question
from suffice.explorer.seats import ENOUGH, Desk
from suffice.progress import stage
from suffice.vision import Images, open_images

WIDTH = 5  # sets that are enlarged at each step
ORDERS = 6  # in which cells are taken out
FINEST_SEARCH = 28  # cells a side; beyond, a step would take thousands of questions

Check = Callable[[], None]


def smallest_from(desk: Desk, asked: Question, check: Check) -> dict[str, Any]:
    """The smallest set that is found to be enough from the region shown: within it where it suffices, else around it.

    No single cell of the result can go. Cells that were shown may be gone where others made them needless.
    """
    criterion, region = _begin(desk, asked)
    with stage("search", 1):
        found = region if _enough(criterion, region).any() else _grown(criterion, region, check)
        return _result(criterion, _reduced(criterion, found, check), asked)


def without_needless(desk: Desk, asked: Question, check: Check) -> dict[str, Any]:
    """What is left of the region shown when all cells that are not needed are taken out, in the best of some orders."""
    criterion, region = _begin(desk, asked)
    with stage("search", 1):
        if not _enough(criterion, region).any():
            raise OptionError(
                f"What is shown is not enough for {desk.net.name}, so nothing can go; show more, or find a set."
            )
        return _result(criterion, _reduced(criterion, region, check), asked)


def find_all(desk: Desk, asked: Question, *, below: bool = True) -> Evidence:
    """The evidence of an image by the usual settings, with what lies ``below`` its explanations or without."""
    _check_grid(asked.grid)
    settings = Settings(grid=asked.grid, baseline=asked.baseline, threshold=ENOUGH, expanded_mses=None if below else 0)
    picture = desk.pictures[asked.image]
    # As pixels, so that random baselines are those of the bench; under the name that people know.
    images = Images([replace(open_images(desk.see(asked.image).pixels[0].cpu())[0], name=picture.name)])
    target = int(desk.probe(asked).targets[0])
    return next(iter(EvidenceStream(desk.net, images, target, settings, desk.runner)))


def evidence_message(evidence: Evidence) -> dict[str, Any]:
    """Evidence for the page: its MSEs, the graph as a picture, and which cells each of its nodes has."""
    graph = evidence.graph()
    drawn = graph.to_svg()
    return {
        "label": evidence.label,
        "confidence": evidence.confidence,
        "grid": evidence.grid.side,
        "why": evidence.why,
        "questions": evidence.questions,
        "mses": [{"cells": list(mse.cells), "ratio": mse.ratio, "certified": mse.certified} for mse in evidence.mses],
        "nodes": [list(node.cells) for node in graph.nodes],
        "svg": drawn,
        "dark": darkened(drawn),
    }


def _begin(desk: Desk, asked: Question) -> tuple[Criterion, Tensor]:
    _check_grid(asked.grid)
    probe = desk.probe(asked)
    settings = Settings(grid=asked.grid, baseline=asked.baseline)
    if not float(probe.whole[0]) >= settings.min_confidence:
        raise OptionError(
            f"{desk.net.name} gives {desk.label(int(probe.targets[0]))} {float(probe.whole[0]):.2g} on the whole "
            f"image; ratios to less than {settings.min_confidence} mean nothing. Choose another class."
        )
    return Criterion.of(probe, settings), probe.grid.from_cells([asked.cells], probe.device)


def _check_grid(side: int) -> None:
    if side > FINEST_SEARCH:
        raise OptionError(
            f"Searches are made on grids of up to {FINEST_SEARCH}×{FINEST_SEARCH} cells, not {side}×{side}."
        )


def _enough(criterion: Criterion, regions: Tensor) -> Tensor:
    return criterion.ask(torch.zeros(len(regions), dtype=torch.long, device=regions.device), regions).suffices


def _grown(criterion: Criterion, region: Tensor, check: Check) -> Tensor:
    """The sets that are enough after the fewest cells were added to a region [1], by a beam; best first."""
    grid, beam = criterion.probe.grid, region
    while True:
        check()
        _, _, larger = grid.with_each(beam)
        larger = torch.unique(larger, dim=0)
        answers = criterion.ask(torch.zeros(len(larger), dtype=torch.long, device=larger.device), larger)
        best = answers.ratio.sort(descending=True, stable=True).indices
        enough = best[answers.suffices[best]][:WIDTH]
        if len(enough):
            return larger[enough]
        beam = larger[best[:WIDTH]]


def _reduced(criterion: Criterion, regions: Tensor, check: Check) -> Tensor:
    """Minimal sets within regions [K] that suffice, by several orders."""
    grid, device = criterion.probe.grid, regions.device
    zeros = torch.zeros(grid.cells, dtype=torch.long, device=device)
    alone = criterion.ask(zeros, grid.single(torch.arange(grid.cells, device=device))).ratio
    random = torch.Generator().manual_seed(0)
    shuffled = [torch.randperm(grid.cells, generator=random).to(device) for _ in range(ORDERS - 1)]
    orders = torch.stack([alone.sort(stable=True).indices, *shuffled])  # first those that say least alone
    holds = sufficient(criterion)

    def still(slot: Tensor, region: Tensor) -> Tensor:
        check()
        return holds(slot, region)

    count = len(regions)
    many = regions.repeat_interleave(ORDERS, dim=0)
    slots = torch.zeros(len(many), dtype=torch.long, device=device)
    return reduce_sets(grid, slots, many, orders.repeat(count, 1), still).region


def _result(criterion: Criterion, regions: Tensor, asked: Question) -> dict[str, Any]:
    """The smallest of some sets, and of equally small ones the strongest."""
    grid = criterion.probe.grid
    ratios = criterion.ask(torch.zeros(len(regions), dtype=torch.long, device=regions.device), regions).ratio.tolist()
    cells = grid.to_cells(regions)
    _, ratio, chosen = min((len(c), -r, c) for c, r in zip(cells, ratios, strict=True))
    return {"grid": asked.grid, "cells": list(chosen), "ratio": -ratio, "found": len(cells)}
