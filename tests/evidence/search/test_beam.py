"""One level of the search: candidates by a seed map, and the defects of the original that can be switched on."""

import pytest
import torch

from suffice.evidence import Settings, find_evidence
from suffice.evidence.search.beam import Beam
from suffice.perturb import Grid
from suffice.testing import WeightedSum

NONE = torch.tensor([False])  # no image is searched exhaustively


def beam_with_order(order, **changes):
    settings = Settings(grid=3, search="sag", **changes)
    beam = Beam(Grid(3), settings, 1, torch.device("cpu"))
    beam.order[0] = torch.tensor(order)
    beam.begin(torch.tensor([0]))
    return beam


def test_only_the_most_salient_cells_are_candidates():
    beam = beam_with_order([8, 0, 4, 1, 2, 3, 5, 6, 7], candidates=3)
    regions = beam.questions(torch.tensor([True]), NONE).region
    assert Grid(3).to_cells(regions) == [(0,), (4,), (8,)]
    beam.advance(torch.tensor([0.1, 0.2, 0.3]), torch.zeros(3, dtype=torch.bool), NONE)
    regions = beam.questions(torch.tensor([True]), NONE).region
    # From each of {0}, {4}, {8}: the three most salient cells that it does not have, each set once.
    assert Grid(3).to_cells(regions) == [(0, 1), (0, 4), (1, 4), (0, 8), (1, 8), (4, 8)]


@pytest.mark.parametrize(("extra", "size"), [(False, 2), (True, 3)])
def test_beam_width_is_exact_unless_the_defect_is_on(extra, size):
    beam = beam_with_order(range(9), candidates=9, beam_width=2, beam_off_by_one=extra)
    beam.questions(torch.tensor([True]), NONE)
    beam.advance(torch.rand(9), torch.zeros(9, dtype=torch.bool), NONE)
    assert len(beam.sets) == size


def test_repeated_sets_fill_the_beam_when_the_defect_is_on():
    beam = beam_with_order(range(9), candidates=9, repeated_sets=True)
    beam.questions(torch.tensor([True]), NONE)
    beam.advance(torch.arange(9.0) / 100, torch.zeros(9, dtype=torch.bool), NONE)
    regions = beam.questions(torch.tensor([True]), NONE).region
    assert len(regions) == 5 * 8
    assert len(regions.unique()) < len(regions)


def test_a_seed_map_leads_the_search_to_what_matters():
    weights = {10: 3.0, 11: 2.5, 37: 2.0, 38: 2.0}
    oracle = WeightedSum(weights, 4.0, 7, link="smooth", sharpness=1.5)
    found = find_evidence(
        oracle.classifier(28), oracle.image(28), targets=1, baseline="black", search="sag", candidates=6, max_size=4
    )[0]
    assert found.mses
    assert all(set(m.cells) <= set(weights) for m in found.mses)
    everything = find_evidence(oracle.classifier(28), oracle.image(28), targets=1, baseline="black", max_size=4)[0]
    assert found.questions < everything.questions / 3
