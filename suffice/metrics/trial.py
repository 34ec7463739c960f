"""What a metric gets to work on: images, their maps, and the ways to ask the model about them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from suffice.attribution import Attribution
from suffice.errors import OptionError
from suffice.metrics.canvas import canvas
from suffice.metrics.maps import Ranking, Units, ranks_of, resized
from suffice.metrics.witness import Seen, Witness
from suffice.perturb import FloatMasks, Forwarder, RankMasks
from suffice.perturb.masks import Enlargement
from suffice.vision import Classifier
from suffice.vision.classifier import Targets
from suffice.vision.identity import image_seed

Show = Literal["below", "rest"]
T = TypeVar("T")


@dataclass(eq=False)
class Trial:
    """Images and their maps, on trial; what several metrics ask about them is asked once.

    Attributes:
        net: The classifier.
        index: Position of each image among all, [B] int64.
        total: How many images there are in all.
        pixels: [B, 3, H, W] in [0, 1], on the model's device.
        maps: [B, h, w] float32, finite, on the model's device.
        wanted: The classes asked about, as the user gave them.
        boxes: Objects in each image, float [n, 4] as (x0, y0, x1, y1) in pixels of the input; None where not given.
        ids: Identity of each image, on which everything random about it depends.
        seed: The user's seed.
        forwarder: Puts batches through the model.
        attribution: Where the maps come from, if that is known, for these images.
    """

    net: Classifier
    index: Tensor
    total: int
    pixels: Tensor
    maps: Tensor
    wanted: Targets
    boxes: Sequence[Tensor] | None
    ids: Sequence[str]
    seed: int
    forwarder: Forwarder
    attribution: Attribution | None = None
    _memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.pixels)

    @cached_property
    def seeds(self) -> Tensor:
        """Seed of each image, [B] int64."""
        return torch.tensor([image_seed(self.seed, i) for i in self.ids], device=self.pixels.device)

    @cached_property
    def whole_scores(self) -> Tensor:
        """Scores of the whole images, [B, classes] float32."""
        return self.scores_of(self.pixels)

    @cached_property
    def targets(self) -> Tensor:
        """The class asked about in each image, [B] int64."""
        return self.net.targets(self.wanted, self.whole_scores)

    @property
    def asked(self) -> bool:
        """Whether any metric asked about a class."""
        return "targets" in self.__dict__

    @cached_property
    def whole(self) -> Seen:
        """What the model says of the whole images, [B]."""
        score = self.whole_scores.gather(1, self.targets[:, None])[:, 0]
        return Seen(score, self.whole_scores.argmax(dim=1) == self.targets)

    @torch.no_grad()
    def scores_of(self, pixels: Tensor) -> Tensor:
        """Scores [K, classes], float32, of any images [K, 3, H, W] in [0, 1], batch by batch."""
        scores: list[Tensor] = []
        start = 0
        while start < len(pixels):
            rows = pixels[start : start + self.forwarder.batch_size].to(self.forwarder.device)
            try:
                inputs = self.forwarder.laid_out(self.forwarder.padded(self.net.normalize(rows)))
                scores.append(self.net.scores(self.forwarder.logits(inputs)[: len(rows)]))
            except RuntimeError as error:  # out of memory is one, on the GPU and on the CPU
                self.forwarder.make_room(error)
                continue
            start += len(rows)
        return torch.cat(scores)

    def ranking(self, units: Units, enlargement: Enlargement, masks: Enlargement) -> Ranking:
        """The order of the pixels or cells of each image by its map, most important first.

        Args:
            units: ``"pixels"``; ``"cells"`` of the map's own resolution; or so many cells a side.
            enlargement: How maps are enlarged where they are smaller than that.
            masks: How masks of cells are enlarged to the image.
        """
        own = (self.maps.shape[1], self.maps.shape[2])
        size = self.net.size if units == "pixels" else own if units == "cells" else (int(units), int(units))
        if size[0] > self.net.size[0] or size[1] > self.net.size[1]:
            raise OptionError(f"units={units!r} are {size[0]}×{size[1]} cells, more than the image has pixels.")
        # Rules that have nothing to do are not part of the key, so that what is the same is asked once.
        key = ("ranks", size, enlargement if size != own else None, masks if size != self.net.size else None)
        return self.once(key, lambda: Ranking(ranks_of(resized(self.maps, size, enlargement)), masks, key))

    def see(self, baseline: Any, ranking: Ranking, show: Show, counts: Sequence[int]) -> Seen:
        """What the model says when some of the pixels of all images are shown.

        Args:
            baseline: What shows elsewhere.
            ranking: The order of pixels or cells.
            show: ``"below"`` shows the first ones of that order, ``"rest"`` all but them.
            counts: How many of them, [T].

        Returns:
            Scores and wins, [B, T].
        """
        self._memory["everything"] = self.whole
        places = [self._place(baseline, ranking, show, count) for count in counts]
        new = {place: count for place, count in zip(places, counts, strict=True) if place not in self._memory}
        if new:
            images = torch.arange(len(self), device=self.pixels.device).repeat(len(new))
            thresholds = torch.tensor(list(new.values()), device=images.device).repeat_interleave(len(self))
            masks = RankMasks(ranking.ranks, images, thresholds, show, ranking.masks)
            seen = self._witness(baseline).see(images, masks)
            for row, place in enumerate(new):
                some = slice(row * len(self), (row + 1) * len(self))
                self._memory[place] = Seen(seen.score[some], seen.won[some])
        found = [self._memory[place] for place in places]
        return Seen(torch.stack([f.score for f in found], dim=1), torch.stack([f.won for f in found], dim=1))

    def see_through(self, baseline: Any, masks: Tensor, key: Hashable) -> Seen:
        """What the model says of each image under its own soft mask, [B]; asked once for each key."""
        images = torch.arange(len(self), device=self.pixels.device)
        place = ("through", _identity(baseline), key)
        return self.once(place, lambda: self._witness(baseline).see(images, FloatMasks(masks)))

    def once(self, key: Hashable, work: Callable[[], T]) -> T:
        """The result of some work, done for the first who asks and remembered for the others."""
        if key not in self._memory:
            self._memory[key] = work()
        return self._memory[key]

    def _place(self, baseline: Any, ranking: Ranking, show: Show, count: int) -> Hashable:
        shown = count if show == "below" else ranking.count - count
        if shown == ranking.count:
            return "everything"
        if shown == 0:
            return "nothing", _identity(baseline)
        return _identity(baseline), ranking.key, show, count

    def _witness(self, baseline: Any) -> Witness:
        return self.once(
            ("witness", _identity(baseline)),
            lambda: Witness(
                self.whole_scores,
                self.net,
                self.pixels,
                self.targets,
                baseline=canvas(self, baseline),
                grid=1,
                forwarder=self.forwarder,
                ids=self.ids,
                seed=self.seed,
                remember=0,
            ),
        )


def _identity(baseline: Any) -> Hashable:
    return baseline if isinstance(baseline, str) else id(baseline)
