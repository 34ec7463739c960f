"""Activations of channels, and how unevenly they are spread."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from suffice import Classifier
from suffice.compare import Activations, activations
from suffice.compare.channels import gini
from suffice.compare.of_cross import of_activations
from suffice.errors import UnreadableImage


class Channels(nn.Module):
    """A network whose last channels are the image times known numbers."""

    def __init__(self, strengths):
        super().__init__()
        self.features = nn.Conv2d(3, len(strengths), 1, bias=False)
        with torch.no_grad():
            self.features.weight.copy_(torch.tensor(strengths)[:, None, None, None].expand(-1, 3, 1, 1) / 3)
        self.last = nn.ReLU()
        self.head = nn.Linear(len(strengths), 2)

    def forward(self, x):
        return self.head(self.last(self.features(x)).mean(dim=(2, 3)))


def classifier(strengths):
    return Classifier(Channels(strengths), size=8, mean=(0,) * 3, std=(1,) * 3, name="channels")


def pictures():
    pixels = torch.full((3, 3, 8, 8), 0.25)
    for number, bright in enumerate((0.5, 0.75, 1.0)):
        pixels[number, :, number, number] = bright  # the largest of each image
    return pixels


def test_the_largest_activation_of_each_channel_and_image():
    found = activations(classifier([1.0, 4.0, 2.0]), pictures())
    assert found.layer == "last"
    expected = torch.tensor([[0.5], [0.75], [1.0]]) * torch.tensor([1.0, 4.0, 2.0])
    torch.testing.assert_close(found.maxima, expected)
    assert found.sorted_means == pytest.approx([3.0, 1.5, 0.75])
    assert len(found.names) == 3


def test_dominance_orders_networks_as_they_are():
    even, uneven = (activations(classifier(s), pictures()).dominance for s in ([1.0] * 5, [9.0, 1.0, 1.0, 1.0, 1.0]))
    assert even == pytest.approx(0, abs=1e-6)
    assert uneven > 0.4
    found = activations(classifier([9.0, 1.0, 1.0]), pictures())
    low, high = found.interval(draws=50)
    assert low <= found.dominance <= high


@pytest.mark.parametrize("images", [10, 40])
def test_intervals_cover_the_dominance_of_any_number_of_images(images):
    random = np.random.default_rng(3)
    means, covered = random.lognormal(0, 0.5, 64), 0
    for _ in range(300):
        maxima = means * random.lognormal(0, 0.8, (images, 64))  # whose means have the same proportions
        low, high = Activations("some", "layer", torch.from_numpy(maxima)).interval(draws=199)
        covered += low <= gini(means) <= high
    assert 0.9 < covered / 300 < 0.99


def test_an_interval_holds_what_was_seen_and_a_single_image_has_none():
    random = np.random.default_rng(4)
    found = Activations("some", "layer", torch.from_numpy(random.exponential(size=(3, 500))))
    low, high = found.interval(draws=50, level=0.5)
    assert low < high == found.dominance  # most of what was seen is chance
    alone = Activations("some", "layer", found.maxima[:1])
    assert all(map(math.isnan, alone.interval()))
    assert str(of_activations({"some": alone}, "inside").rows[0][3]) == f"{alone.dominance:.3g}"


def test_gini_is_the_mean_difference():
    values = np.random.default_rng(0).random(20)
    pairs = np.abs(values[:, None] - values[None]).mean() / (2 * values.mean())
    assert gini(values) == pytest.approx(pairs)
    assert gini(np.zeros(3)) == 0
    assert gini(np.array([-1.0, 0, 2, 2])) == pytest.approx(0.5)


def test_no_image_that_can_be_read(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(UnreadableImage, match="None of the images"):
        activations(classifier([1.0]), tmp_path, on_error="skip")
