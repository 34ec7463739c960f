"""Some finished images, ready to be asked about in other ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from suffice.evidence.result import MSE, Evidence
from suffice.evidence.search.criterion import Criterion
from suffice.evidence.settings import Settings
from suffice.evidence.thresholds import rounded
from suffice.perturb.baselines import Baseline
from suffice.perturb.probe import Probe
from suffice.perturb.regions import Grid
from suffice.perturb.rows import Rows
from suffice.perturb.runner import Runner


@dataclass(frozen=True, eq=False)
class Block:
    """Images and what the search found in them.

    Attributes:
        runner: Of the classifier, in fp32.
        pixels: The images, [N, 3, H, W] in [0, 1].
        ids: Their identities.
        evidence: Of each, N, all with the same settings.
    """

    runner: Runner
    pixels: Tensor
    ids: Sequence[str]
    evidence: Sequence[Evidence]

    @property
    def settings(self) -> Settings:
        """Of all of them."""
        return self.evidence[0].settings

    def criterion(
        self,
        *,
        grid: Grid | None = None,
        baseline: Baseline | None = None,
        pixels: Tensor | None = None,
        runner: Runner | None = None,
    ) -> Criterion:
        """What suffices by the settings of the search, each part of it as it was unless another one is given."""
        chosen = self.settings
        probe = Probe(
            self.runner.net,
            self.pixels if pixels is None else pixels,
            [e.target for e in self.evidence],
            baseline=chosen.baseline if baseline is None else baseline,
            grid=grid or self.evidence[0].grid,
            cells=chosen.cells,
            seed=chosen.seed,
            ids=self.ids,
            runner=runner or self.runner,
        )
        return Criterion.of(probe, chosen)

    def meaningful(self) -> list[int]:
        """The slots of images of which something can be said."""
        return [i for i, e in enumerate(self.evidence) if e.meaningful]

    def mses(self) -> Rows:
        """All MSEs: ``slot`` and ``region``, in order of image and discovery."""
        sets = [(i, m.cells) for i, e in enumerate(self.evidence) for m in e.mses]
        slot = torch.tensor([i for i, _ in sets], dtype=torch.long, device=self.runner.device)
        return Rows(slot=slot, region=self.evidence[0].grid.from_cells((c for _, c in sets), slot.device))


def as_mses(criterion: Criterion, sets: Rows) -> list[tuple[MSE, ...]]:
    """Sets with ``slot`` and ``region``, from which no single cell can go, as MSEs of each of the images of a probe."""
    found: list[list[MSE]] = [[] for _ in range(len(criterion.probe))]
    ratios = rounded(criterion.ask(sets.slot, sets.region).ratio)
    cells, margins = criterion.probe.grid.to_cells(sets.region), criterion.margins(ratios)
    for slot, mine, ratio, above in zip(sets.slot.tolist(), cells, ratios.tolist(), margins, strict=True):
        found[slot].append(MSE(mine, ratio, margin=above, found="deletion"))
    return [tuple(mses) for mses in found]
