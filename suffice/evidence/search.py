"""The search: many images in lockstep through one probe.

Each image goes through phases: levels of beam search, each followed by pruning what it found; then, where asked for,
certifying; then the lattice below its MSEs. A round collects the questions of every image, whatever its phase, asks the
probe once, and hands the answers back. An image that is finished leaves its place to the next one, so that batches stay
full from the first image to the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from suffice.evidence.beam import Beam
from suffice.evidence.certify import Certifier, inclusion_minimal
from suffice.evidence.lattice import Lattice
from suffice.evidence.prune import Pruner
from suffice.evidence.result import Stopped
from suffice.evidence.settings import Settings
from suffice.perturb.probe import Probe
from suffice.perturb.rows import lexsort, rank_in_group, starts

# Thresholds are compared with ratios rounded to this, so that the last bits of a float32 sum, which depend on the batch
# that a question happens to be in, do not decide about a ratio that lies on a threshold.
RESOLUTION = 1e-6


class Phase(IntEnum):
    """Where an image is in its search."""

    IDLE = 0
    LEVEL = 1
    PRUNING = 2
    CERTIFYING = 3
    BELOW = 4
    DONE = 5


REASONS: tuple[Stopped, ...] = (
    "beam empty",
    "max_mses",
    "max_size",
    "max_questions",
    "nothing needed",
    "no confidence",
)


@dataclass
class Finding:
    """What the search found in one image, as arrays on the CPU.

    Attributes:
        place: The image's place in the probe.
        mses: MSEs in order of discovery, [R] or [R, words].
        mse_ratios: Their ratios, [R].
        certified: Whether each is certified, bool [R].
        regions: Regions evaluated below them, [M] or [M, words].
        ratios: Their ratios, [M].
        levels: Largest number of cells looked at.
        stopped: What ended the search.
        truncated: Whether the budget below the MSEs was spent.
        questions: Masked images put through the model.
        baseline_confidence: Confidence when everything is hidden.
    """

    place: int
    mses: Tensor
    mse_ratios: Tensor
    certified: Tensor
    regions: Tensor
    ratios: Tensor
    levels: int
    stopped: Stopped
    truncated: bool
    questions: int
    baseline_confidence: float


class Searcher:
    """Searches the images of a probe.

    Args:
        probe: Holds the images; one place each.
        settings: The choices; its grid, baseline and cells are those of the probe.
    """

    def __init__(self, probe: Probe, settings: Settings) -> None:
        self.probe, self.settings, self.grid = probe, settings, probe.grid
        self.device = probe.forwarder.device
        places = len(probe)
        self.beam = Beam(self.grid, settings, places, self.device)
        self.pruner = Pruner(self.grid, self.device)
        self.certifier = Certifier(self.grid, settings.subset_budget, places, self.device)
        self.lattice = Lattice(self.grid, settings, places, self.device)

        none = torch.zeros(0, dtype=torch.long, device=self.device)
        self._found_place, self._found, self._rank = none, self.grid.empty(0, self.device), none
        self._certified = none.bool()
        self.phase = torch.full((places,), Phase.IDLE, dtype=torch.long, device=self.device)
        self.level = torch.zeros(places, dtype=torch.long, device=self.device)
        self.reason = torch.zeros(places, dtype=torch.long, device=self.device)
        self.hidden = torch.zeros(places, device=self.device)

    def admit(self, places: Tensor, saliency: Tensor | None = None) -> None:
        """Begin the search of the images in some places.

        Args:
            places: [M] int64.
            saliency: With ``search="sag"``: a seed map of each, [M, side, side], high = important.
        """
        places = places.to(self.device)
        self.level[places], self.reason[places] = 0, 0
        if saliency is not None:
            order = saliency.flatten(1).to(self.device).sort(dim=1, descending=True, stable=True).indices
            self.beam.order[places] = order
        hidden = self.grid.empty(len(places), self.device)
        self.hidden[places] = self.probe.ask(places, hidden)
        self.phase[places] = Phase.LEVEL

        # Where the model says nothing that can be divided by, or says the same of nothing at all, there is no search.
        whole = self.probe.whole[places]
        mute = ~(whole > 0) | whole.isinf()
        idle = self._suffices(self._ratio(places, self.hidden[places])) & ~mute
        self._add(places[idle], hidden[idle], torch.zeros_like(places[idle]))
        self._stop(places[mute], "no confidence")
        self._stop(places[idle], "nothing needed")
        self.beam.begin(places[~mute & ~idle])
        self._move_on()

    def round(self) -> list[Finding]:
        """Ask one question for all, and return the images that are finished now; their places are free."""
        asked = (
            self.beam.questions(self.phase == Phase.LEVEL),
            self.pruner.questions(),
            self.certifier.questions(),
            self.lattice.questions(),
        )
        place = torch.cat([places for places, _ in asked])
        ratio = self._ratio(place, self.probe.ask(place, torch.cat([regions for _, regions in asked])))
        level, pruned, certified, below = ratio.split([len(places) for places, _ in asked])

        searching = self.phase == Phase.LEVEL
        self.level += searching.long()
        found_place, found = self.beam.advance(level, self._suffices(level))
        self._add(*self.pruner.advance(self._suffices(pruned)))
        rank = (self.level[found_place] << 32) + torch.arange(len(found_place), device=self.device)
        self.pruner.add(found_place, found, rank)
        self.certifier.advance(self._suffices(certified))
        self.lattice.advance(_rounded(below))
        self.phase[searching] = Phase.PRUNING
        self._move_on()
        return self._collect()

    @property
    def active(self) -> bool:
        """Whether there is any image that is being searched or waits to be handed out."""
        return bool((self.phase != Phase.IDLE).any())

    @property
    def free(self) -> Tensor:
        """Places without an image to search, [F] int64."""
        return (self.phase == Phase.IDLE).nonzero().flatten()

    def _move_on(self) -> None:
        """Move images whose phase is over to the next."""
        places = len(self.phase)
        found = torch.bincount(self._found_place, minlength=places)
        resting = (self.phase == Phase.PRUNING) & (self.pruner.waiting(places) == 0)
        sets = self.beam.sizes(places)
        limit = self.settings
        # Reasons in order of precedence, the strongest last.
        if limit.max_questions is not None:
            ahead = self.probe.forwards + sets * (self.grid.cells - self.level)
            self._stop_where(resting & (ahead > limit.max_questions), "max_questions")
        if limit.max_size is not None:
            self._stop_where(resting & (self.level >= limit.max_size), "max_size")
        self._stop_where(resting & (sets == 0), "beam empty")
        if limit.max_mses is not None:
            self._stop_where(resting & (found > limit.max_mses), "max_mses")
        self.phase[resting & (self.phase == Phase.PRUNING)] = Phase.LEVEL

        certified = (self.phase == Phase.CERTIFYING) & (self.certifier.waiting(places) == 0)
        for place in certified.nonzero().flatten().tolist():
            self._make_minimal(place)
        self._descend(certified)
        self.phase[(self.phase == Phase.BELOW) & self.lattice.finished()] = Phase.DONE

    def _stop(self, places: Tensor, reason: Stopped) -> None:
        gone = torch.zeros_like(self.phase, dtype=torch.bool)
        gone[places] = True
        self._stop_where(gone, reason)

    def _stop_where(self, gone: Tensor, reason: Stopped) -> None:
        """End the search of some images, bool [places], and begin what comes after it."""
        if not gone.any():
            return
        self.reason[gone] = REASONS.index(reason)
        self.beam.drop(gone)
        fresh = gone & (self.phase <= Phase.PRUNING)
        if self.settings.minimal == "subset":
            self.phase[fresh] = Phase.CERTIFYING
            mine = fresh[self._found_place]
            self.certifier.begin(self._found_place[mine], self._found[mine])
        else:
            self._descend(fresh)

    def _descend(self, ready: Tensor) -> None:
        """Begin the lattice below the MSEs of some images, bool [places]."""
        if not ready.any():
            return
        self.phase[ready] = Phase.BELOW
        order = lexsort(self._found_place, self._rank)
        mine = order[ready[self._found_place[order]]]
        if self.settings.expanded_mses is not None:
            mine = mine[rank_in_group(self._found_place[mine]) < self.settings.expanded_mses]
        self.lattice.begin(self._found_place[mine], self._found[mine])

    def _make_minimal(self, place: int) -> None:
        """Put the sets that certifying found below an image's MSEs in the place of those that contain them."""
        mine = self._found_place == place
        smaller = self.certifier.collect(place)
        regions = torch.cat([self._found[mine], smaller])
        ranks = torch.cat(
            [self._rank[mine], torch.full((len(smaller),), int(self.level[place]) << 32, device=self.device)]
        )
        order = lexsort(regions, ranks)
        first = order[starts(regions[order])]
        regions, ranks = regions[first], ranks[first]
        kept = inclusion_minimal(self.grid, regions)
        certain = bool(~self.certifier.exhausted[place])
        self._found_place, self._found = self._found_place[~mine], self._found[~mine]
        self._rank, self._certified = self._rank[~mine], self._certified[~mine]
        count = int(kept.sum())
        self._add(torch.full((count,), place, device=self.device), regions[kept], ranks[kept], certain)

    def _add(self, place: Tensor, region: Tensor, rank: Tensor, certified: bool = True) -> None:
        """Keep minimal sets, each once for its image, by the first time it was found."""
        if not len(place):
            return
        self._found_place = torch.cat([self._found_place, place])
        self._found = torch.cat([self._found, region])
        self._rank = torch.cat([self._rank, rank])
        self._certified = torch.cat([self._certified, torch.full_like(place, certified, dtype=torch.bool)])
        order = lexsort(self._found_place, self._found, self._rank)
        rows = order[starts(self._found_place[order], self._found[order])]
        self._found_place, self._found = self._found_place[rows], self._found[rows]
        self._rank, self._certified = self._rank[rows], self._certified[rows]

    def _ratio(self, place: Tensor, confidence: Tensor) -> Tensor:
        """Ratio to the whole image; a confidence that is not a number is below every threshold."""
        return torch.nan_to_num(confidence / self.probe.whole[place], nan=-1.0, posinf=-1.0)

    def _suffices(self, ratio: Tensor) -> Tensor:
        ratio = _rounded(ratio)
        return ratio > self.settings.threshold if self.settings.strict else ratio >= self.settings.threshold

    def _collect(self) -> list[Finding]:
        """Hand out what was found in the images that are done, and free their places."""
        done = self.phase == Phase.DONE
        places = done.nonzero().flatten().tolist()
        if not places:
            return []
        order = lexsort(self._found_place, self._rank)
        mine = order[done[self._found_place[order]]]
        mse_place, mses = self._found_place[mine], self._found[mine]
        mse_ratios = _rounded(self._ratio(mse_place, self.probe.ask(mse_place, mses)))  # remembered
        of_mses = self._by_place(done, mse_place, mses, mse_ratios, self._certified[mine])
        of_below = self._by_place(done, *self.lattice.collect(done))
        columns = (self.level, self.reason, self.lattice.truncated, self.probe.forwards, self.hidden)
        facts = zip(*(c[done].tolist() for c in columns), strict=True)
        findings = [
            Finding(place, own[0], own[1], own[2], below[0], below[1], level, REASONS[reason], *rest)
            for place, own, below, (level, reason, *rest) in zip(places, of_mses, of_below, facts, strict=True)
        ]
        stays = ~done[self._found_place]
        self._found_place, self._found = self._found_place[stays], self._found[stays]
        self._rank, self._certified = self._rank[stays], self._certified[stays]
        self.phase[done] = Phase.IDLE
        return findings

    @staticmethod
    def _by_place(done: Tensor, place: Tensor, *columns: Tensor) -> list[list[Tensor]]:
        """Columns of tables whose rows belong to the places that are done, cut by place, on the CPU."""
        order = place.sort(stable=True).indices
        lengths = torch.bincount(place, minlength=len(done))[done].tolist()
        cut = [column[order].cpu().split(lengths) for column in columns]
        # Parts are copied: a view of one image's rows would keep those of all the others in memory.
        return [[part.clone() for part in parts] for parts in zip(*cut, strict=True)]


def _rounded(ratio: Tensor) -> Tensor:
    return (ratio / RESOLUTION).round() * RESOLUTION
