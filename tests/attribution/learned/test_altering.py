"""Images that are altered each time they are seen."""

import pytest
import torch

from suffice.attribution.learned.altering import LEAST, alter, draw_alterations


def test_parts_of_images_are_at_least_half_and_lie_inside():
    drawn = draw_alterations(500, seed=1)
    sides = drawn[:, 1, 1]
    assert float(sides.square().min()) >= LEAST - 1e-6
    assert float(sides.max()) <= 1
    assert torch.allclose(drawn[:, 0, 0].abs(), sides)
    assert float((drawn[:, :, 2].abs() + sides[:, None]).max()) <= 1 + 1e-6
    assert 0.4 < float((drawn[:, 0, 0] < 0).float().mean()) < 0.6


def test_a_quarter_of_an_image_fills_the_frame():
    image = torch.zeros(1, 3, 8, 8)
    image[..., :4, 4:] = 1
    corner = torch.tensor([[[0.5, 0, 0.5], [0, 0.5, -0.5]]])
    found = alter(image, corner)
    assert float(found[..., 1:-1, 1:-1].min()) == pytest.approx(1)


def test_draws_depend_on_the_seed_alone():
    assert torch.equal(draw_alterations(4, 7), draw_alterations(4, 7))
    assert not torch.equal(draw_alterations(4, 7), draw_alterations(4, 8))
