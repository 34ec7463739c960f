"""Activations of channels, and how unevenly they are spread."""

import numpy as np
import pytest
import torch
from torch import nn

from suffice import Classifier
from suffice.compare import activations
from suffice.compare.channels import gini
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
