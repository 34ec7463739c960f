"""A network whose scores change a lot with every pixel, so that a metric that is slightly wrong is noticed."""

import torch

from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, SmallCNN, pictures


class SharpCNN(SmallCNN):
    """The small network with its logits spread around what it says of ordinary pictures."""

    def __init__(self):
        super().__init__()
        self.eval()
        mean, std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))
        with torch.no_grad():
            self.register_buffer("usual", super().forward((pictures(8, seed=9) - mean) / std).mean(dim=0))

    def forward(self, x):
        return 30 * (super().forward(x) - self.usual)


def sharp_module():
    torch.manual_seed(0)
    return SharpCNN().eval()


def sharp_cnn(**options):
    return Classifier(sharp_module(), size=32, mean=MEAN, std=STD, name="sharp-cnn", **options)
