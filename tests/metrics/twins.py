"""Metrics once more, for one image, in float64 and plain loops, as the papers and repositories have them."""

import math
from functools import cache

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from scipy.signal import convolve2d

from tests.attribution.nets import MEAN, STD
from tests.metrics.nets import sharp_module


@cache
def exact_module():
    return sharp_module().double()


class Twin:
    """One image and its model in float64."""

    def __init__(self, pixels, target=None):
        self.model = exact_module()
        self.mean, self.std = (torch.tensor(v, dtype=torch.float64).view(3, 1, 1) for v in (MEAN, STD))
        self.pixels = pixels.double()
        self.x = (self.pixels - self.mean) / self.std
        self.target = int(self.scores(self.x).argmax()) if target is None else target

    @torch.no_grad()
    def scores(self, x):
        """Of one input, or of many [K, 3, H, W]; in float64 it does not matter how many go through at once."""
        return torch.softmax(self.model(x.view(-1, *self.x.shape)), dim=1)

    def score(self, x):
        """A number for an input, a list for many."""
        said = self.scores(x)[:, self.target].tolist()
        return said if x.dim() == 4 else said[0]

    def hit(self, x):
        said = (self.scores(x).argmax(dim=1) == self.target).double().tolist()
        return said if x.dim() == 4 else said[0]

    def black(self):
        return -self.mean / self.std * torch.ones_like(self.x)

    def igos_blur(self):
        """Gaussian 51/50, mirrored at the border; wider than the picture, so mirrored more than once."""
        size, reach = self.x.shape[-1], 25
        weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * 50.0**2))
        weights /= weights.sum()
        period = 2 * (size - 1)
        mirror = [min(i % period, period - i % period) for i in range(-reach, size + reach)]
        padded = self.pixels.numpy()[:, mirror][:, :, mirror]
        blurred = [convolve2d(channel, np.outer(weights, weights), mode="valid") for channel in padded]
        return (torch.from_numpy(np.stack(blurred)) - self.mean) / self.std

    def rise_blur(self):
        impulse = np.zeros((11, 11))
        impulse[5, 5] = 1
        kernel = gaussian_filter(impulse, 5)
        return torch.from_numpy(np.stack([convolve2d(c, kernel, mode="same") for c in self.x.numpy()]))


def order_of(values):
    """Places by falling value, the first first among equals."""
    flat = [float(v) for v in values.double().flatten()]
    return sorted(range(len(flat)), key=lambda i: (-flat[i], i))


def half_pixel(values, size):
    """Bilinear with half-pixel centers."""
    side = values.shape[-1]
    return _bilinear(values, tuple(min(max((i + 0.5) * side / size - 0.5, 0), side - 1) for i in range(size)))


def aligned(values, size):
    """Bilinear with corners aligned."""
    side = values.shape[-1]
    return _bilinear(values, tuple(i * (side - 1) / (size - 1) for i in range(size)))


def _bilinear(values, places):
    """Values between neighbors, at the given places along both sides."""
    weights = _shares(places, values.shape[-1])
    return weights @ values.double() @ weights.T


@cache
def _shares(places, side):
    """Share that each of the neighbors has in a value at each place."""
    weights = torch.zeros(len(places), side, dtype=torch.float64)
    for i, at in enumerate(places):
        low = math.floor(at)
        weights[i, low] += 1 - (at - low)
        if at > low:
            weights[i, low + 1] += at - low
    return weights


def replaced(image, other, places):
    """An image with some pixels of another."""
    changed = image.flatten(1).clone()
    changed[:, places] = other.flatten(1)[:, places]
    return changed.view_as(image)


def by_pixels(image, other, order, counts, judge):
    """What is said of an image as the first pixels of an order are replaced by those of another."""
    return judge(torch.stack([replaced(image, other, order[:k]) for k in counts]))


def by_cells(image, other, order, counts, side, judge):
    """The same with cells, whose mask is enlarged with corners aligned."""
    shown = []
    for k in counts:
        mask = torch.zeros(side * side, dtype=torch.float64)
        mask[order[:k]] = 1
        large = aligned(mask.view(side, side), image.shape[-1])
        shown.append(other * large + image * (1 - large))
    return judge(torch.stack(shown))


def rise_area(y):
    return (sum(y) - y[0] / 2 - y[-1] / 2) / (len(y) - 1)


def trapezoid(y, x):
    return sum((x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2 for i in range(1, len(x)))


def steps_of(count, step):
    """0, step, 2 step, … and the end."""
    places = [0]
    while places[-1] < count:
        places.append(min(places[-1] + step, count))
    return places


def default_curve(twin, values, act):
    """Fifty even steps over a blur, both ends, trapezoid rule."""
    blur, order = twin.igos_blur(), order_of(values)
    count = len(order)
    counts = [math.floor(i * count / 50 + 0.5) for i in range(51)]
    start, other = (blur, twin.x) if act == "insertion" else (twin.x, blur)
    return trapezoid(by_pixels(start, other, order, counts, twin.score), [k / count for k in counts])


def rise(twin, values, act):
    order = order_of(values)
    counts = steps_of(len(order), math.ceil(len(order) / 224))
    start, other = (twin.rise_blur(), twin.x) if act == "insertion" else (twin.x, torch.zeros_like(twin.x))
    return rise_area(by_pixels(start, other, order, counts, twin.score))


def vit_cx(twin, values, act):
    order, zero = order_of(values), torch.zeros_like(twin.x)
    counts = steps_of(len(order), math.ceil(len(order) / 28))
    start, other = (zero, twin.x) if act == "insertion" else (twin.x, zero)
    return rise_area(by_pixels(start, other, order, counts, twin.score))


def igos(twin, values, act, defect=False):
    side, blur = values.shape[-1], twin.igos_blur()
    num = side * side
    step = max(1, num // 50)
    start, other = (blur, twin.x) if act == "insertion" else (twin.x, blur)
    counts = steps_of(num, step)
    said = by_cells(start, other, order_of(values), counts[1:], side, twin.score)
    if defect:
        said[-1] = 1.0
    return sum((b - a) * value for a, b, value in zip(counts, counts[1:], said, strict=False)) / num


def jiang(twin, values, act):
    blur, num = twin.igos_blur(), 784
    counts = steps_of(num, 15)
    start, other = (blur, twin.x) if act == "insertion" else (twin.x, blur)
    said = by_cells(start, other, order_of(values), counts, 28, twin.score)
    return trapezoid(said, [k / num for k in counts])


def tis(twin, values, act, canvas):
    order = order_of(values)
    counts = steps_of(len(order), math.ceil(len(order) / 224))[1:]
    start, other = (canvas, twin.x) if act == "insertion" else (twin.x, canvas)
    said = by_pixels(start, other, order, counts, twin.score)
    return sum(said) / len(said)


def tenths(twin, values, least, judge, shares):
    """Black pixels over a tenth, two tenths, … of the most or least important ones."""
    order = order_of(values)
    order = order[::-1] if least else order
    return by_pixels(twin.x, twin.black(), order, [int(len(order) * s) for s in shares], judge)


def eea(twin, values, least, judge):
    shares = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    return 100 * trapezoid(tenths(twin, values, least, judge, shares), shares)


def chefer(twin, values, least):
    said = tenths(twin, values, least, twin.hit, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    return sum(said) / 9


def gini(values):
    """By its definition: half the mean difference between any two, relative to the mean."""
    flat = [float(v) for v in values.flatten()]
    apart = sum(abs(a - b) for a in flat for b in flat)
    return apart / (2 * len(flat) * sum(flat)) if sum(flat) else 0.0
