"""ImageNet's units, in pixels and in the inputs of models."""

import pytest
import torch

from suffice.vision.units import imagenet_normalized, imagenet_std, imagenet_unit, pixels_of_imagenet_normalized


def test_a_unit_is_one_deviation_of_imagenet():
    assert imagenet_std(3) == (0.229, 0.224, 0.225)
    # Exactly 1, so that nothing changes by as much as a bit for models with ImageNet's own normalization.
    assert imagenet_unit((0.229, 0.224, 0.225)) == (1, 1, 1)
    assert imagenet_unit((1 / 255,) * 3) == pytest.approx((58.395, 57.12, 57.375))


@pytest.mark.parametrize("channels", [1, 4])
def test_where_there_are_not_three_channels_each_has_the_mean_of_the_three(channels):
    assert imagenet_std(channels) == pytest.approx([0.226] * channels)
    assert imagenet_unit([0.5] * channels) == pytest.approx([0.452] * channels)
    found = imagenet_normalized(torch.full((2, channels, 4, 4), 0.449 + 0.226))
    torch.testing.assert_close(found, torch.ones(2, channels, 4, 4))


def test_pixels_come_back():
    pixels = torch.rand(2, 3, 5, 5)
    torch.testing.assert_close(pixels_of_imagenet_normalized(imagenet_normalized(pixels)), pixels)
    assert pixels_of_imagenet_normalized(torch.tensor([-9.0, 9.0]).view(1, 1, 1, 2)).flatten().tolist() == [0, 1]
