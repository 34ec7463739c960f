"""Modules that take other images than color ones, or have other classes than labels."""

import pytest
import torch
from torch import nn

import suffice
from suffice.errors import OptionError

HALF = {"size": 16, "mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}
GRAY = {"size": 16, "mean": (0.5,), "std": (0.25,)}


def network(channels, classes=3):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, classes),
    ).eval()  # fmt: skip


def test_a_model_of_gray_images_sees_their_gray():
    module, gray = network(1), torch.rand(2, 1, 16, 16)
    net = suffice.Classifier(module, **GRAY)
    torch.testing.assert_close(net(gray.expand(-1, 3, -1, -1)), module((gray - 0.5) / 0.25).softmax(dim=1))
    red = torch.zeros(1, 3, 16, 16)
    red[:, 0] = 1.0
    torch.testing.assert_close(net(red), module(torch.full((1, 1, 16, 16), (0.299 - 0.5) / 0.25)).softmax(dim=1))


def test_everything_goes_on_in_color_with_it():
    module, gray = network(1), torch.rand(2, 1, 16, 16)
    net = suffice.Classifier(module, **GRAY)
    assert net.replace(score="logit").module is net.module
    maps = suffice.attribute(net, gray, ["gradient", "grad-cam", "occlusion"], window=4, stride=4)
    named = suffice.attribute(net, gray, "grad-cam", layer=module[3])
    torch.testing.assert_close(named.maps, maps["grad-cam"].maps)
    assert suffice.measure(net, gray, maps["gradient"], "deletion", steps=4).values.isfinite().all()
    assert len(suffice.find_evidence(net, gray, grid=2)) == 2


@pytest.mark.parametrize(
    ("channels", "said"),
    [(1, r"1 channel, and images here have 3. Write mean= and std= with one number each"), (4, r"4 channels.*Wrap it")],
)
def test_other_channels_are_refused_when_it_is_wrapped(channels, said):
    with pytest.raises(OptionError, match=said):
        suffice.Classifier(network(channels), **HALF)
    with pytest.raises(OptionError, match=said):
        suffice.load("timm/resnet10t", pretrained=False, in_chans=channels, device="cpu")


def test_a_module_that_makes_its_own_channels_is_not():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network(1)

        def forward(self, images):
            return self.inner(images.mean(dim=1, keepdim=True))

    assert suffice.Classifier(Own(), **HALF)(torch.rand(1, 3, 16, 16)).shape == (1, 3)


def test_a_wrong_number_of_labels_is_said_at_once():
    with pytest.raises(OptionError, match="Sequential has 3 classes, and 2 labels were given"):
        suffice.Classifier(network(3), labels=["cat", "dog"], **HALF)
    with pytest.raises(OptionError, match="has 10 classes, and 1 label was given"):
        suffice.load("timm/resnet10t", pretrained=False, num_classes=10, labels=["cat"], device="cpu")
    assert suffice.Classifier(network(3), labels=["a", "b", "c"], **HALF).labels == ["a", "b", "c"]


def test_a_head_that_is_not_the_last_layer_is_tried():
    class Twisted(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.body = nn.Linear(8, 2), nn.Linear(3 * 16 * 16, 8)

        def forward(self, images):
            return self.head(self.body(images.flatten(1)))

    assert suffice.Classifier(Twisted(), labels=["a", "b"], **HALF).labels == ["a", "b"]
