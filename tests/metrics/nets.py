"""Networks for tests of metrics: one whose scores change a lot with every pixel, and one that counts its inputs."""

import torch

from suffice.perturb import Runner
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, SmallCNN, pictures, small_cnn


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


def brightness(images):
    """Maps that depend on the image, with ties."""
    return (images.mean(dim=1) * 40).round()


class Shared(list):
    """A list that a copy of its owner shares: the model is copied for its memory layout."""

    def __deepcopy__(self, memo):
        return self


class Counting(torch.nn.Module):
    """A module that counts the inputs it gets and remembers its batches."""

    def __init__(self, module):
        super().__init__()
        self.module, self.batches = module, Shared()

    def forward(self, x):
        self.batches.append(len(x))
        return self.module(x)


def counting_runner(batch_size=4):
    """A runner, and the list of its batches."""
    net = small_cnn()
    runner = Runner(net.with_module(Counting(net.module)), batch_size=batch_size)
    batches = runner.module.batches
    batches.clear()  # looking for what can be folded takes a forward
    return runner, batches
