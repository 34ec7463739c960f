"""Small changes of images, and what MSEs are worth under them."""

import pytest
import torch

from suffice.evidence.beyond.stability import CHANGES, jpeg, other_baseline, ratios_under_changes, shift
from suffice.perturb import Runner
from suffice.testing import AnyOf
from suffice.testing.oracle import Oracle
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
    under = ratios_under_changes(block)
    assert [[list(mse) for mse in image] for image in under] == [
        [["jpeg", "shift", "baseline", "precision"]] * len(e.mses) for e in block.evidence
    ]
    assert all(m.cells == (4,) for e in block.evidence for m in e.mses)
    # Black over the bright cell 0 of the second image makes the model surer than the whole image does.
    dark, bright = (torch.tensor([3.0, 0.5]).sigmoid()).tolist()
    assert under[0][0]["jpeg"] == pytest.approx(1.0, abs=0.02)
    assert under[1][0]["jpeg"] == pytest.approx(dark / bright, abs=0.02)
    assert under[1][0]["precision"] == pytest.approx(dark / bright, abs=0.02)
    # Gray (of this model, black) hides as black does.
    assert under[1][0]["baseline"] == pytest.approx(dark / bright, abs=1e-3)


def test_another_change_can_be_added(monkeypatch):
    monkeypatch.setitem(CHANGES, "darker", lambda pixels: pixels * 0.4)  # below where an oracle sees anything
    block = block_of(AnyOf([(1, 2)], grid=3))
    under = ratios_under_changes(block)[0][0]
    assert under["darker"] == pytest.approx(1.0)  # the whole image, too, is nothing then
    assert list(under)[:3] == ["jpeg", "shift", "darker"]


def test_every_forward_is_counted_and_weights_are_rounded_once(monkeypatch):
    block = block_of(AnyOf([(1, 2), (5,)], grid=3))
    before = block.runner.counters.forwards
    ratios_under_changes(block)
    # For each of four changes: the whole image, the baseline alone, two MSEs.
    assert block.runner.counters.forwards - before == 16
    made = []
    monkeypatch.setattr(Runner, "_prepare", lambda self: made.append(self))
    ratios_under_changes(block)
    assert not made
