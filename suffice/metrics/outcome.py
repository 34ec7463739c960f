"""What a metric finds: one number an image, and the curve it comes from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.errors import OptionError

By = Literal["set", "image"]
Combination = Literal["mean", "difference"]


@dataclass(frozen=True, eq=False)
class Curves:
    """One curve an image, over the same positions.

    Attributes:
        x: Share of the pixels (or cells, or information) that was inserted or removed, [T] float64.
        y: What the model says there, [N, T]; NaN for images that were not judged.
        whole: The same on the whole image, [N].
        hidden: The same where nothing but the baseline is seen, [N].
        weights: The value of an image is ``y @ weights + constant``, [T] float64.
        constant: See ``weights``; zero but for rules that add something by mistake.
    """

    x: Tensor
    y: Tensor
    whole: Tensor
    hidden: Tensor
    weights: Tensor
    constant: float = 0.0

    @property
    def mean(self) -> Tensor:
        """The mean curve over the judged images, [T]."""
        return self.y.double().nanmean(dim=0).to(self.y.dtype)

    @property
    def median(self) -> Tensor:
        """The median at each position over the judged images, [T]; between the middle two where they are even."""
        judged = self.y[~self.y.isnan().any(dim=1)]
        if not len(judged):
            return self.mean
        ordered = judged.sort(dim=0).values
        return (ordered[(len(judged) - 1) // 2] + ordered[len(judged) // 2]) / 2

    @property
    def standard_error(self) -> Tensor:
        """Standard error of the mean curve, [T]."""
        return torch.stack([_standard_error(column) for column in self.y.T])

    def areas(self, y: Tensor) -> Tensor:
        """Values of curves, [..., T] to [...], by the rule that these curves were integrated with."""
        return (y.double() @ self.weights.to(y.device) + self.constant).to(y.dtype)

    def take(self, index: Tensor) -> Curves:
        """The curves of some images, [M] int64."""
        return replace(
            self, **{name: getattr(self, name)[index.to(self.y.device)] for name in ("y", "whole", "hidden")}
        )

    def normalized(self, by: By) -> Curves:
        """Curves of (s - b) / (t - b); see :meth:`Outcome.normalized`."""
        low, high = self.hidden.double(), self.whole.double()
        if by == "set":
            low, high = low.nanmean().expand_as(low), high.nanmean().expand_as(high)
        span = high - low
        span = torch.where(span.abs() < 1e-6, torch.nan, span)  # nothing to compare with: not judged
        y = ((self.y.double() - low[:, None]) / span[:, None]).to(self.y.dtype)
        ends = [((end.double() - low) / span).to(self.y.dtype) for end in (self.whole, self.hidden)]
        return replace(self, y=y, whole=ends[0], hidden=ends[1])


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a metric finds about images.

    Attributes:
        values: One number an image, [N]; NaN for images that the metric's own rules leave out.
        curves: What the numbers were computed from, where that is a curve.
        parts: Results that the numbers are composed of, by name: one for each baseline, or insertion and deletion.
        combination: How the parts make the whole: their mean, or the first less the second.
    """

    values: Tensor
    curves: Curves | None = None
    parts: Mapping[str, Outcome] = field(default_factory=dict)
    combination: Combination | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def judged(self) -> Tensor:
        """Whether each image was judged, bool [N]."""
        return ~self.values.isnan()

    @property
    def mean(self) -> float:
        """Mean over the judged images; NaN if there is none."""
        return float(self.values.double().nanmean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN for fewer than two judged images."""
        return float(_standard_error(self.values))

    def take(self, index: Tensor) -> Outcome:
        """The outcome of some images, [M] int64."""
        return replace(
            self,
            values=self.values[index.to(self.values.device)],
            curves=None if self.curves is None else self.curves.take(index),
            parts={name: part.take(index) for name, part in self.parts.items()},
        )

    def normalized(self, by: By = "set") -> Outcome:
        """Scores (s - b) / (t - b) between what the model says of the whole image, t, and of the baseline alone, b.

        Args:
            by: ``"set"`` takes t and b as means over all images, as cross-testing does; ``"image"`` takes those of
                each image, and leaves out images for which they are equal.

        Returns:
            The same curves, normalized and integrated again.
        """
        if self.parts:
            parts = {name: part.normalized(by) for name, part in self.parts.items()}
            together = combined(parts, self.combination or "mean")
            return replace(self, values=together.values, curves=together.curves, parts=parts)
        if self.curves is None:
            raise OptionError("Only curves can be normalized; this metric has none.")
        curves = self.curves.normalized(by)
        return replace(self, values=curves.areas(curves.y), curves=curves)


def of_curves(curves: Curves) -> Outcome:
    """The outcome of curves: the area under each."""
    return Outcome(curves.areas(curves.y), curves)


def combined(parts: Mapping[str, Outcome], combination: Combination) -> Outcome:
    """One outcome of several about the same images."""
    every = list(parts.values())
    if combination == "difference":
        return Outcome(every[0].values - every[1].values, None, parts, combination)
    values = torch.stack([part.values for part in every]).mean(dim=0)
    first = every[0].curves
    if first is None:
        return Outcome(values, None, parts, combination)
    means: dict[str, Any] = {
        name: torch.stack([getattr(part.curves, name) for part in every]).mean(dim=0)
        for name in ("y", "whole", "hidden")
    }
    return Outcome(values, replace(first, **means), parts, combination)


def joined(outcomes: Sequence[Outcome], device: torch.device) -> Outcome:
    """Outcomes of batches of images as one, on a device."""
    first = outcomes[0]
    curves = None
    if first.curves is not None:
        together = [o.curves for o in outcomes if o.curves is not None]
        moved: dict[str, Any] = {name: getattr(first.curves, name).to(device) for name in ("x", "weights")}
        for name in ("y", "whole", "hidden"):
            moved[name] = torch.cat([getattr(c, name) for c in together]).to(device)
        curves = replace(first.curves, **moved)
    parts = {name: joined([o.parts[name] for o in outcomes], device) for name in first.parts}
    return Outcome(torch.cat([o.values for o in outcomes]).to(device), curves, parts, first.combination)


def _standard_error(values: Tensor) -> Tensor:
    judged = values[~values.isnan()].double()
    if len(judged) < 2:
        return torch.tensor(math.nan, device=values.device)
    return (judged.std() / math.sqrt(len(judged))).to(values.dtype)
