"""Would other trainings say the same? Networks trained several times, measured on the same images.

Images and trainings are both a sample: a difference between two architectures is uncertain because other images, and
because other random seeds, would have given another. Each training is measured on every image, so both parts can be
told apart (a model with crossed random effects, balanced, solved in closed form).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from suffice.compare.pairwise import Level, Numbers
from suffice.errors import OptionError


@dataclass(frozen=True)
class TrainingDifference:
    """How two architectures differ, over trainings and images.

    Attributes:
        difference: Mean of the first less that of the second.
        low: Lower end of its interval, for other trainings and other images.
        high: Upper end.
        p: Two-sided, that there is no difference.
        seed_share: Share of the variance of the difference that is due to there being so few trainings.
        seed_deviation: Standard deviation of the mean of one training, pooled over both architectures.
        degrees: Degrees of freedom, by Satterthwaite's rule.
        trainings: How many of the first and the second.
        images: How many images.
        image_error: Standard error of the difference that would be left if there were any number of trainings: what
            these few images leave open.
    """

    difference: float
    low: float
    high: float
    p: float
    seed_share: float
    seed_deviation: float
    degrees: float
    trainings: tuple[int, int]
    images: int
    image_error: float

    def seeds_needed(self, effect: float | None = None, *, power: float = 0.8, alpha: float = 0.05) -> int | None:
        """Trainings of each architecture with which the same test sees a difference; see :func:`seeds_needed`.

        The default is the difference that was seen. Each attempt has other trainings and as many other images as there
        are here, since the test takes both as a sample; None where there are too few images for any number of
        trainings. Deviations are those that were seen, so that the number is as uncertain as they are.
        """
        effect = self.difference if effect is None else effect
        return seeds_needed(effect, self.seed_deviation, power, alpha, image_error=self.image_error, images=self.images)


def compare_trainings(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], level: Level = 0.95
) -> TrainingDifference:
    """Compare two architectures of which there are several trainings.

    Args:
        first: For each training of the first one number an image, [trainings, images].
        second: Likewise, of the same images in the same order.
        level: Of the interval.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> images = rng.normal(size=200)
        >>> first = [1 + images + rng.normal(0, 0.1) + rng.normal(size=200) for _ in range(5)]
        >>> second = [images + rng.normal(0, 0.1) + rng.normal(size=200) for _ in range(5)]
        >>> found = compare_trainings(first, second)
        >>> found.low < 1 < found.high, found.p < 0.001
        (True, True)
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or min(*a.shape, *b.shape) < 2:
        raise OptionError(
            "Expected [trainings, images] of both, with two or more trainings each, of the same two or more images; "
            f"got {list(a.shape)} and {list(b.shape)}."
        )
    whole = np.isfinite(a).all(axis=0) & np.isfinite(b).all(axis=0)
    a, b = a[:, whole], b[:, whole]
    if whole.sum() < 2:
        raise OptionError(f"{int(whole.sum())} images have a number in every training; two or more are needed.")
    images = a.shape[1]
    seeds = [(x.mean(axis=1).var(ddof=1) / len(x), len(x) - 1) for x in (a, b)]
    over_images = (a.mean(axis=0) - b.mean(axis=0)).var(ddof=1) / images
    # What is due to neither alone is in both of the above, and counts once.
    both = sum(_interaction(x) / (len(x) * images) for x in (a, b))
    image_part = max(over_images - both, 0.0)
    variance = seeds[0][0] + seeds[1][0] + image_part
    difference = float(a.mean() - b.mean())
    rounding = 1e-12 * max(np.abs(a).max(), np.abs(b).max())
    if variance <= rounding**2:
        difference = 0.0 if abs(difference) <= rounding else difference
        same = difference == 0
        return TrainingDifference(
            difference, difference, difference, float(same), 0.0, 0.0, np.inf, (len(a), len(b)), images, 0.0
        )
    parts = [*seeds, (image_part, images - 1)]
    degrees = variance**2 / sum(part**2 / free for part, free in parts)
    error = variance**0.5
    reach = error * float(stats.t.ppf((1 + level) / 2, degrees))
    p = float(2 * stats.t.sf(abs(difference) / error, degrees))
    pooled = sum(part * len(x) * free for (part, free), x in zip(seeds, (a, b), strict=True)) / (
        seeds[0][1] + seeds[1][1]
    )
    return TrainingDifference(
        difference,
        float(difference - reach),
        float(difference + reach),
        p,
        float((seeds[0][0] + seeds[1][0]) / variance),
        float(pooled**0.5),
        float(degrees),
        (len(a), len(b)),
        images,
        float(image_part**0.5),
    )


def seeds_needed(
    effect: float,
    seed_deviation: float,
    power: float = 0.8,
    alpha: float = 0.05,
    *,
    image_error: float = 0.0,
    images: int | None = None,
) -> int | None:
    """Trainings of each of two architectures that it takes to see a difference of their means.

    Without ``images``, the difference is that on these very images, seen by a t test of the means of trainings. With
    them, it is that on images like these, seen by :func:`compare_trainings`: images are a sample as well, and more
    trainings do not help against that.

    Args:
        effect: The difference.
        seed_deviation: Standard deviation of the mean of one training.
        power: How often it is to be seen.
        alpha: Level of the test.
        image_error: Standard error of the difference that images leave, however many trainings there are;
            :attr:`TrainingDifference.image_error`.
        images: How many there are.

    Returns:
        The number; None where more than 10,000 would be needed, no number would do with so few images, or there is
        nothing to see.

    Example:
        >>> seeds_needed(effect=2.0, seed_deviation=1.0), seeds_needed(effect=0.5, seed_deviation=1.0)
        (6, 64)
        >>> [seeds_needed(2.0, 1.0, image_error=error, images=50) for error in (0.0, 0.5, 0.75)]
        [6, 9, None]
    """
    if (images is None and image_error) or (images is not None and images < 2):
        raise OptionError(f"images={images}; expected two or more, from which image_error={image_error} is known.")
    if effect == 0:
        return None
    if seed_deviation == 0 and image_error == 0:
        return 2

    def seen(count: int) -> float:
        of_seeds, of_images = 2 * seed_deviation**2 / count, image_error**2
        free = 2.0 * count - 2
        if images is not None:
            # The variances of both architectures are not pooled: as many degrees are left, about, by Satterthwaite's
            # rule for two estimates that are equal only on average.
            free *= count / (count + 1)
            free = (of_seeds + of_images) ** 2 / (of_seeds**2 / free + of_images**2 / (images - 1))
        limit, shift = stats.t.ppf(1 - alpha / 2, free), abs(effect) / (of_seeds + of_images) ** 0.5
        return float(stats.nct.sf(limit, free, shift) + stats.nct.cdf(-limit, free, shift))

    low, high = 1, 2
    while seen(high) < power:
        low, high = high, 2 * high
        if low > 10_000:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if seen(middle) >= power else (middle, high)
    return high


def _interaction(values: Numbers) -> float:
    """Variance of what is due to neither the training nor the image alone, of [trainings, images]."""
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float((rest**2).sum() / ((values.shape[0] - 1) * (values.shape[1] - 1)))
