"""A probe that also notes whether the class asked about wins."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from suffice.perturb import Masks, Probe


class Seen(NamedTuple):
    """What the model says of masked images."""

    score: Tensor  # of the target, [...] float32
    won: Tensor  # whether the target has the highest score, [...] bool

    def value(self, kind: str) -> Tensor:
        """The ``"score"``, or the ``"accuracy"``: 1 where the target wins."""
        return self.score if kind == "score" else self.won.float()


class Witness(Probe):
    """A probe whose answers come with the class that the model would choose.

    Args:
        whole: Scores of the whole images, [N, classes], so that they are not asked for again.
        *args: As for :class:`suffice.perturb.Probe`.
        **options: Alike.
    """

    def __init__(self, whole: Tensor, *args: Any, **options: Any) -> None:
        self._known, self._winners = whole, list[Tensor]()
        super().__init__(*args, **options)

    def see(self, index: Tensor, masks: Masks) -> Seen:
        """Ask about images [K] under masks; see :meth:`suffice.perturb.Probe.ask`."""
        self._winners.clear()
        score = self.ask(index, masks)
        return Seen(score, torch.cat(self._winners) == self.targets[index.to(self.targets.device)])

    def _scores(self, images: Tensor, mask: Tensor) -> Tensor:
        scores = super()._scores(images, mask)
        self._winners.append(scores.argmax(dim=1))
        return scores

    def _whole_scores(self, places: Tensor) -> Tensor:
        return self._known[places]
