"""Mean and standard deviation as people have them, and what cannot be meant."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision import transforms

from suffice.errors import OptionError
from suffice.vision import Classifier

HALF = (0.5, 0.5, 0.5)


def network(channels=3):
    return nn.Sequential(nn.Conv2d(channels, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))


def steps(*last):
    return transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor(), *last])


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor])
def test_any_sequence_of_numbers(kind):
    given = {"mean": kind([0.5, 0.25, 0.75]), "std": kind([0.5, 0.5, 1.0])}
    for net in (Classifier(network(), size=8, **given), Classifier(network(), preprocess=steps(), **given)):
        assert (net.mean, net.std) == ((0.5, 0.25, 0.75), (0.5, 0.5, 1.0))


@pytest.mark.parametrize(
    ("mean", "std", "said"),
    [
        (0.5, 0.5, r"mean=0.5; write three numbers"),
        (HALF, 0.5, r"std=0.5; write three numbers"),
        ((123.7, 116.3, 103.5), (58.4, 57.1, 57.4), "divide mean= and std= by 255"),
        (HALF, (0.2, 0.0, 0.2), "numbers above 0"),
        (HALF, (0.2, float("nan"), 0.2), "numbers above 0"),
    ],
)
def test_what_cannot_be_meant_for_pixels_from_0_to_1(mean, std, said):
    with pytest.raises(OptionError, match=said):
        Classifier(network(), size=8, mean=mean, std=std)


def test_one_number_for_a_module_of_color_images():
    with pytest.raises(OptionError, match=r"3 channels, and images here have 1. Write .* three numbers"):
        Classifier(network(), size=8, mean=(0.5,), std=(0.5,))


@pytest.mark.parametrize("number", [0.5, [0.5], (0.5,), torch.tensor(0.5)])
def test_a_normalization_by_one_number_is_one_of_all_channels(number):
    transform, picture = steps(transforms.Normalize(number, number)), Image.new("RGB", (20, 20), (200, 10, 90))
    net = Classifier(network(), preprocess=transform)
    assert net.mean == net.std == HALF
    with torch.no_grad():
        expected = net.module.eval()(transform(picture)[None]).softmax(dim=1)
    torch.testing.assert_close(net.predict(picture).scores, expected)


def test_another_preprocessing_brings_its_own_numbers():
    net = Classifier(network(), size=16, mean=HALF, std=HALF)
    other = net.replace(preprocess=steps(transforms.Normalize((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))))
    assert (other.size, other.mean, other.std) == ((8, 8), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    other = net.replace(preprocess=steps())
    assert (other.size, other.mean, other.std) == ((8, 8), HALF, HALF)
