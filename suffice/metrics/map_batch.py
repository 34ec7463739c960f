"""What a metric gets to work on: a batch of images, their maps, and answers that several metrics share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar, Union

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from suffice.attribution import Attribution
from suffice.errors import OptionError
from suffice.options import Count
from suffice.perturb import Batch, FloatMasks, Probe, RankMasks, Response, enlarge
from suffice.perturb.masks import Enlargement

Show = Literal["below", "rest"]
Units = Union[Count, Literal["pixels", "cells"]]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Ranking:
    """The order in which pixels or cells are inserted or removed.

    Attributes:
        ranks: [B, h, w] int32, 0 = most important.
        masks: How a mask of these cells becomes one of pixels.
        key: What it depends on.
    """

    ranks: Tensor
    masks: Enlargement
    key: tuple[object, ...]

    @property
    def count(self) -> int:
        """Pixels, or cells, of one image."""
        return self.ranks[0].numel()


@dataclass(eq=False)
class MapBatch:
    """Images and their maps; what several metrics ask about them is asked once.

    Attributes:
        batch: The images. Targets are -1 where no metric asks the model.
        maps: [B, h, w] float32, finite, on the model's device.
        whole_scores: Scores of the whole images, [B, classes] float32; None where no metric asks the model.
        boxes: Objects in each image, float [n, 4] as (x0, y0, x1, y1) in pixels of the input; None where not given.
        attribution: Where the maps come from, if that is known, for these images.
    """

    batch: Batch
    maps: Tensor
    whole_scores: Tensor | None = None
    boxes: Sequence[Tensor] | None = None
    attribution: Attribution | None = None
    _memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the model's input."""
        return self.batch.net.size

    @property
    def device(self) -> torch.device:
        """Where the images and maps are."""
        return self.batch.pixels.device

    @cached_property
    def whole(self) -> Response:
        """What the model says of the whole images, [B]."""
        return self.response(self._known_scores)

    def response(self, scores: Tensor) -> Response:
        """Score of the target and whether it wins, [B, ...], from scores [B, ..., classes]."""
        target = self.batch.targets.view(-1, *[1] * (scores.dim() - 2)).expand(scores.shape[:-1])
        return Response(scores.gather(-1, target[..., None])[..., 0], scores.argmax(dim=-1) == target)

    def resized_maps(self, enlargement: Enlargement) -> Tensor:
        """The maps at the size of the input, [B, H, W]."""
        return resized(self.maps, self.size, enlargement)

    def ranking(self, units: Units, enlargement: Enlargement, masks: Enlargement) -> Ranking:
        """The order of pixels or cells of each image by its map; for the choices see :class:`CurveChoices`."""
        own = (self.maps.shape[1], self.maps.shape[2])
        size = self.size if units == "pixels" else own if units == "cells" else (int(units), int(units))
        if size[0] > self.size[0] or size[1] > self.size[1]:
            raise OptionError(f"units={units!r} are {size[0]}×{size[1]} cells, more than the image has pixels.")
        # Rules that have nothing to do are not part of the key, so that what is the same is asked once.
        key = ("ranks", size, enlargement if size != own else None, masks if size != self.size else None)
        return self.once(key, lambda: Ranking(ranks_of(resized(self.maps, size, enlargement)), masks, key))

    def respond(self, baseline: Any, ranking: Ranking, show: Show, counts: Sequence[int]) -> Response:
        """What the model says, [B, T], when some of the pixels of all images are shown over a baseline.

        Args:
            baseline: What shows elsewhere.
            ranking: The order of pixels or cells.
            show: ``"below"`` shows the first ones of that order, ``"rest"`` all but them.
            counts: How many of them, [T].
        """
        self._memory["everything"] = self.whole
        keys = [self._key(baseline, ranking, show, count) for count in counts]
        new = {key: count for key, count in zip(keys, counts, strict=True) if key not in self._memory}
        if new:
            images = torch.arange(len(self), device=self.device).repeat(len(new))
            thresholds = torch.tensor(list(new.values()), device=images.device).repeat_interleave(len(self))
            masks = RankMasks(ranking.ranks, images, thresholds, show, ranking.masks)
            score, correct = self._probe(baseline).respond(images, masks)[:2]
            for row, key in enumerate(new):
                some = slice(row * len(self), (row + 1) * len(self))
                self._memory[key] = Response(score[some], correct[some])
        found = [self._memory[key] for key in keys]
        return Response(torch.stack([f.score for f in found], dim=1), torch.stack([f.correct for f in found], dim=1))

    def respond_through(self, baseline: Any, masks: Tensor, key: Hashable) -> Response:
        """What the model says of each image under its own soft mask, [B]; asked once for each key."""
        images = torch.arange(len(self), device=self.device)
        full = ("through", _identity(baseline), key)
        return self.once(full, lambda: self._probe(baseline).respond(images, FloatMasks(masks)))

    def once(self, key: Hashable, work: Callable[[], T]) -> T:
        """The result of some work, done for the first who asks and remembered for the others."""
        if key not in self._memory:
            self._memory[key] = work()
        return self._memory[key]

    @property
    def _known_scores(self) -> Tensor:
        assert self.whole_scores is not None, "a metric asks the model and does not say so in needs="
        return self.whole_scores

    def _key(self, baseline: Any, ranking: Ranking, show: Show, count: int) -> Hashable:
        shown = count if show == "below" else ranking.count - count
        if shown == ranking.count:
            return "everything"
        if shown == 0:
            return "nothing", _identity(baseline)
        return _identity(baseline), ranking.key, show, count

    def _probe(self, baseline: Any) -> Probe:
        key = ("probe", _identity(baseline))
        return self.once(key, lambda: self.batch.probe(baseline, grid=1, remember=0, whole=self._known_scores))


