"""I-GOS, iGOS+ and iGOS++ once more: one image in float64, literally by the formulas, one forward at a time.

Masks are 1 where they keep and 0 where they delete, as in the papers.
"""

import copy
import math

import numpy as np
import torch
from torch import nn

from suffice.perturb import make_baseline
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD

SIGMA = 0.01
IMAGENET_MEAN = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64).view(3, 1, 1)
IMAGENET_STD = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64).view(3, 1, 1)


def corner_aligned(size, side):
    """The matrix that stretches a line of cells to a line of pixels, its ends on the ends."""
    place = np.arange(side) * (size - 1) / (side - 1)
    return torch.from_numpy(np.maximum(0, 1 - np.abs(place[:, None] - np.arange(size)[None, :])))


def alike(difference, gray):
    """How alike two pixels are whose colors differ so, [3]."""
    red, green, blue = difference.tolist()
    if gray:
        return math.exp(-(((red + green + blue) / 3) ** 2) / SIGMA)
    return sum(math.exp(-(d**2) / SIGMA) for d in (red, green, blue)) / 3


class Twin:
    """One image; noise(iteration, call, k) is added to the k-th step of the call-th integrated score."""

    def __init__(self, net, image, target, *, size, l1, l2, steps, btv="gray", noise=None):
        self.module = copy.deepcopy(net.module).double()
        self.x = net.normalize(image[None]).double()[0]
        self.in_imagenet_units = (image.double() - IMAGENET_MEAN) / IMAGENET_STD
        self.b = net.normalize(make_baseline("blur", image[None], mean=net.mean)).double()[0]
        self.target, self.size, self.l1, self.l2, self.steps, self.btv = target, size, l1, l2, steps, btv
        self.matrix = corner_aligned(size, image.shape[-1])
        self.noise = noise or (lambda iteration, call, k: 0.0)
        self.iteration = 0
        self.known_weights = None

    def up(self, m):
        return self.matrix @ m @ self.matrix.T

    def f(self, inputs):
        return self.module(inputs[None]).softmax(dim=1)[0, self.target]

    def integrated(self, a, b, mask, call):
        total = 0.0
        for k in range(1, self.steps + 1):
            part = (k / self.steps) * mask
            total = total + self.f(a * part + b * (1 - part) + self.noise(self.iteration, call, k))
        return total / self.steps

    def deletion(self, mask, call):
        return self.integrated(self.x, self.b, mask, call)

    def insertion(self, mask, call):
        return self.integrated(self.b, self.x, mask, call)

    def plain_tv(self, m):
        return ((m[1:] - m[:-1]) ** 2).mean() + ((m[:, 1:] - m[:, :-1]) ** 2).mean()

    def weights(self):
        """How alike vertical and horizontal neighbors of the image are, pair by pair."""
        x = self.in_imagenet_units
        height, width = x.shape[1:]
        vertical = torch.zeros(height - 1, width, dtype=torch.float64)
        horizontal = torch.zeros(height, width - 1, dtype=torch.float64)
        for r in range(height - 1):
            for c in range(width):
                vertical[r, c] = alike(x[:, r + 1, c] - x[:, r, c], self.btv in ("gray", "asymmetric"))
        for r in range(height):
            for c in range(width - 1):
                horizontal[r, c] = alike(x[:, r, c + 1] - x[:, r, c], self.btv == "gray")
        return vertical, horizontal

    def bilateral_tv(self, m):
        if self.known_weights is None:
            self.known_weights = self.weights()
        vertical, horizontal = self.known_weights
        fine = self.up(m)
        across_rows = (vertical * (fine[1:] - fine[:-1]) ** 2).mean()
        across_columns = (horizontal * (fine[:, 1:] - fine[:, :-1]) ** 2).mean()
        return 0.5 * (self.plain_tv(m) + across_rows + across_columns)

    def penalty(self, m):
        variation = self.plain_tv(m) if isinstance(self, IGos) else self.bilateral_tv(m)
        return self.l1 * (1 - m).abs().mean() + self.l2 * variation

    def line_search(self, masks, gradients, step):
        squared = sum(float((g**2).sum()) for g in gradients)
        before = float(self.loss(*masks))
        while step >= 1e-5:
            tried = [(m - step * g).clamp(0, 1) for m, g in zip(masks, gradients, strict=True)]
            if float(self.loss(*tried)) <= before - step * 1e-4 * squared:
                break
            step *= 0.2
        return [(m - step * g).clamp(0, 1) for m, g in zip(masks, gradients, strict=True)]

    def run(self, iterations, step, optimizer="line-search"):
        """What is deleted after each iteration, and the loss before the first and after each."""
        masks = [torch.ones(self.size, self.size, dtype=torch.float64) for _ in range(self.planes)]
        previous = None
        found, losses = [], [float(self.loss(*masks).detach())]
        for t in range(iterations):
            self.iteration = t
            leaves = [m.clone().requires_grad_() for m in masks]
            gradients = self.gradients(*leaves)
            with torch.no_grad():
                if optimizer == "line-search":
                    masks = self.line_search(masks, gradients, step)
                else:
                    theta = [m - step * g for m, g in zip(masks, gradients, strict=True)]
                    before = previous or theta
                    masks = [(a + t / (t + 3) * (a - b)).clamp(0, 1) for a, b in zip(theta, before, strict=True)]
                    previous = theta
                found.append(1 - math.prod(masks))
                losses.append(float(self.loss(*masks)))
        return found, losses


