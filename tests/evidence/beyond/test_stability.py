"""Small changes of images, and what MSEs are worth under them."""

from dataclasses import replace

import pytest
import torch

from suffice.evidence import find_evidence
from suffice.evidence.beyond.stability import CHANGES, answers_under_changes, jpeg, other_baseline, shift
from suffice.evidence.graph.words import about_mse
from suffice.perturb import Runner
from suffice.testing import AnyOf
from suffice.testing.oracle import Oracle
from suffice.vision import Classifier
from tests.evidence.blocks import block_of


def test_jpeg_is_close_and_not_the_same():
    pixels = torch.rand(2, 3, 32, 40, generator=torch.Generator().manual_seed(0)).mul(0.2).add(0.4)
    changed = jpeg(pixels)
    assert changed.shape == pixels.shape
    assert 0.005 < (changed - pixels).abs().mean() < 0.06
    flat = torch.full((1, 3, 16, 16), 128 / 255)
    torch.testing.assert_close(jpeg(flat), flat, atol=1 / 255, rtol=0)


def test_shift_moves_right_and_down():
    pixels = torch.arange(12.0).view(1, 1, 3, 4).expand(1, 3, 3, 4)
    assert shift(pixels)[0, 0].tolist() == [[0, 0, 1, 2], [0, 0, 1, 2], [4, 4, 5, 6]]


@pytest.mark.parametrize(
    ("baseline", "second", "other"),
    [("blur", None, "gray"), ("gray", None, "blur"), ("mean", None, "blur"), ("blur", "black", "black")],
)
def test_the_other_baseline(baseline, second, other):
    assert other_baseline(baseline, second) == other


class Sharp(Oracle):
    """Class 1 needs cell 4 bright, and is as sure as cell 0 is dark."""

    def __init__(self):
        super().__init__(3, range(9))

    def decide(self, visible):
        return visible[:, 4]

    def log_odds(self, visibility):
        return torch.where(visibility[:, 4] > 0.5, 3.0 - 2.5 * visibility[:, 0], -4.0).double()


def test_ratios_are_to_the_whole_changed_image():
    block = block_of(Sharp(), [(0,), ()], second_baseline="gray", stability=True)
    under = answers_under_changes(block)
    assert [[list(mse) for mse in image] for image in under] == [
        [["jpeg", "shift", "baseline", "precision"]] * len(e.mses) for e in block.evidence
    ]
    assert all(m.cells == (4,) for e in block.evidence for m in e.mses)
    # Black over the bright cell 0 of the second image makes the model surer than the whole image does.
    dark, bright = (torch.tensor([3.0, 0.5]).sigmoid()).tolist()
    assert under[0][0]["jpeg"].ratio == pytest.approx(1.0, abs=0.02)
    assert under[1][0]["jpeg"].ratio == pytest.approx(dark / bright, abs=0.02)
    assert under[1][0]["precision"].ratio == pytest.approx(dark / bright, abs=0.02)
    # Gray (of this model, black) hides as black does.
    assert under[1][0]["baseline"].ratio == pytest.approx(dark / bright, abs=1e-3)


def test_another_change_can_be_added(monkeypatch):
    monkeypatch.setitem(CHANGES, "darker", lambda pixels: pixels * 0.4)  # below where an oracle sees anything
    block = block_of(AnyOf([(1, 2)], grid=3))
    under = answers_under_changes(block)[0][0]
    assert under["darker"].ratio == pytest.approx(1.0)  # the whole image, too, is nothing then
    assert list(under)[:3] == ["jpeg", "shift", "darker"]


def test_every_forward_is_counted_and_weights_are_rounded_once(monkeypatch):
    block = block_of(AnyOf([(1, 2), (5,)], grid=3))
    before = block.runner.counters.forwards
    answers_under_changes(block)
    # For each of four changes: the whole image, the baseline alone, two MSEs.
    assert block.runner.counters.forwards - before == 16
    made = []
    monkeypatch.setattr(Runner, "_prepare", lambda self: made.append(self))
    answers_under_changes(block)
    assert not made


class Slides(torch.nn.Module):
    """Class 1 wins where the upper left cell of a 2×2 grid is bright, by less the darker the image is at its edge."""

    def forward(self, x):
        bright = x[:, :, :2, :2].mean(dim=(1, 2, 3))
        return torch.stack([0.5 * torch.ones_like(bright), bright, 0.9 * (x[:, 0, 0, 0] < 0.5)], dim=1)


def test_stability_is_by_what_must_be_kept(monkeypatch):
    """A set that keeps the class on top need not keep nine tenths of the confidence, before a change or after it."""
    monkeypatch.setitem(CHANGES, "dark corner", lambda pixels: pixels.clone().index_fill_(2, torch.tensor([0]), 0.0))
    net = Classifier(Slides(), size=4, mean=(0,) * 3, std=(1,) * 3)
    asked = {"targets": 1, "grid": 2, "baseline": "black", "stability": True, "second_baseline": "black"}
    found = find_evidence(net, torch.ones(1, 3, 4, 4), keeps="top-1", threshold=1.0, **asked)[0]
    (mse,) = found.mses
    assert (mse.cells, mse.margin) == ((0,), None)
    assert mse.stays == {"jpeg": True, "shift": True, "dark corner": False, "baseline": True, "precision": True}
    assert found.stability == pytest.approx(4 / 5)
    assert "threshold" not in about_mse(mse, 0)


def test_a_ratio_that_lies_on_the_threshold_stays():
    block = block_of(Sharp(), [(0,), ()], second_baseline="gray", stability=True)
    exactly = answers_under_changes(block)[0][0]["precision"].ratio
    at = [replace(e, settings=e.settings.changed(threshold=min(exactly, 1.0))) for e in block.evidence]
    assert answers_under_changes(replace(block, evidence=at))[0][0]["precision"].suffices