def _identity(baseline: Any) -> Hashable:
    return baseline if isinstance(baseline, str) else id(baseline)


def checked(given: Any, count: int) -> Tensor:
    """Maps [N, h, w] as float32; what is not finite, or not one map an image, is an error."""
    try:
        maps = torch.as_tensor(given).detach().float()
    except (TypeError, ValueError, RuntimeError) as error:
        raise OptionError(
            f"Maps are {type(given).__name__}; expected what suffice.attribute returned, or a tensor [{count}, h, w]."
        ) from error
    if maps.dim() != 3 or len(maps) != count or 0 in maps.shape[1:]:
        raise OptionError(
            f"Maps have shape {list(maps.shape)}; expected [{count}, h, w], one for each of {count} images."
        )
    broken = (~maps.isfinite()).flatten(1).any(dim=1).nonzero().flatten().tolist()
    if broken:
        raise OptionError(
            f"The maps of images {broken[:5]} hold NaN or infinite values; what they mean cannot be guessed. "
            "Replace them first, for example with torch.nan_to_num."
        )
    return maps


def resized(maps: Tensor, size: tuple[int, int], rule: Enlargement = "bilinear") -> Tensor:
    """Maps [B, h, w] at another size, [B, H, W].

    Smaller ones are enlarged by the ``rule`` of :func:`suffice.perturb.enlarge`, larger ones averaged over areas.
    """
    if tuple(maps.shape[1:]) == tuple(size):
        return maps
    # In double, so that equal values stay equal: rounding must not decide in which order pixels are taken.
    exact = maps.double()
    if maps.shape[1] >= size[0] and maps.shape[2] >= size[1]:
        return adaptive_avg_pool2d(exact[:, None], size)[:, 0].to(maps.dtype)
    return enlarge(exact, size, rule).to(maps.dtype)


def ranks_of(maps: Tensor) -> Tensor:
    """Rank of each position of maps [B, h, w], highest first; ties go from left to right and from top to bottom.

    Example:
        >>> ranks_of(torch.tensor([[[0.0, 2.0], [2.0, 3.0]]]))
        tensor([[[3, 1],
                 [2, 0]]], dtype=torch.int32)
    """
    flat = maps.flatten(1)
    order = flat.argsort(dim=1, descending=True, stable=True)
    numbers = torch.arange(flat.shape[1], dtype=torch.int32, device=maps.device).expand_as(order)
    return torch.empty_like(numbers, memory_format=torch.contiguous_format).scatter(1, order, numbers).view(maps.shape)
