"""What a metric finds: one number an image, and the curve it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
        return _together([self], lambda own: own[0][index.to(own[0].device)])

    def normalized(self, by: By) -> Curves:
        """Curves of (s - b) / (t - b); see :meth:`Outcome.normalized`."""
        low, high = self.hidden.double(), self.whole.double()
        if by == "set":
            low, high = low.nanmean().expand_as(low), high.nanmean().expand_as(high)
        span = high - low
        span = torch.where(span.abs() < 1e-6, torch.nan, span)  # nothing to compare with: not judged
        return _together([self], lambda own: ((own[0].double().t() - low) / span).t().to(self.y.dtype))


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

    def __format__(self, spec: str) -> str:
        """Mean ± standard error, in decimals such as ``.3f``."""
        return f"{self.mean:{spec or '.4f'}} ± {self.standard_error:{spec or '.4f'}}"

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

    def with_parts(self, name: str) -> dict[str, Outcome]:
        """Itself, its parts and theirs, by names such as ``"ins-del/deletion/gray"`` that begin with its own."""
        below = [part.with_parts(f"{name}/{own}") for own, part in self.parts.items()]
        return {name: self} | {inner: outcome for named in below for inner, outcome in named.items()}

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

        Curves are normalized and integrated again. With ``by="set"`` t and b are means over all images, as in
        cross-testing; with ``"image"`` they are those of each image, and images for which they are equal are left out.
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
    values = [part.values for part in parts.values()]
    if combination == "difference":
        return Outcome(values[0] - values[1], None, parts, combination)
    curves = [part.curves for part in parts.values() if part.curves is not None]
    return Outcome(_mean(values), _together(curves, _mean) if curves else None, parts, combination)


def joined(outcomes: Sequence[Outcome], device: torch.device) -> Outcome:
    """Outcomes of batches of images as one, on a device."""
    first, curves = outcomes[0], [o.curves for o in outcomes if o.curves is not None]
    every = _together(curves, lambda own: torch.cat(own).to(device)) if curves else None
    if every is not None:
        every = replace(every, x=every.x.to(device), weights=every.weights.to(device))
    parts = {name: joined([o.parts[name] for o in outcomes], device) for name in first.parts}
    return Outcome(torch.cat([o.values for o in outcomes]).to(device), every, parts, first.combination)


def _together(curves: Sequence[Curves], join: Callable[[list[Tensor]], Tensor]) -> Curves:
    """One set of curves of several over the same positions: each tensor of images is made of theirs."""
    joint: dict[str, Any] = {name: join([getattr(c, name) for c in curves]) for name in ("y", "whole", "hidden")}
    return replace(curves[0], **joint)


def _mean(tensors: list[Tensor]) -> Tensor:
    return torch.stack(tensors).mean(dim=0)


def _standard_error(values: Tensor) -> Tensor:
    judged = values[~values.isnan()].double()
    if len(judged) < 2:
        return torch.tensor(math.nan, device=values.device)
    return (judged.std() / math.sqrt(len(judged))).to(values.dtype)
