"""What it means to suffice: the ratio of a region to the whole image, and the rule by which it is enough."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from suffice.evidence.settings import Settings
from suffice.evidence.thresholds import least, margin, rounded
from suffice.perturb.probe import Probe


class Answers(NamedTuple):
    """What a model makes of regions."""

    ratio: Tensor  # [K] float32
    suffices: Tensor  # [K] bool
    new: Tensor  # [K] bool: which of them the model was asked for
    waits: Tensor | None = None  # [K] bool: which were left for later; None where none was


class Criterion:
    """Asks a probe whether regions suffice, by some settings.

    Args:
        probe: The probe.
        settings: Of which ``threshold``, ``strict``, ``keeps`` and ``above_baseline`` are heeded.

    Attributes:
        hidden: Confidence on the baseline alone, [slots].

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(17, 24), (30,)], grid=7)
        >>> probe = Probe(oracle.classifier(56), oracle.image(56), targets=1, baseline="black")
        >>> criterion = Criterion.of(probe, Settings())
        >>> criterion.ask(torch.tensor([0, 0]), probe.grid.from_cells([(17,), (17, 24)])).suffices
        tensor([False,  True])
    """

    def __init__(self, probe: Probe, settings: Settings) -> None:
        self.probe, self.settings = probe, settings
        self.hidden = torch.zeros_like(probe.whole)

    @classmethod
    def of(cls, probe: Probe, settings: Settings) -> Criterion:
        """The criterion for all images that are in a probe now."""
        made = cls(probe, settings)
        made.admit(torch.arange(len(probe), device=probe.device))
        return made

    def admit(self, slots: Tensor) -> None:
        """Get ready for the images that are in some slots now, [M]."""
        self.hidden[slots] = self.probe.ask(slots, self.probe.grid.empty(len(slots), slots.device))

    def ask(self, slot: Tensor, region: Tensor, later: Tensor | None = None) -> Answers:
        """Ask about regions [K] or [K, words] of the images in some slots [K]; ``later``: which of them may wait."""
        response = self.probe.respond(slot, region, later)
        ratio = self.ratio(slot, response.score)
        assert response.new is not None  # of regions it is always known
        return Answers(ratio, self._enough(rounded(ratio), response.correct), response.new, response.waits)

    def ratio(self, slot: Tensor, confidence: Tensor) -> Tensor:
        """Confidences [K] as ratios to the whole image; what is not a number is below every threshold."""
        whole = self.probe.whole.index_select(0, slot)
        if self.settings.above_baseline:
            # Where the baseline says as much as the image, there is nothing above it: the empty set is enough.
            hidden = self.hidden.index_select(0, slot)
            base = hidden.where(hidden < whole, torch.zeros_like(whole))
            confidence, whole = confidence - base, whole - base
        return torch.nan_to_num(confidence / whole, nan=-1.0, posinf=-1.0)

    def margins(self, ratio: Tensor) -> list[float | None]:
        """How far rounded ratios [K] lie above the threshold; None where ratios are not what counts."""
        if self.settings.keeps == "top-1":
            return [None] * len(ratio)
        above: list[float | None] = margin(ratio, self.settings.threshold).tolist()
        return above

    def _enough(self, ratio: Tensor, correct: Tensor) -> Tensor:
        chosen = self.settings
        high = ratio >= least(chosen.threshold, chosen.strict)
        return {"ratio": high, "top-1": correct, "both": high & correct}[chosen.keeps]
