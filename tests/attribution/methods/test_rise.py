"""RISE against a literal twin, and its masks."""

import pytest
import torch
from scipy import ndimage

from suffice.attribution import attribute
from suffice.attribution.methods.rise import RandomMasks
from suffice.errors import OptionError
from suffice.testing import WeightedSum
from suffice.vision.noise import uniform_noise
from tests.attribution.nets import pictures, small_cnn

IMAGES, TARGETS = pictures(), [1, 4, 2]


@pytest.mark.parametrize("coverage", [False, True])
def test_equals_a_literal_twin_with_the_same_masks(coverage):
    net, count, share = small_cnn(), 60, 0.4
    masks = RandomMasks(count, 5, share, seed=3).make(torch.arange(count), (32, 32)).double()
    twins = []
    for image, target in zip(IMAGES, TARGETS, strict=True):
        total, seen = torch.zeros(32, 32).double(), torch.zeros(32, 32).double()
        for mask in masks:
            with torch.no_grad():
                said = net.scores(net.logits(net.normalize(image[None]) * mask.float()))[0, target]
            total += said * mask
            seen += mask
        twins.append(total / (seen if coverage else count * share))
    ours = attribute(net, IMAGES, "rise", TARGETS, masks=count, side=5, share=share, coverage=coverage, seed=3).maps
    torch.testing.assert_close(ours, torch.stack(twins).float(), rtol=1e-4, atol=1e-6)


def test_masks_are_smooth_shifted_and_cover_their_share():
    masks = RandomMasks(400, 7, 0.5, seed=0).make(torch.arange(400), (56, 56))
    assert masks.min() >= 0
    assert masks.max() <= 1
    assert abs(float(masks.mean()) - 0.5) < 0.02
    # Within a cell of 8 pixels a mask moves by at most an eighth a pixel.
    assert float(masks.diff(dim=1).abs().max()) <= 1 / 8 + 1e-5
    # By the random shift no place is favored: all are seen about equally often.
    assert float(masks.mean(dim=0).std()) < 0.05
    assert not torch.equal(masks[0], masks[1])


@pytest.mark.parametrize(("border", "mode"), [("reflect", "mirror"), ("edge", "nearest")])
@pytest.mark.parametrize(("side", "size"), [(7, (56, 56)), (7, (224, 224)), (5, (33, 48)), (1, (8, 8))])
def test_borders_are_those_of_scipy(border, mode, side, size):
    """The original enlarges grids by scikit-image's ``resize(mode="reflect")``, which is this zoom of SciPy."""
    made = RandomMasks(20, side, 0.5, seed=2, border=border)
    chance = uniform_noise(torch.full((20,), 2), torch.arange(20), (side * side + 2,))
    masks = made.make(torch.arange(20), size)
    for mask, numbers in zip(masks, chance, strict=True):
        grid = (numbers[2:] < 0.5).double().view(side, side).numpy()
        cell = [-(-length // side) for length in size]
        large = ndimage.zoom(grid, [(side + 1) * c / side for c in cell], order=1, mode=mode, grid_mode=True)
        top, left = (int(n * c) for n, c in zip(numbers[:2].tolist(), cell, strict=True))
        expected = torch.from_numpy(large[top : top + size[0], left : left + size[1]]).float()
        torch.testing.assert_close(mask, expected, rtol=0, atol=1e-5)
    if side > 1:
        other = RandomMasks(20, side, 0.5, seed=2, border="edge" if border == "reflect" else "reflect")
        assert float((other.make(torch.arange(20), size) - masks).abs().max()) > 0.3


def test_masks_depend_on_seed_and_number_alone():
    some = RandomMasks(100, 7, 0.5, seed=4, images=3)
    together = some.rows(slice(0, 300), (32, 32), torch.device("cpu"))
    assert torch.equal(together[30:36], some.rows(slice(30, 36), (32, 32), torch.device("cpu")))
    assert torch.equal(together[0], together[2])  # one mask for three images
    assert not torch.equal(together[2], together[3])
    other = RandomMasks(100, 7, 0.5, seed=5).make(torch.tensor([0]), (32, 32))
    assert not torch.equal(together[:1], other)


def test_the_cell_that_decides_is_found():
    oracle = WeightedSum({5: 1.0}, threshold=0.5, grid=4, link="smooth")
    maps = attribute(oracle.classifier(32), oracle.image(32), "rise", 1, masks=600, side=4, baseline="black").maps
    peak = int(maps[0].flatten().argmax())
    assert (peak // 32 // 8, peak % 32 // 8) == (1, 1)


def test_mistakes():
    with pytest.raises(OptionError, match="share=1"):
        attribute(small_cnn(), IMAGES, "rise", share=1.0)
