"""What a network is trained on."""

import pytest
import torch
from torch import nn

from suffice.errors import OptionError
from suffice.zoo.training import Examples, Recipe, TrainingData, train


def test_data_that_cannot_be_trained_on():
    pixels, labels = torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 0, 1])
    good = Examples(pixels, labels)
    with pytest.raises(OptionError, match="uint8"):
        Examples(pixels.float(), labels)
    with pytest.raises(OptionError, match="one per image"):
        Examples(pixels, labels[:3])
    with pytest.raises(OptionError, match="two or more"):
        TrainingData(good, good, ("one",))
    with pytest.raises(OptionError, match="from 0 to 5; expected 0 to 1"):
        TrainingData(good, Examples(pixels, labels * 5), ("a", "b"))
    with pytest.raises(OptionError, match="differ in size"):
        TrainingData(good, Examples(pixels[..., :4], labels), ("a", "b"))
    with pytest.raises(OptionError, match="test and validation images"):
        TrainingData(good, good, ("a", "b"), test=Examples(pixels[..., :4, :4], labels))
    with pytest.raises(OptionError, match="no validation image"):
        TrainingData(good, good[:0], ("a", "b"))
    with pytest.raises(OptionError, match="crop= is 8"):
        train(nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), TrainingData(good, good, ("a", "b")), Recipe(crop=8))
