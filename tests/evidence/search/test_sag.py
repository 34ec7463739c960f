"""The search of structured attention graphs as its authors wrote it, beside ours with its defects switched on."""

import functools

import pytest
import torch
from torch import nn
from torch.nn.functional import interpolate

from suffice.evidence import Settings, find_evidence
from suffice.evidence.search.seed_map import seed_map
from suffice.perturb import Runner
from suffice.vision import Classifier, open_images

GRID, WIDTH, CANDIDATES, MOST = 5, 3, 8, 10
SAG = Settings(
    grid=GRID,
    search="sag",
    beam_width=WIDTH,
    candidates=CANDIDATES,
    max_mses=MOST,
    max_size=None,
    minimal="single",
    deletion_orders=0,
    strict=True,
    cells="soft",
    baseline="black",
    min_confidence=0.0,
    expanded_mses=0,
)
DEFECTS = {"beam_off_by_one": True, "repeated_sets": True}


@functools.cache
def network():
    """Small and random, but so sure of its classes that parts of an image can be enough."""
    torch.manual_seed(4)
    module = nn.Sequential(
        nn.Conv2d(3, 12, 5, 2), nn.ReLU(), nn.Conv2d(12, 16, 5, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(6)
    )
    with torch.no_grad():
        module(torch.zeros(1, 3, 30, 30))
        module[5].weight *= 25
    return Classifier(module.double().eval(), size=30, mean=(0.5,) * 3, std=(0.25,) * 3)


@torch.no_grad()
def literal_roots(net, image, target, order):
    """Roots of one image [1, 3, H, W] by the published algorithm, one set of cells at a time."""
    asked = {}

    def probability(cells):
        if cells not in asked:
            shown = torch.zeros(GRID * GRID, dtype=torch.float64)
            shown[list(cells)] = 1
            mask = interpolate(shown.view(1, 1, GRID, GRID), net.size, mode="bilinear", align_corners=True)
            black = torch.zeros_like(image)
            mixed = net.normalize(image) * mask + net.normalize(black) * (1 - mask)
            asked[cells] = float(net.module(mixed).softmax(dim=1)[0, target])
        return asked[cells]

    enough = 0.9 * float(net.module(net.normalize(image)).softmax(dim=1)[0, target])

    def prune(cells):
        while True:
            left = cells
            for cell in sorted(cells):
                if probability(left - {cell}) > enough:
                    left = left - {cell}
            if left == cells:
                return cells
            cells = left

    beam, roots = [frozenset()], []
    for _ in range(GRID * GRID):
        candidates = []
        for cells in beam:
            outside = [cell for cell in order if cell not in cells]
            candidates += [cells | {cell} for cell in outside[:CANDIDATES]]
        if not candidates:
            break
        beam = []
        for cells in sorted(candidates, key=probability, reverse=True):
            if probability(cells) > enough:
                minimal = prune(cells)
                if minimal not in roots:
                    roots.append(minimal)
                continue
            beam.append(cells)
            if len(beam) > WIDTH:
                break
        if len(roots) > MOST:
            break
    return roots


@functools.cache
def images_and_roots():
    net = network()
    images = torch.rand(6, 3, 30, 30, generator=torch.Generator().manual_seed(2))
    targets = net.predict(images).targets
    ids = [one.id for one in open_images(images)]
    maps = seed_map(Runner(net), images, targets, SAG, ids).flatten(1)
    orders = maps.sort(dim=1, descending=True, stable=True).indices.tolist()
    roots = [literal_roots(net, images[i : i + 1], int(targets[i]), orders[i]) for i in range(len(images))]
    return images, roots


def found(**defects):
    evidence = find_evidence(network(), images_and_roots()[0], settings=SAG.changed(**defects))
    return [{frozenset(mse.cells) for mse in one.mses} for one in evidence]


def test_both_defects_together_give_the_roots_of_the_original():
    roots = images_and_roots()[1]
    assert sum(map(len, roots)) > 25
    assert found(**DEFECTS) == [set(own) for own in roots]


@pytest.mark.parametrize("defects", [{}, {"beam_off_by_one": True}, {"repeated_sets": True}], ids=str)
def test_one_defect_alone_does_not(defects):
    roots = [set(own) for own in images_and_roots()[1]]
    assert any(own != theirs for own, theirs in zip(found(**defects), roots, strict=True))
