"""Search fast, confirm exactly: what was found in another precision is asked once more in fp32, and mended.

Half precision errs by a little for every question, and a search asks thousands near a threshold. So after it, whatever
the result rests on is asked once more of the model in fp32: every explanation, and every question that is in doubt,
which is one whose ratio lies so near a threshold that the other precision may err about it. So a set that is reported
to suffice has been seen to do so in fp32; that a set fails is believed where its ratio lies far below the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from suffice.evidence.counting import THRESHOLDS
from suffice.evidence.search.beam import best_first, no_sets
from suffice.evidence.search.criterion import Answers, Criterion
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows, rank_in_group

Doubt = Literal["search", "result", "counts", "always"]

# How far from the threshold a ratio is in doubt, by precision: the largest error seen over 600 sets of ten photographs
# with ViT-Ti/16 was 0.0074 in fp16 and 0.112 in bf16, the median 0.0003 and 0.002 (benchmarks/ratio_errors.py).
# TF32 has as many bits as fp16.
BANDS = {"fp32": 0.0125, "tf32": 0.0125, "fp16": 0.0125, "bf16": 0.12}
# What a search decides on its way is decided again at its end, and counts can bear a wrong one among many: narrower
# bands, beyond the usual error, keep both near fp32.
SHARES = {"search": 1 / 8, "result": 1.0, "counts": 1 / 16}


class Confirmation:
    """Asks by a fast criterion, and where that is in doubt by an exact one.

    Args:
        fast: The criterion of the search.
        exact: The same of a probe in fp32 that has the same images; None where the fast one is exact.

    Attributes:
        sure: The exact criterion where there is one, else the fast one.
        spent: Forwards of the exact one, [slots].
    """

    def __init__(self, fast: Criterion, exact: Criterion | None) -> None:
        self.fast, self.exact, self.sure = fast, exact, exact or fast
        self.settings = fast.settings
        self.band = BANDS.get(fast.probe.runner.precision, 0.0)
        self.spent = torch.zeros_like(fast.probe.forwards)

    def admit(self, slots: Tensor) -> None:
        """Get ready for the images that are in some slots now, [M]."""
        self.sure.admit(slots)
        if self.exact is not None and self.settings.above_baseline:
            self.fast.admit(slots)
        self.spent[slots] = 0

    def ask(
        self, parts: Sequence[tuple[Rows, Doubt]], final: Tensor | None = None, later: Tensor | None = None
    ) -> list[Answers]:
        """Ask several groups of questions, columns ``slot`` and ``region``, as one; each group by its own doubt.

        ``final``, [first group] bool, says which of the first group nobody asks about again: their doubt is
        ``"result"``. ``later``, [first group] int64, says which of it may wait; see :meth:`suffice.Probe.respond`.

        ``"result"`` asks the exact criterion where the ratio lies near what suffices or above it (with
        ``confirm="all"`` everywhere), ``"search"`` where it lies very near, ``"counts"`` where it lies near any
        threshold at which sub-explanations are counted.
        """
        slot = torch.cat([questions.slot for questions, _ in parts])
        region = torch.cat([questions.region for questions, _ in parts])
        lengths = [len(questions) for questions, _ in parts]
        if later is not None:
            later = torch.nn.functional.pad(later, (0, len(slot) - lengths[0]))
        answers = self.fast.ask(slot, region, later)
        if self.exact is not None:
            ratios = answers.ratio.split(lengths)
            doubts = [self._doubtful(r, doubt) for r, (_, doubt) in zip(ratios, parts, strict=True)]
            if final is not None:
                doubts[0] |= final & self._doubtful(ratios[0], "result")
            doubtful = torch.cat(doubts)
            if answers.waits is not None:
                doubtful &= ~answers.waits
            rows = doubtful.nonzero().flatten()
            surely = self.exact.ask(slot[rows], region[rows])
            answers.ratio[rows], answers.suffices[rows] = surely.ratio, surely.suffices
            self.spent.scatter_add_(0, slot[rows], surely.new.long())
        columns = (column.split(lengths) for column in answers if column is not None)
        return [Answers(*part) for part in zip(*columns, strict=True)]

    def _doubtful(self, ratio: Tensor, doubt: Doubt) -> Tensor:
        chosen = self.settings
        # How near the target is to losing to another class cannot be seen from its ratio.
        if doubt == "always" or (doubt == "result" and (chosen.confirm == "all" or chosen.keeps != "ratio")):
            return torch.ones_like(ratio, dtype=torch.bool)
        band = self.band * SHARES[doubt]
        if doubt == "result":
            return ratio >= chosen.threshold - band
        thresholds = (*THRESHOLDS, chosen.expand_at) if doubt == "counts" else (chosen.threshold,)
        return torch.stack([(ratio - threshold).abs() <= band for threshold in thresholds]).any(dim=0)


class Mending:
    """Sets that must suffice in fp32: those that do not are grown, cell by cell, until they do.

    Attributes:
        checks: Sets to be asked about in fp32; columns ``slot``, ``region`` and ``rank``.
        growing: Sets that fail there, for which a further cell is being chosen, by the fast criterion.
    """

    def __init__(self, grid: Grid, device: torch.device) -> None:
        self.grid = grid
        self.checks = self.growing = no_sets(grid, device, rank=torch.long)
        self._larger = no_sets(grid, device, parent=torch.long)

    def questions(self) -> Rows:
        """The sets that are growing, each with every further cell."""
        if not len(self.growing):
            return self._larger[:0]
        parent, _, region = self.grid.with_each(self.growing.region)
        self._larger = Rows(slot=self.growing.slot[parent], region=region, parent=parent)
        return self._larger

    def advance(self, suffices: Tensor, ratio: Tensor) -> Rows:
        """Take the answers about ``checks``, bool, and about :meth:`questions`, [K]; hand out what suffices."""
        passed, failed = self.checks.split(suffices)
        if not len(self.growing):
            self.checks, self.growing = self.growing, failed
            return passed
        order = best_first(self._larger.parent, ratio, self._larger.region)
        best = self._larger[order][rank_in_group(self._larger.parent[order]) == 0]
        grown = self.growing[best.parent].but(region=best.region)
        self.checks, self.growing = grown, failed
        return passed
