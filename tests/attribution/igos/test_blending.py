"""Cells are enlarged as torch does it, with the same gradient."""

import pytest
import torch
from torch.nn.functional import interpolate

from suffice.attribution.igos.blending import enlarged, masked_inputs

SHOWN, HIDDEN = torch.rand(2, 2, 3, 9, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("cells", [(1, 1), (4, 4), (5, 3), (9, 12)])
def test_enlarging_has_the_gradient_of_interpolation(cells):
    values = torch.rand(3, *cells, dtype=torch.float64, requires_grad=True)
    cotangent = torch.rand(3, 9, 12, dtype=torch.float64)
    expected = interpolate(values[:, None], (9, 12), mode="bilinear", align_corners=True)[:, 0]
    torch.testing.assert_close(enlarged(values, (9, 12)), expected)
    wanted = torch.autograd.grad((expected * cotangent).sum(), values)
    torch.testing.assert_close(torch.autograd.grad((enlarged(values, (9, 12)) * cotangent).sum(), values), wanted)


def blended(deleted, inserts, fraction, deviations=None, channels_last=False):
    images = [i.permute(0, 2, 3, 1).contiguous() if channels_last else i for i in (SHOWN, HIDDEN)]
    index, rows = torch.tensor([1, 0]), torch.arange(2)
    flags, fractions = torch.tensor([inserts] * 2), torch.tensor([fraction] * 2, dtype=torch.float64)
    return masked_inputs(
        *images, index, deleted, flags, fractions, rows, rows, deviations, torch.float64, channels_last
    )


def test_what_is_kept_shows_the_image_or_its_baseline():
    nothing, everything = torch.zeros(2, 2, 4, 4).double(), torch.ones(2, 2, 4, 4).double()
    torch.testing.assert_close(blended(nothing, False, 1.0), SHOWN[[1, 0]])
    torch.testing.assert_close(blended(nothing, True, 1.0), HIDDEN[[1, 0]])
    torch.testing.assert_close(blended(everything, False, 1.0), HIDDEN[[1, 0]])
    torch.testing.assert_close(blended(nothing, False, 0.25), torch.lerp(HIDDEN, SHOWN, 0.25)[[1, 0]])
    torch.testing.assert_close(blended(nothing + 0.5, True, 1.0), torch.lerp(HIDDEN, SHOWN, 0.75)[[1, 0]])


def test_the_layout_changes_nothing_but_the_layout():
    deleted, deviations = torch.rand(2, 2, 4, 4).double(), torch.tensor([0.1, 0.2, 0.3])[:, None, None]
    one, other = (blended(deleted, True, 0.5, deviations, last) for last in (False, True))
    torch.testing.assert_close(one, other)
    assert other.is_contiguous(memory_format=torch.channels_last)
    assert (one - blended(deleted, True, 0.5)).std() > 0.05


def test_each_channel_has_its_own_deviation():
    images, rows = torch.zeros(1, 3, 64, 64), torch.arange(3)
    how = (torch.zeros(3, dtype=torch.bool), torch.ones(3), rows, rows + 4)
    deviations = torch.tensor([0.4, 0.0, 0.1])[:, None, None]
    made = masked_inputs(images, images, 0 * rows, torch.zeros(3, 1, 2, 2), *how, deviations, torch.float32, False)
    assert made.std(dim=(2, 3)) == pytest.approx(torch.tensor([[0.4, 0.0, 0.1]] * 3), rel=0.05)
    assert not torch.equal(made[0], made[2])
