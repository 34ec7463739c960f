"""Sensitivity to small changes of the image."""

import pytest
import torch
from captum.metrics import sensitivity_max as captum_sensitivity

from suffice.attribution import attribute
from suffice.errors import OptionError
from suffice.metrics import measure
from suffice.testing import CHECKS
from suffice.vision import open_images
from suffice.vision.identity import image_seed
from suffice.vision.noise import uniform_noise
from tests.attribution.nets import pictures, small_cnn


@pytest.mark.parametrize("space", ["pixels", "imagenet"])
def test_sensitivity_agrees_with_captum(space):
    net, images = small_cnn(), 0.1 + 0.8 * pictures(3)  # so that no change leaves [0, 1]
    found = attribute(net, images, "gradient", targets=[1, 2, 3])
    scores = measure(net, images, found, "sensitivity-max", samples=4, radius=0.05, space=space)

    seeds = torch.tensor([image_seed(0, picture.id) for picture in open_images(images)])
    reach = 0.05 * (torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1) if space == "imagenet" else 1)
    draws = [uniform_noise(seeds, torch.full((3,), k), (3, 32, 32)) * 2 - 1 for k in range(4)]
    changed = torch.stack([images + draw * reach for draw in draws], dim=1).flatten(0, 1)

    def explained(pixels, target):
        return (attribute(net, pixels, "gradient", targets=target).maps,)

    expected = captum_sensitivity(
        explained, images, perturb_func=lambda pixels: changed, n_perturb_samples=4, target=torch.tensor([1, 2, 3])
    )
    torch.testing.assert_close(scores.values, expected.flatten(), rtol=1e-4, atol=1e-6)
    assert scores.values.min() > 0


@pytest.mark.parametrize("method", ["gradient", "smoothgrad", "rise"])
def test_nothing_changes_where_nothing_is_changed(method):
    """A method's own randomness is no part of its sensitivity."""
    options = {"rise": {"masks": 20}, "smoothgrad": {"samples": 3}}.get(method, {})
    net, images = small_cnn(), pictures(3)
    found = attribute(net, images, method, seed=5, **options)
    still = measure(net, images, found, "sensitivity-max", samples=2, radius=0.0)
    assert still.values.tolist() == pytest.approx([0, 0, 0], abs=1e-5)
    moved = measure(net, images, found, "sensitivity-max", samples=2, batch_size=2)
    assert moved.values.min() > 1e-4


def test_a_function_gets_as_many_images_as_fit():
    def gradient(net, pixels, targets):
        with torch.enable_grad():
            leaf = pixels.detach().requires_grad_()
            score = net(leaf).gather(1, targets[:, None]).sum()
            return torch.autograd.grad(score, leaf)[0].sum(dim=1)

    def run(net, images):
        maps = torch.cat([gradient(net, image[None], torch.tensor([1])) for image in images])
        return measure(net, images, maps, "sensitivity-max", targets=1, samples=2, method=gradient).values

    CHECKS["memory"](run, small_cnn(), pictures(3))


def test_sensitivity_of_maps_made_elsewhere():
    net, images = small_cnn(), pictures(2)

    def brightness(net, pixels, targets):
        return pixels.mean(dim=1)

    found = measure(net, images, images.mean(dim=1), "sensitivity-max", method=brightness)
    assert 0 < found.mean < 0.02 / float(images.mean())
    with pytest.raises(OptionError, match="returned instead of bare maps"):
        measure(net, images, images.mean(dim=1), "sensitivity-max")
    with pytest.raises(OptionError, match=r"makes maps \[2, 32, 32\], but \[2, 8, 8\] were given"):
        measure(net, images, torch.rand(2, 8, 8), "sensitivity-max", method=brightness)
    zero = measure(
        net, images, torch.zeros(2, 32, 32), "sensitivity-max", method=lambda n, p, t: torch.zeros(2, 32, 32)
    )
    assert zero.values.tolist() == [0, 0]
