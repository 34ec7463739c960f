"""Completeness: how many MSEs did a search miss? Estimated by searching twice and looking at what both found.

Whoever wants to know how many fish there are in a lake catches some, marks them, and looks how many of a second catch
are marked. The catches here are two searches whose beams are noisy in different ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, overload

from suffice.draw.words import counted
from suffice.errors import OptionError
from suffice.evidence.api import find_evidence
from suffice.evidence.result import Evidence
from suffice.evidence.settings import Settings, preset
from suffice.results import to_pandas
from suffice.vision import Model
from suffice.vision.classifier import Targets

if TYPE_CHECKING:
    import pyarrow

NOISE = 0.15


@dataclass(frozen=True)
class Recapture:
    """Two searches of one image.

    Attributes:
        name: Of the image.
        first: MSEs found by the first search.
        second: By the second.
        both: By both.

    Example:
        >>> image = Recapture("cat.jpg", first=20, second=15, both=11)
        >>> image.found, round(image.total, 2), round(image.share, 2)
        (24, 27.0, 0.89)
    """

    name: str
    first: int
    second: int
    both: int

    @property
    def found(self) -> int:
        """MSEs found by either search."""
        return self.first + self.second - self.both

    @property
    def total(self) -> float:
        """Chapman's estimate of how many there are."""
        return (self.first + 1) * (self.second + 1) / (self.both + 1) - 1

    @property
    def standard_error(self) -> float:
        """Of that estimate, by Seber's variance, over searches of this image."""
        alone = (self.first - self.both) * (self.second - self.both)
        variance = (self.first + 1) * (self.second + 1) * alone / ((self.both + 1) ** 2 * (self.both + 2))
        return float(variance**0.5)

    @property
    def share(self) -> float:
        """Share of them that either search found; 1 where there are none."""
        return self.found / self.total if self.total else 1.0


@dataclass(frozen=True)
class Completeness(Sequence[Recapture]):
    """Two searches of many images; each by its number, and what they say together.

    Attributes:
        images: Of each image what the searches found.

    Example:
        >>> result = Completeness((Recapture("a", 20, 15, 11), Recapture("b", 4, 4, 4)))
        >>> result.found, round(result.total, 1), round(result.share, 3)
        (28, 31.0, 0.903)
        >>> print(result)
        2 images: two searches found 28 MSEs of an estimated 31 or more, 90 ± 2 % of them.
        The first alone found 24 (77 %), the second 19 (61 %), both 15.
    """

    images: tuple[Recapture, ...]

    @overload
    def __getitem__(self, index: int) -> Recapture: ...
    @overload
    def __getitem__(self, index: slice) -> Completeness: ...
    def __getitem__(self, index: int | slice) -> Recapture | Completeness:
        return Completeness(self.images[index]) if isinstance(index, slice) else self.images[index]

    def __len__(self) -> int:
        return len(self.images)

    @property
    def found(self) -> int:
        """MSEs found by either search, over all images."""
        return sum(image.found for image in self)

    @property
    def total(self) -> float:
        """Estimate of how many there are, over all images."""
        return sum(image.total for image in self)

    @property
    def share(self) -> float:
        """Share of the estimated MSEs of all images that either search found."""
        return self.found / self.total if self.total else 1.0

    @property
    def standard_error(self) -> float:
        """Of the share, over images: that of a ratio of two sums; not a number for a single image."""
        if len(self) < 2:
            return float("nan")
        squares = sum((image.found - self.share * image.total) ** 2 for image in self)
        return (squares * len(self) / (len(self) - 1)) ** 0.5 / self.total if self.total else 0.0

    def to_arrow(self) -> pyarrow.Table:
        """One row an image: its name, and each number of :class:`Recapture`."""
        import pyarrow as pa

        names = ("first", "second", "both", "found", "total", "standard_error", "share")
        columns = {"image": [image.name for image in self]}
        return pa.table(columns | {name: [getattr(image, name) for image in self] for name in names})

    def to_pandas(self) -> Any:
        """The table of :meth:`to_arrow` as a data frame; needs pandas."""
        return to_pandas(self.to_arrow())

    def summary(self) -> str:
        """What was found, in two sentences."""
        first, second, both = (sum(getattr(i, name) for i in self) for name in ("first", "second", "both"))
        error = "" if isnan(self.standard_error) else f" ± {100 * self.standard_error:.0f}"
        alone = [f"{n} ({100 * n / max(self.total, 1):.0f} %)" for n in (first, second)]
        return (
            f"{counted(len(self), 'image')}: two searches found {self.found} MSEs of an estimated {self.total:.0f} or "
            f"more, {100 * self.share:.0f}{error} % of them.\n"
            f"The first alone found {alone[0]}, the second {alone[1]}, both {both}."
        )

    __str__ = summary


def completeness(
    net: Model,
    images: Any,
    targets: Targets = None,
    *,
    settings: Settings | str | None = None,
    noise: float = NOISE,
    seeds: tuple[int, int] = (0, 1),
    **options: Any,
) -> Completeness:
    """Estimate how many of the MSEs of images a search finds, by capture and recapture over two noisy beams.

    Each image is searched twice, the beam ranking sets by ratios times random factors drawn by two seeds. If the
    searches found MSEs independently of each other and each MSE with the same chance, Chapman's estimate
    ``(first + 1) (second + 1) / (both + 1) − 1`` would be nearly unbiased. They do not: both look where ratios are
    high, and find the same easy MSEs. So the estimated total is a lower bound, and the share found an upper one. It
    also is about what such a search can reach: with ``max_size=18`` nothing is said of larger MSEs, and of two searches
    that stop at ``max_mses``, each is compared only as far as it went. ``max_mses=None`` with a ``max_size`` is the
    cleanest question.

    Args:
        net: The classifier.
        images: As for :func:`suffice.find_evidence`.
        targets: As there.
        settings: Of the search; their ``beam_noise`` and ``seed`` are set here.
        noise: ``beam_noise`` of both searches; more makes them more independent, and each of them worse.
        seeds: Of the two searches.
        options: Whatever else :func:`suffice.find_evidence` takes beside ``settings``, such as ``precision``.

    Raises:
        OptionError: The seeds are equal, there is no noise, or the baseline is random: with another seed, the searches
            would be about another baseline.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(1, 4), (7,)], grid=3)
        >>> net, image = oracle.classifier(12), oracle.image(12)
        >>> completeness(net, image, targets=1, settings=Settings(grid=3, baseline="black"))[0]
        Recapture(name='tensor', first=2, second=2, both=2)
    """
    chosen = preset(settings or "default") if not isinstance(settings, Settings) else settings
    if len(set(seeds)) != 2 or noise <= 0:
        raise OptionError(f"noise={noise}, seeds={seeds}; two different seeds and some noise make two searches.")
    if isinstance(chosen.baseline, str) and "noise" in chosen.baseline:
        raise OptionError(
            f"baseline={chosen.baseline!r} is drawn by the seed, so that the two searches would differ in it."
        )
    first, second = (
        find_evidence(
            net, images, targets, settings=chosen.changed(beam_noise=noise, seed=seed, expanded_mses=0), **options
        )
        for seed in seeds
    )
    by_index = {e.index: e for e in second}
    return Completeness(tuple(_compared(e, by_index[e.index]) for e in first if e.index in by_index))


def _compared(first: Evidence, second: Evidence) -> Recapture:
    a, b = ({m.cells for m in e.mses} for e in (first, second))
    return Recapture(first.name, len(a), len(b), len(a & b))
