"""Performance information curves, AIC and SIC: what the model says against how much information the image holds.

An image starts as an interpolation between one percent of its pixels, chosen at random. The most important pixels are
added and the rest interpolated again. How much information an image holds is the length of its lossless WebP file.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.errors import OptionError
from suffice.metrics.curves import integration_weights
from suffice.metrics.map_batch import MapBatch
from suffice.metrics.metric import metric
from suffice.metrics.outcome import Curves, Outcome, of_curves
from suffice.options import Count, Share, check_fields
from suffice.perturb import Response
from suffice.perturb.masks import Enlargement

Array = np.ndarray
SHARES = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.13, 0.21, 0.34, 0.5, 0.75)


@dataclass(frozen=True)
class InformationChoices:
    """Every choice behind a performance information curve.

    Attributes:
        shares: Of the most important pixels that are added, in order.
        start: Share of the pixels that are known from the beginning, chosen at random by image and seed.
        minimum: Images with a lower value to begin with are not judged.
        monotone: A value counts as at least that of any smaller share.
        points: At how many places between 0 and 1 the curve is evaluated.
        enlargement: How maps are enlarged to the image.
        aggregate: What is reported for all images: area under the ``"median"`` curve, or the ``"mean"``.
    """

    shares: Sequence[float] = SHARES
    start: Share = 0.01
    minimum: float = 0.8
    monotone: bool = True
    points: Count = 1000
    enlargement: Enlargement = "bilinear"
    aggregate: Literal["median", "mean"] = "median"

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.shares or list(self.shares) != sorted(self.shares) or not 0 < self.shares[0] <= self.shares[-1] < 1:
            raise OptionError(f"shares={self.shares!r}; expected numbers between 0 and 1 in order.")


_curve = partial(
    metric,
    higher_is_better=True,
    bounds=(0, 1),
    needs=("maps", "model"),
    reference="Kapishnikov et al., XRAI, ICCV 2019",
    choices=InformationChoices(),
)


@_curve("aic")
def aic(given: MapBatch, choices: InformationChoices) -> Outcome:
    """Accuracy information curve: accuracy against the information that the most important pixels bring back."""
    return information_curves(given, choices, "accuracy")


@_curve("sic")
def sic(given: MapBatch, choices: InformationChoices) -> Outcome:
    """Softmax information curve: score against the information that the most important pixels bring back."""
    return information_curves(given, choices, "score")


def information_curves(given: MapBatch, choices: InformationChoices, kind: Literal["score", "accuracy"]) -> Outcome:
    """Curves of the ``"score"`` or the ``"accuracy"`` against information, and the areas under them.

    Images are not judged, NaN, where the value of the whole image is below the minimum or not above that of the first
    interpolation, or where the whole image holds no more information than that.
    """
    key = ("information", tuple(choices.shares), choices.start, choices.enlargement)
    seen, information = given.once(key, lambda: _reveal(given, choices))
    value = seen.value(kind).double().cpu()
    x = torch.linspace(0, 1, choices.points + 1, dtype=torch.float64)
    rows = [
        _one_curve(values.numpy(), held.numpy(), x.numpy(), choices)
        for values, held in zip(value, information, strict=True)
    ]
    weights, _ = integration_weights(x, "trapezoid")
    y = torch.from_numpy(np.stack(rows)).float().to(given.device)
    ends = torch.where(y.isnan().any(dim=1), torch.nan, torch.tensor([[1.0], [0.0]], device=y.device))
    return of_curves(Curves(x=x, y=y, whole=ends[0], hidden=ends[1], weights=weights))


def information_of(image: Array) -> int:
    """Bytes of an image, uint8 [H, W, 3], as a lossless WebP file."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, format="webp", lossless=True, quality=100)
    return file.tell()


def interpolated(image: Array, known: Array) -> Array:
    """An image, uint8 [H, W, 3], linearly interpolated between its known pixels, bool [H, W], and its corners."""
    from scipy.interpolate import LinearNDInterpolator

    known = known.copy()
    known[[0, 0, -1, -1], [0, -1, 0, -1]] = True
    if known.all():
        return image
    filled = LinearNDInterpolator(np.argwhere(known), image[known].astype(np.float64))(np.argwhere(~known))
    # Rounding may leave pixels of the border outside every triangle.
    filled = np.where(np.isnan(filled), image.mean(axis=(0, 1)), filled)
    result = image.copy()
    result[~known] = np.clip(np.round(filled), 0, 255).astype(np.uint8)
    return result


def known_at_start(size: tuple[int, ...], share: float, seed: int) -> Array:
    """The pixels that are known from the beginning, bool [H, W]."""
    known = np.zeros(size[0] * size[1], dtype=bool)
    drawn = np.random.default_rng(seed).choice(known.size, int(known.size * share), replace=False)
    known[drawn] = True
    return known.reshape(size)


def _reveal(given: MapBatch, choices: InformationChoices) -> tuple[Response, Tensor]:
    """What the model says of the first interpolation, of each step and of the whole image, [B, 2 + shares].

    And how much information these hold, [B, 2 + shares] float64.
    """
    maps = given.resized_maps(choices.enlargement).double().cpu().numpy()
    pixels = given.batch.pixels.mul(255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    steps = len(choices.shares) + 2
    per_forward = max(1, math.ceil(given.batch.runner.batch_size / steps))
    information, scores, waiting = [], [], list[Array]()
    # Nearly all of it is the work of SciPy and Pillow, which let other threads go on.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="suffice-information") as pool:
        shown = pool.map(partial(_versions, choices=choices), pixels, maps, given.batch.seeds.tolist())
        for number, (versions, held) in enumerate(shown, start=1):
            information.append(held)
            waiting += versions
            if number % per_forward == 0 or number == len(pixels):
                pixels_of_versions = torch.from_numpy(np.stack(waiting)).permute(0, 3, 1, 2).float() / 255
                scores.append(given.batch.runner.scores(pixels_of_versions))
                waiting.clear()
    every = torch.cat(scores).unflatten(0, (len(given), steps))
    return given.response(every), torch.tensor(information, dtype=torch.float64)


def _versions(image: Array, values: Array, seed: int, choices: InformationChoices) -> tuple[list[Array], list[float]]:
    """An image at the start, at each step and whole, uint8 [H, W, 3] each, and how much information these hold."""
    start = known_at_start(values.shape, choices.start, seed)
    added = [start | (values >= np.quantile(values, 1 - share)) for share in choices.shares]
    versions = [*(interpolated(image, known) for known in (start, *added)), image]
    return versions, [float(information_of(version)) for version in versions]


def _one_curve(values: Array, held: Array, x: Array, choices: InformationChoices) -> Array:
    """One curve at positions x; NaN where the image is not judged."""
    low, high = values[0], values[-1]
    if high < choices.minimum or high <= low or held[-1] <= held[0]:
        return np.full_like(x, np.nan)
    position = np.clip((held[1:-1] - held[0]) / (held[-1] - held[0]), 0, 1)
    height = np.clip((values[1:-1] - low) / (high - low), 0, 1)
    if choices.monotone:
        height = np.maximum.accumulate(height)
    position, height = np.append(position, [0.0, 1.0]), np.append(height, [0.0, 1.0])
    order = np.argsort(position, kind="stable")
    return np.append(np.interp(x[:-1], position[order], height[order]), 1.0)
