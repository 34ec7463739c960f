"""Small real networks with random weights, for tests of methods."""

import copy

import torch
from torch import nn

from suffice.vision import Classifier

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


class SmallCNN(nn.Module):
    """Two convolutions, the second's output a map of 8×8."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(8, 12, 3, padding=1, stride=2), nn.Tanh())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 5))

    def forward(self, x):
        return self.head(self.pool(self.second(self.first(x))).flatten(1)) * 4


class TutorialCNN(nn.Module):
    """As beginners write it: one pool for all stages, and maps flattened with ``view``."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 5)
        self.second = nn.Conv2d(6, 16, 5)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(16 * 5 * 5, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.first(x)))
        x = self.pool(torch.relu(self.second(x)))
        return self.head(x.view(-1, 16 * 5 * 5))


def tutorial_cnn():
    torch.manual_seed(0)
    return Classifier(TutorialCNN(), size=32, mean=MEAN, std=STD, name="tutorial-cnn")


def small_cnn(dtype=torch.float32, **options):
    torch.manual_seed(0)
    return Classifier(SmallCNN().to(dtype).eval(), size=32, mean=MEAN, std=STD, name="small-cnn", **options)


def renormalized(net, mean, std):
    """The same function of pixels for inputs that are normalized otherwise, by another first convolution."""
    module = copy.deepcopy(net.module)
    first = next(part for part in module.modules() if isinstance(part, nn.Conv2d))
    assert first.in_channels == 3
    assert first.padding == (0, 0)  # it would be another color
    (m, s), (own_mean, own_std) = (torch.tensor(v, dtype=torch.float64) for v in ((mean, std), (net.mean, net.std)))
    with torch.no_grad():
        weight = first.weight.double()
        first.bias += (weight * ((m - own_mean) / own_std).view(1, 3, 1, 1)).sum(dim=(1, 2, 3)).to(first.bias)
        first.weight.copy_(weight * (s / own_std).view(1, 3, 1, 1))
    return net.replace(module=module, mean=mean, std=std)


def pictures(count=3, size=32, seed=1):
    """Smooth random pixels, [N, 3, size, size] in [0, 1]."""
    noise = torch.rand(count, 3, 6, 6, generator=torch.Generator().manual_seed(seed))
    return nn.functional.interpolate(noise, size, mode="bicubic").clamp(0, 1)


def assert_close(ours, theirs):
    """Each map within 1e-4 of its twin's largest value, and no twin constant."""
    for found, expected in zip(ours.double(), theirs, strict=True):
        assert expected.std() > 1e-3 * expected.abs().max() > 0
        assert (found - expected).abs().max() <= 1e-4 * expected.abs().max()
