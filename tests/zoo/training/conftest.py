"""A problem that is learned in a second, and networks for it."""

import pytest
import torch
from torch import nn

from suffice.zoo.training import Examples, TrainingData


def bars(count: int, seed: int) -> Examples:
    """Noise with a bright bar: at the top (class 0), the left (1) or the right (2)."""
    draw = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 120, (count, 3, 8, 8), generator=draw)
    labels = torch.arange(count) % 3
    pixels[labels == 0, :, :2, :] += 130
    pixels[labels == 1, :, :, :2] += 130
    pixels[labels == 2, :, :, 6:] += 130
    return Examples(pixels.to(torch.uint8), labels)


@pytest.fixture(scope="session")
def data() -> TrainingData:
    return TrainingData(bars(240, 0), bars(60, 1), ("top", "left", "right"), name="bars", test=bars(60, 2))


def _net(seed: int = 0, classes: int = 3, dropout: float = 0.1) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2),
            nn.Flatten(), nn.Dropout(dropout), nn.Linear(128, classes),
        )  # fmt: skip


@pytest.fixture
def net():
    """Makes a small network with batch normalization and dropout."""
    return _net


class TwoHeads(nn.Module):
    """As timm's distilled networks: both heads in training when asked, their mean otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU())
        self.head, self.head_dist = nn.Linear(16, 3), nn.Linear(16, 3)
        self.distilled_training = False

    def set_distilled_training(self, enable: bool = True) -> None:
        self.distilled_training = enable

    def forward(self, x):
        x = self.body(x)
        a, b = self.head(x), self.head_dist(x)
        return (a, b) if self.distilled_training and self.training else (a + b) / 2


@pytest.fixture
def two_heads():
    torch.manual_seed(5)
    return TwoHeads()
