"""Maps that know nothing of the model."""

import torch

from suffice.attribution import attribute
from tests.attribution.nets import pictures, small_cnn


def test_chance_depends_on_image_and_seed_alone():
    images = pictures(3)
    net, other = small_cnn(), small_cnn()
    with torch.no_grad():
        for weight in other.module.parameters():
            weight.mul_(-1)
    maps = attribute(net, images, "random").maps
    assert maps.shape == (3, 7, 7)
    assert torch.equal(attribute(other, images, "random").maps, maps)
    assert torch.equal(attribute(net, images[1:], "random").maps, maps[1:])
    assert not torch.equal(attribute(net, images, "random", seed=1).maps, maps)
    assert attribute(net, images, "random", grid=4).maps.shape == (3, 4, 4)
    assert len(maps.flatten(1).unique(dim=0)) == 3


def test_the_middle_is_highest_and_the_same_in_every_image():
    net = small_cnn()
    maps = attribute(net, pictures(2), "center").maps
    assert maps.shape == (2, *net.size)
    assert torch.equal(maps[0], maps[1])
    torch.testing.assert_close(maps, maps.flip(1))
    torch.testing.assert_close(maps, maps.transpose(1, 2))
    down = maps[0, :, 0]
    half = len(down) // 2
    assert (down[:half].diff() > 0).all()