class IGos(Twin):
    planes = 1

    def gradients(self, m):
        return torch.autograd.grad(self.deletion(self.up(m), 0) + self.penalty(m), [m])

    def loss(self, m):
        mask = self.up(m)
        return self.f(self.x * mask + self.b * (1 - mask)) + self.penalty(m)


class IGosPlus(Twin):
    planes = 1

    def gradients(self, m):
        mask = self.up(m)
        return torch.autograd.grad(self.deletion(mask, 0) - self.insertion(mask, 1) + self.penalty(m), [m])

    def loss(self, m):
        mask = self.up(m)
        return self.deletion(mask, 0) - self.insertion(mask, 1) + self.penalty(m)


class IGosPlusPlus(Twin):
    planes = 2

    def gradients(self, d, i):
        both = self.up(d) * self.up(i)
        shared = self.deletion(both, 0) - self.insertion(both, 1)
        of_d = 0.5 * (shared + self.deletion(self.up(d), 2)) + self.penalty(d * i)
        of_i = 0.5 * (shared - self.insertion(self.up(i), 3)) + self.penalty(d * i)
        return [
            torch.autograd.grad(of_d, d, retain_graph=True)[0],
            torch.autograd.grad(of_i, i)[0],
        ]

    def loss(self, d, i):
        both = self.up(d) * self.up(i)
        of_one = self.deletion(self.up(d), 2) - self.insertion(self.up(i), 3)
        return of_one + self.deletion(both, 0) - self.insertion(both, 1) + self.penalty(d * i)


TWINS = {"i-gos": IGos, "igos+": IGosPlus, "igos++": IGosPlusPlus}


def twin_of(name, net, images, index, noise=None, **options):
    """The twin of one of several images, for the class that is predicted."""
    target = int(net.predict(images).targets[index])
    return TWINS[name](net, images[index], target, noise=noise, **options)


def sure_cnn(dtype=torch.float32, sharpness=20, **options):
    """A network so sure of its classes, and of where things are, that deleting something pays."""
    torch.manual_seed(3)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2),
        nn.Tanh(),
        nn.Conv2d(8, 12, 3, stride=2),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(48, 4),
    )
    with torch.no_grad():
        module[-1].weight *= sharpness
    return Classifier(module.to(dtype).eval(), size=32, mean=MEAN, std=STD, name="sure-cnn", **options)
