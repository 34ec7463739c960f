"""Averaging models: does one know what another does not?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from suffice.compare.pairwise import Level, Numbers, corrected_ends
from suffice.compare.resampling import drawn_again, means_over
from suffice.errors import OptionError
from suffice.options import Count, Share, check_options

BINS = 15  # of confidence, for the calibration error, as is usual
DRAWS = 1999  # of the bootstrap


@dataclass(frozen=True)
class Ensemble:
    """Models whose scores are averaged.

    Attributes:
        members: Their names.
        accuracy: Share of images on which the mean of their scores is highest for the right class.
        best: The member with the highest accuracy alone, on the same images.
        gain: Accuracy less that of the best member.
        low: Lower end of the bootstrap interval, over images, of the gain over whichever member is the best beyond
            these images.
        high: Upper end. It lies further out the more members there are, as the one that looks best on these images
            looks better than it is.
        p: Of McNemar's test (exact, two-sided) that it is no better and no worse than the best member, whichever that
            is beyond these images.
        log_loss: Mean of -log of the score of the right class.
        calibration_error: Mean gap between confidence and accuracy, over 15 bins of confidence.
        images: How many images.
    """

    members: tuple[str, ...]
    accuracy: float
    best: str
    gain: float
    low: float
    high: float
    p: float
    log_loss: float
    calibration_error: float
    images: int


def average_models(
    scores: Mapping[str, Tensor], truth: Tensor, members: Sequence[str] = (), *, level: Level = 0.95, seed: int = 0
) -> Ensemble:
    """Average the scores of some models.

    Args:
        scores: Of each model, [N, classes], probabilities of the same images.
        truth: The right class of each image, [N] int64.
        members: Names of the models to average; default: all.
        level: Of the interval of the gain.
        seed: Of the bootstrap.

    Example:
        >>> truth = torch.tensor([0, 1, 0, 1])
        >>> one = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.4, 0.6], [0.2, 0.8]])
        >>> other = torch.tensor([[0.8, 0.2], [0.3, 0.7], [0.9, 0.1], [0.6, 0.4]])
        >>> found = average_models({"one": one, "other": other}, truth)
        >>> found.accuracy, found.gain
        (1.0, 0.25)
    """
    check_options({"level": level}, average_models)
    chosen = tuple(members) or tuple(scores)
    if unknown := [name for name in chosen if name not in scores]:
        raise OptionError(f"There are no scores of {unknown[0]!r}; there are those of {', '.join(scores)}.")
    shapes = {tuple(scores[name].shape) for name in chosen}
    if len(shapes) != 1 or next(iter(shapes))[0] != len(truth) or not len(truth):
        raise OptionError("Expected scores [N, classes] of the same images and classes, and N right classes.")
    truth = truth.cpu()
    right = {name: (scores[name].cpu().argmax(dim=1) == truth).numpy() for name in chosen}
    best = max(chosen, key=lambda name: right[name].mean())
    mean = torch.stack([scores[name].cpu().double() for name in chosen]).mean(dim=0)
    hits = (mean.argmax(dim=1) == truth).numpy()
    low, high = gain_over_best(hits, right.values(), level, seed)
    gain = float(hits.mean() - right[best].mean())
    p = no_better_no_worse(hits, right.values())
    loss = float(-mean.gather(1, truth[:, None]).clamp(min=1e-12).log().mean())
    error = calibration_error(mean.amax(dim=1).numpy(), hits)
    return Ensemble(chosen, float(hits.mean()), best, gain, low, high, p, loss, error, len(truth))


def suggest_members(
    scores: Mapping[str, Tensor],
    truth: Tensor,
    apart: Numbers | Callable[[list[int]], Numbers],
    *,
    size: Count = 2,
    held_back: Share = 0.5,
    slack: Share = 0.05,
    seed: int = 0,
) -> Ensemble:
    """Suggest models that complement each other, and see on images that were held back whether they do.

    Those are suggested that lie farthest apart in the landscape, among those whose accuracy on the other images is
    within ``slack`` of the best. What is returned was measured on the images held back, which must have no part in the
    choice.

    Args:
        scores: Of each model, [N, classes].
        truth: The right class of each image, [N] int64.
        apart: Distances between the models, [M, M], in their order, such as
            :func:`suffice.compare.landscapes.distances` gives for :meth:`suffice.compare.CrossTest.alike`: a function
            that measures them on images at these positions, which are not held back; or distances that were measured on
            other images.
        size: How many to suggest.
        held_back: Share of the images on which the suggestion is verified.
        slack: How much less accurate than the best model a member may be.
        seed: By which images are held back.
    """
    check_options({"size": size, "held_back": held_back, "slack": slack}, suggest_members)
    names = list(scores)
    if not 2 <= size <= len(names):
        raise OptionError(f"size={size}; expected a size from 2 to {len(names)}, the number of models.")
    order = torch.randperm(len(truth), generator=torch.Generator().manual_seed(seed))
    kept = round(len(truth) * held_back)
    if not 1 < kept < len(truth) - 1:
        raise OptionError(f"held_back={held_back} of {len(truth)} images leaves too few on one side.")
    later, first = order[:kept], order[kept:]
    far = apart(first.tolist()) if callable(apart) else apart
    if far.shape != (len(names), len(names)) or not np.isfinite(far).all():
        raise OptionError(f"Expected distances between all models, [{len(names)}, {len(names)}]; got {far.tolist()}.")
    accuracy = [float((scores[name].cpu()[first].argmax(dim=1) == truth.cpu()[first]).float().mean()) for name in names]
    able = [i for i, value in enumerate(accuracy) if value >= max(accuracy) - slack]
    if len(able) < size:
        able = sorted(range(len(names)), key=lambda i: -accuracy[i])[:size]
    found = max(combinations(able, size), key=lambda some: sum(far[i, j] for i, j in combinations(some, 2)))
    members = [names[i] for i in found]
    return average_models({name: scores[name].cpu()[later] for name in members}, truth.cpu()[later], members)


def no_better_no_worse(hits: np.ndarray, members: Iterable[np.ndarray]) -> float:
    """P-value of McNemar's test (exact, two-sided) that a model is as often right as the best of some members.

    The member that looks best looks better than it is, and more so the more members there are: to test against it alone
    would find harm where there is none. Better than the best is better than every member, so the largest of their
    p-values counts; worse than the best is worse than some member, so the smallest counts, times how many there are.

    Args:
        hits: On which images the model is right, bool [N].
        members: The same of each member.

    Example:
        >>> hits = np.arange(8) < 6
        >>> no_better_no_worse(hits, [np.zeros(8, bool)]), no_better_no_worse(hits, [hits])
        (0.03125, 1.0)
    """
    right = np.stack(list(members))
    better, worse = (hits & ~right).sum(axis=1), (right & ~hits).sum(axis=1)
    as_good = stats.binom.sf(better - 1, better + worse, 0.5).max()
    as_bad = stats.binom.cdf(better, better + worse, 0.5).min() * len(right)
    return float(min(1.0, 2 * min(as_good, as_bad)))


def gain_over_best(hits: np.ndarray, members: Iterable[np.ndarray], level: float, seed: int = 0) -> tuple[float, float]:
    """Interval of the accuracy of a model less that of the best of some members, which images do not tell for sure.

    As in :func:`no_better_no_worse`: the gain over the best is the smallest of the gains over each. So it is no smaller
    than the smallest of the lower ends, and no larger than the smallest of the upper ends if all of these hold, each at
    a share of the error.

    Args:
        hits: On which images the model is right, bool [N].
        members: The same of each member.
        level: Of the interval.
        seed: Of the bootstrap.
    """
    gains = np.stack([hits.astype(float) - one for one in members])
    weights = drawn_again(len(hits), DRAWS, np.random.default_rng(seed))
    means = np.concatenate([means_over(gains, some) for some in weights])
    tail = (1 - level) / 2
    shares = tail, 1 - tail / len(gains)
    ends = [corrected_ends(gain, drawn, shares) for gain, drawn in zip(gains, means.T, strict=True)]
    low, high = (min(side) for side in zip(*ends, strict=True))
    return low, high


def calibration_error(confidence: Numbers, right: np.ndarray) -> float:
    """Mean gap between confidence and accuracy over bins of confidence, weighted by images.

    Example:
        >>> round(calibration_error(np.array([0.95, 0.95, 0.55, 0.55]), np.array([True, True, True, False])), 6)
        0.05
    """
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [abs(confidence[place == b].mean() - right[place == b].mean()) * (place == b).mean() for b in set(place)]
    return float(sum(gaps))
